/** Ids: UUIDv7 (RFC 9562 §5.7), which sort by the time of their creation. */
import { randomFillSync, randomInt } from 'node:crypto'
import { v7 } from 'uuid'
import { asciiLowerCase, asciiTrim } from './ascii.ts'

const LENGTH = 16

/** Random bytes for 256 ids. Generating them for each id took 8 % of the event loop's time for a sign-up. */
const pool = new Uint8Array(LENGTH * 256)
let used = pool.length

const randomPart = (): Uint8Array => {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  used += LENGTH
  return pool.subarray(used - LENGTH, used)
}

/** An id as it is stored, in lower case. */
export const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** An id that a person has entered, in the form in which ids are stored (RFC 9562 §4). */
export const canonicalId = (text: string): string => asciiLowerCase(asciiTrim(text))

/** Wraps around. It only keeps the ids of one millisecond in order of creation. */
let sequence = randomInt(2 ** 31)

/** @param timestamp milliseconds since the epoch. @returns the 48 bits that ids begin with, in hexadecimal. */
export const hexTimestamp = (timestamp: number): string =>
  Math.max(0, timestamp).toString(16).padStart(12, '0')

/** @param timestamp milliseconds since the epoch. @returns the lowest id of this time. */
export const firstIdAt = (timestamp: number): string => {
  const time = hexTimestamp(timestamp)
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`
}

/**
 * @param timestamp milliseconds since the epoch.
 * @param order 32 bits, which order the ids of one millisecond.
 * @param random 16 bytes.
 * @returns the same id for the same arguments.
 */
export const composeId = (timestamp: number, order: number, random: Uint8Array): string =>
  v7({ msecs: timestamp, seq: order, random })

/** @param timestamp milliseconds since the epoch. */
export const newId = (timestamp = Date.now()): string => {
  sequence = (sequence + 1) | 0
  return composeId(timestamp, sequence, randomPart())
}
