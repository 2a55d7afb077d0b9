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

/**
 * @param repeated names of fields that a form may have several times: their values are lists.
 * @throws {ServiceError} `malformedForm`, `notUtf8`, `duplicateKey`
 */
export const parseForm = (
  text: string,
  repeated: readonly string[] = [],
): Record<string, string | string[]> => {
  const fields = text
    .split('&')
    .filter(field => field !== '')
    .map(field => {
      const [name = '', ...value] = field.split('=')
      return [decode(name), decode(value.join('='))]
    })
  const isRepeated = ([name]: readonly string[]): boolean => repeated.includes(name ?? '')
  const single = fields.filter(field => !isRepeated(field))
  const form: Record<string, string | string[]> = Object.fromEntries(single)
  if (Object.keys(form).length < single.length) throw new ServiceError('duplicateKey')
  const lists = Map.groupBy(fields.filter(isRepeated), ([name = '']) => name)
  for (const [name, values] of lists) form[name] = values.map(([, value = '']) => value)
  return form
}
