/** Metadata of users: JSON objects that the service stores and returns, and does not interpret. */

export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject

export interface JsonObject {
  readonly [name: string]: JsonValue
}

/** Maximum bytes of one metadata object, as JSON in UTF-8 without white space. */
export const METADATA_LIMIT = 8_192

/** Maximum levels of objects and arrays, the metadata object included. */
export const METADATA_DEPTH = 16

/** The metadata of users without any. One constant, so that a cached user costs no object. */
export const NO_METADATA: JsonObject = Object.freeze({})

/** Bytes of an object or array, of a property with its name, and of each value besides its text. */
const CONTAINER = 56
const PROPERTY = 32
const VALUE = 16

/** What JSON may escape, with up to six characters. */
const ESCAPED = /["\\\p{Cc}]/u

/** Bytes of a text, and of its JSON with two for each character: one character beyond Latin-1 makes the whole JSON that wide. */
const textSize = (text: string): number =>
  text.length + 2 * (ESCAPED.test(text) ? JSON.stringify(text).length : text.length)

const sizeOf = (value: JsonValue): number => {
  if (typeof value === 'string') return VALUE + textSize(value)
  if (typeof value !== 'object' || value === null) return VALUE
  let size = CONTAINER
  for (const [name, inner] of Object.entries(value)) size += PROPERTY + textSize(name) + sizeOf(inner)
  return size
}

/** An upper estimate of the heap that metadata takes, with its JSON; 0 for {@link NO_METADATA}. */
export const heapSizeOf = (metadata: JsonObject): number => (metadata === NO_METADATA ? 0 : sizeOf(metadata))
