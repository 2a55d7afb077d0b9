/** Parses forms (URL Standard, `application/x-www-form-urlencoded`). */
import { ServiceError } from '../errors.ts'

/** @throws {ServiceError} `duplicateKey` */
export const parseForm = (text: string): Record<string, string> => {
  const fields = [...new URLSearchParams(text)]
  const form = Object.fromEntries(fields)
  if (Object.keys(form).length < fields.length) throw new ServiceError('duplicateKey')
  return form
}
