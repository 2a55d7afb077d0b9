/** How moments and lists of ids are written. */
import { fullFormats } from 'ajv-formats/dist/formats.js'
import { parseIds } from '../users/user-list.ts'

const { validate: isDateTime } = fullFormats['date-time'] as { validate: (text: string) => boolean }

/** Ajv's own format takes `urn:uuid:` as well, which no id has. */
export const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** What is said of a moment that is none. */
export const NO_MOMENT = 'must be a moment such as 2026-01-31T09:30:00Z, with its time zone'

/** RFC 3339 §5.6 with a `T`. Ajv's format also takes a blank there, as a `+` in a URL is read, and zones without a colon. */
const SHAPE = /^[\d-]{10}T[\d:]{8}(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i

/** A date-time that can be kept and given back: a leap second is none, nor what is beyond four digits of a year in UTC. */
export const isMoment = (text: string): boolean => {
  if (!SHAPE.test(text) || !isDateTime(text)) return false
  const moment = new Date(text)
  return !Number.isNaN(moment.valueOf()) && /^\d/.test(moment.toISOString())
}

/** What is wrong with a list of ids: two messages at most, however long it is. */
export const idListFaults = (list: string, limit: number): string[] => {
  const ids = parseIds(list)
  return [
    ...(ids.length > limit ? [`must have at most ${limit} ids`] : []),
    ...(ids.every(id => UUID.test(id)) ? [] : ['must be valid ids with commas between them']),
  ]
}

/** Moments are kept in whole milliseconds: one that lies within a millisecond is after all of it. */
const WITHIN_MILLISECOND = /\.\d{3}\d*[1-9]/

/** The bounds of a filter, in milliseconds since the epoch; neither is included. */
export const laterThan = (moment: string): number => Date.parse(moment)
export const earlierThan = (moment: string): number =>
  Date.parse(moment) + Number(WITHIN_MILLISECOND.test(moment))
