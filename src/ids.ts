/** Ids of everything that has one: UUIDv7 (RFC 9562 §5.7), which sort by the timestamp that they were made at. */
import { randomFillSync, randomInt } from 'node:crypto'
import { v7 } from 'uuid'

const LENGTH = 16

/**
 * Random bytes for as many ids as it has room for: to ask for those of each id alone took 8 % of the event loop's time for a
 * sign-up.
 */
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

/** Goes round: what counts is that the ids of one millisecond sort as they were made. */
let sequence = randomInt(2 ** 31)

/** The 48 bits of a timestamp (milliseconds since the epoch) that ids begin with, in hexadecimal. */
export const hexMoment = (moment: number): string => Math.max(0, moment).toString(16).padStart(12, '0')

/** The first id that can have been made at this timestamp. */
export const firstIdAt = (moment: number): string => {
  const time = hexMoment(moment)
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`
}

/** @param timestamp milliseconds since the epoch. */
export const newId = (moment = Date.now()): string => {
  sequence = (sequence + 1) | 0
  return v7({ msecs: moment, seq: sequence, random: randomPart() })
}
