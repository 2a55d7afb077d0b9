/** Bodies are UTF-8, and as they are: one that says otherwise is not read as if it did not. */
import type { IncomingHttpHeaders } from 'node:http'
import { ServiceError } from '../errors.ts'

/** Every `charset` of a media type. JSON itself has none (RFC 8259 §11), but clients send one. */
const CHARSETS = /;\s*charset\s*=\s*("?)([^";\s]*)\1/gi

/** `utf8` is what the Encoding Standard also calls it, and what many clients send. */
const UTF8 = /^utf-?8$/i

const isOfUtf8 = (contentType: string): boolean =>
  !contentType.includes(';') ||
  Array.from(contentType.matchAll(CHARSETS), ([, , charset = '']) => charset).every(charset =>
    UTF8.test(charset),
  )

/**
 * For bodies that are there. US-ASCII is refused like any other: its label would be wrong for a single byte of UTF-8.
 * @throws {ServiceError} `contentCodingNotSupported`, `charsetNotSupported`
 */
export const checkBodyEncoding = (headers: IncomingHttpHeaders): void => {
  const { 'content-encoding': coding, 'content-type': type } = headers
  if (coding !== undefined && coding !== '' && coding.toLowerCase() !== 'identity') {
    // RFC 9110 §15.5.16 has it say what is taken.
    throw new ServiceError('contentCodingNotSupported', { headers: { 'accept-encoding': 'identity' } })
  }
  if (type !== undefined && !isOfUtf8(type)) throw new ServiceError('charsetNotSupported')
}
