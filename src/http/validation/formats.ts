/** Formats of e-mail addresses, names, timestamps and ids. */
import { fullFormats } from 'ajv-formats/dist/formats.js'
import { ID } from '#base/ids'
import { parseIds } from '#core/users/listing'

/** RFC 5322 §3.4.1 in ASCII, without comments, quotes and address literals; the domain has at least two labels. */
const EMAIL = fullFormats.email as RegExp

/** Addresses that RFC 5322 and RFC 6531 allow but this service does not, with the error message. */
const UNSUPPORTED_EMAILS: readonly (readonly [RegExp, string])[] = [
  [/\P{ASCII}/u, 'must have ASCII characters only: write an international domain in its xn-- form'],
  [/^".*"@/s, 'must not have quotes before the @'],
  [/@\[/, 'must have a domain name after the @, not an IP address'],
]

/** RFC 5321 §4.5.3.1.1 and RFC 1035 §2.3.4, in octets. */
const LOCAL_PART_LENGTH = 64
const LABEL_LENGTH = 63

/** @returns the error of an e-mail address that an existing account may have: at most one message. */
export const emailViolations = (email: string): string[] => {
  if (EMAIL.test(email)) return []
  const unsupported = UNSUPPORTED_EMAILS.find(([form]) => form.test(email))
  return [unsupported?.[1] ?? 'must be a valid e-mail address']
}

/** @returns the errors of an e-mail address for an account, also of addresses that cannot receive mail. */
export const newEmailViolations = (email: string): string[] => {
  const violations = emailViolations(email)
  if (violations.length > 0) return violations
  const at = email.lastIndexOf('@')
  const labels = email.slice(at + 1).split('.')
  if (at > LOCAL_PART_LENGTH)
    violations.push(`must have at most ${LOCAL_PART_LENGTH} characters before the @`)
  if (labels.some(label => label.length > LABEL_LENGTH))
    violations.push(`must have at most ${LABEL_LENGTH} characters between the dots of its domain`)
  if (/^\d+$/.test(labels.at(-1) ?? ''))
    violations.push('must have a domain name after the @, not an IP address or a number')
  return violations
}

/** Without NUL, here and below: `text: 'storable'` rejects it. */
const CONTROLS = /[\p{Zl}\p{Zp}]|(?!\0)\p{Cc}/u

/** Embeddings, overrides and isolates, which reorder the text around a name. The marks U+200E, U+200F and U+061C do not. */
const DIRECTIONS = /[\u202a-\u202e\u2066-\u2069]/

/**
 * A character that is displayed everywhere: no white space, no format character, no combining mark, no noncharacter such as U+FFFE, and
 * none for private use. Code points without a character count: a later version of Unicode may give them one.
 */
const VISIBLE =
  /[^\p{White_Space}\p{Cc}\p{Cf}\p{Co}\p{M}\p{Noncharacter_Code_Point}\p{Default_Ignorable_Code_Point}\u2800]|\0/u

/** @returns the errors of a person's name. The length check reports an empty one. */
export const nameViolations = (name: string): string[] => [
  ...(CONTROLS.test(name) ? ['must not have line breaks or other control characters'] : []),
  ...(DIRECTIONS.test(name)
    ? [
        'must not have characters that change the direction of text: leave out U+202A to U+202E and U+2066 to U+2069',
      ]
    : []),
  ...(name !== '' && !VISIBLE.test(name) ? ['must have at least one visible character'] : []),
]

const { validate: isDateTime } = fullFormats['date-time'] as { validate: (text: string) => boolean }

/** Ajv's own format also accepts `urn:uuid:`. */
export const UUID = new RegExp(ID, 'i')

export const INVALID_TIMESTAMP = 'must be a timestamp with a time zone, such as 2026-01-31T09:30:00Z'

/** RFC 3339 §5.6 with a `T`. Ajv's format also accepts a blank (a `+` in a URL is decoded to one) and zones without a colon. */
const SHAPE = /^[\d-]{10}T[\d:]{8}(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i

/** Whether a date-time can be stored and returned unchanged: no leap seconds, and four-digit years in UTC. */
export const isTimestamp = (text: string): boolean => {
  if (!SHAPE.test(text) || !isDateTime(text)) return false
  const date = new Date(text)
  return !Number.isNaN(date.valueOf()) && /^\d/.test(date.toISOString())
}

/** @returns the errors of a list of ids: at most two messages, regardless of its length. */
export const idListViolations = (list: string, limit: number): string[] => {
  const ids = parseIds(list)
  return [
    ...(ids.length > limit ? [`must have at most ${limit} ids`] : []),
    ...(ids.every(id => UUID.test(id)) ? [] : ['must be valid ids, separated by commas']),
  ]
}

/** Timestamps are stored in milliseconds. A bound with a fraction of one is rounded up, to include that millisecond. */
const WITHIN_MILLISECOND = /\.\d{3}\d*[1-9]/

/** The exclusive bounds of a filter, in milliseconds since the epoch. */
export const laterThan = (timestamp: string): number => Date.parse(timestamp)
export const earlierThan = (timestamp: string): number =>
  Date.parse(timestamp) + Number(WITHIN_MILLISECOND.test(timestamp))

/** Base64url (RFC 4648 §5) without padding. Canonical: the last character has no bits after the last byte. */
export const BASE64URL_PATTERN =
  '^(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-][AQgw]|[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048])?$'

/** A SHA-256 digest in base64url: 32 bytes, whose last character has two bits that are zero. */
export const DIGEST_PATTERN = '^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$'

export { clientAddress as canonicalAddress } from '../ip-address.ts'
