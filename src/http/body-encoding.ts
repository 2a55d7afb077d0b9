/** Rejects bodies that declare a content coding, or a charset other than UTF-8. */
import type { IncomingHttpHeaders } from 'node:http'
import { ServiceError } from '#base/errors'

/** Every `charset` of a media type. JSON itself has none (RFC 8259 §11), but clients send one. */
const CHARSETS = /;\s*charset\s*=\s*("?)([^";\s]*)\1/gi

/** `utf8` is a label of the Encoding Standard, and many clients send it. */
const UTF8 = /^utf-?8$/i

const isUtf8 = (contentType: string): boolean =>
  !contentType.includes(';') ||
  Array.from(contentType.matchAll(CHARSETS), ([, , charset = '']) => charset).every(charset =>
    UTF8.test(charset),
  )

/**
 * Call it only for requests with a body. US-ASCII is rejected too: the label is wrong as soon as the body contains UTF-8.
 * @throws {ServiceError} `contentCodingNotSupported`, `charsetNotSupported`
 */
export const checkBodyEncoding = (headers: IncomingHttpHeaders): void => {
  const { 'content-encoding': coding, 'content-type': type } = headers
  if (coding !== undefined && coding !== '' && coding.toLowerCase() !== 'identity') {
    // RFC 9110 §15.5.16: the response names the accepted coding.
    throw new ServiceError('contentCodingNotSupported', { headers: { 'accept-encoding': 'identity' } })
  }
  if (type !== undefined && !isUtf8(type)) throw new ServiceError('charsetNotSupported')
}
