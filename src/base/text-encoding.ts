/** Text of files and pipes: UTF-8, with or without the byte order mark that editors and PowerShell put before it. */
import { isUtf8 } from 'node:buffer'

const UTF8_MARK = Buffer.from([0xef, 0xbb, 0xbf])
const UTF16_MARKS = [Buffer.from([0xff, 0xfe]), Buffer.from([0xfe, 0xff])]

/** Bytes of the longest mark. */
export const MARK_LENGTH = UTF8_MARK.length

/** Its message follows the name of the text. */
export class EncodingError extends Error {}

const startsWith = (bytes: Buffer, mark: Buffer): boolean => bytes.subarray(0, mark.length).equals(mark)

/** @param bytes the beginning of a text. @returns them without the mark of UTF-8. @throws {EncodingError} for that of UTF-16 */
export const withoutMark = (bytes: Buffer): Buffer => {
  if (UTF16_MARKS.some(mark => startsWith(bytes, mark)))
    throw new EncodingError('is in UTF-16: save it as UTF-8')
  return startsWith(bytes, UTF8_MARK) ? bytes.subarray(UTF8_MARK.length) : bytes
}

/** Decodes a whole text. @throws {EncodingError} for another encoding than UTF-8 */
export const decodeUtf8 = (bytes: Buffer): string => {
  const text = withoutMark(bytes)
  if (!isUtf8(text)) throw new EncodingError('is not valid UTF-8')
  return text.toString('utf8')
}
