/** How e-mails, names, timestamps and lists of ids are written. */
import { fullFormats } from 'ajv-formats/dist/formats.js'
import { ID } from '../ids.ts'
import { parseIds } from '../users/listing.ts'

/** RFC 5322 §3.4.1 without comments, quotes and address literals, in ASCII; its domain has two labels at least. */
const EMAIL = fullFormats.email as RegExp

/** What RFC 5322 and RFC 6531 allow and this service does not, and what is said of it. */
const UNSUPPORTED_EMAILS: readonly (readonly [RegExp, string])[] = [
  [/\P{ASCII}/u, 'must have ASCII characters only: write an international domain in its xn-- form'],
  [/^".*"@/s, 'must not have quotes before the @'],
  [/@\[/, 'must have a domain name after the @, not an IP address'],
]

/** RFC 5321 §4.5.3.1.1 and RFC 1035 §2.3.4, in octets. */
const LOCAL_PART_LENGTH = 64
const LABEL_LENGTH = 63

/** What is wrong with an e-mail that an account may have already. At most one message. */
export const emailFaults = (email: string): string[] => {
  if (EMAIL.test(email)) return []
  const unsupported = UNSUPPORTED_EMAILS.find(([form]) => form.test(email))
  return [unsupported?.[1] ?? 'must be a valid e-mail address']
}

/** What is wrong with an e-mail for an account: mail to it could not be delivered. */
export const newEmailFaults = (email: string): string[] => {
  const faults = emailFaults(email)
  if (faults.length > 0) return faults
  const at = email.lastIndexOf('@')
  const labels = email.slice(at + 1).split('.')
  if (at > LOCAL_PART_LENGTH) faults.push(`must have at most ${LOCAL_PART_LENGTH} characters before the @`)
  if (labels.some(label => label.length > LABEL_LENGTH))
    faults.push(`must have at most ${LABEL_LENGTH} characters between the dots of its domain`)
  if (/^\d+$/.test(labels.at(-1) ?? ''))
    faults.push('must have a domain name after the @, not an IP address or a number')
  return faults
}

/** Here and below NUL is left to the rule of the store. */
const CONTROLS = /[\p{Zl}\p{Zp}]|(?!\0)\p{Cc}/u

/** Embeddings, overrides and isolates: they reorder what stands around a name. The marks U+200E, U+200F and U+061C do not. */
const DIRECTIONS = /[\u202a-\u202e\u2066-\u2069]/

/** Anything but blanks, what is never displayed, and marks on a letter that is not there. */
const VISIBLE = /[^\p{White_Space}\p{Cc}\p{Cf}\p{M}\p{Default_Ignorable_Code_Point}\u2800]|\0/u

/** What is wrong with a person's name; of an empty one its length tells. */
export const nameFaults = (name: string): string[] => [
  ...(CONTROLS.test(name) ? ['must not have line breaks or other control characters'] : []),
  ...(DIRECTIONS.test(name)
    ? [
        'must not have characters that change the direction of text: leave out U+202A to U+202E and U+2066 to U+2069',
      ]
    : []),
  ...(name !== '' && !VISIBLE.test(name) ? ['must have at least one visible character'] : []),
]

const { validate: isDateTime } = fullFormats['date-time'] as { validate: (text: string) => boolean }

/** Ajv's own format takes `urn:uuid:` as well, which no id has. */
export const UUID = new RegExp(ID, 'i')

/** What is said of a timestamp that is none. */
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
export const idListViolations = (list: string, limit: number): string[] => {
  const ids = parseIds(list)
  return [
    ...(ids.length > limit ? [`must have at most ${limit} ids`] : []),
    ...(ids.every(id => UUID.test(id)) ? [] : ['must be valid ids with commas between them']),
  ]
}

/** Timestamps are kept in whole milliseconds: one that lies within a millisecond is after all of it. */
const WITHIN_MILLISECOND = /\.\d{3}\d*[1-9]/

/** The bounds of a filter, in milliseconds since the epoch; neither is included. */
export const laterThan = (moment: string): number => Date.parse(moment)
export const earlierThan = (moment: string): number =>
  Date.parse(moment) + Number(WITHIN_MILLISECOND.test(moment))
