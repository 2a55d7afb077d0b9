/** Parses forms (URL Standard, `application/x-www-form-urlencoded`), strictly. */
import { ServiceError } from '#base/errors'

export const FORM_TYPE = 'application/x-www-form-urlencoded'

/** Parsers of the URL Standard decode invalid UTF-8 to U+FFFD, which would make two passwords one. @throws {ServiceError} `malformedForm`, `notUtf8` */
const decode = (text: string): string => {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw new ServiceError(/%(?![\da-f]{2})/i.test(text) ? 'malformedForm' : 'notUtf8')
  }
}

/** @throws {ServiceError} `malformedForm`, `notUtf8`, `duplicateKey` */
export const parseForm = (text: string): Record<string, string> => {
  const fields = text
    .split('&')
    .filter(field => field !== '')
    .map(field => {
      const [name = '', ...value] = field.split('=')
      return [decode(name), decode(value.join('='))]
    })
  const form = Object.fromEntries(fields)
  if (Object.keys(form).length < fields.length) throw new ServiceError('duplicateKey')
  return form
}
