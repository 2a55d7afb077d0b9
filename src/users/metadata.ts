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
