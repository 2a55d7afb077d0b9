/** Turns violations of schemas into the messages of each field in the error body (§7.1). */
import { ERRORS } from '#base/errors'
import { INVALID_ROLE, ROLE_PATTERN } from '#core/users/roles'
import { BASE64URL_PATTERN, DIGEST_PATTERN, INVALID_TIMESTAMP } from './formats.ts'

export interface FieldViolation {
  readonly keyword: string
  /** JSON pointer (RFC 6901) to the value, or to the object if a property is missing or unknown. */
  readonly instancePath: string
  readonly params: Readonly<Record<string, unknown>>
  readonly message?: string
}

const FORMATS: Readonly<Record<string, string>> = {
  uuid: 'must be a valid id',
  'date-time': INVALID_TIMESTAMP,
}

const PATTERNS = new Map([
  [ROLE_PATTERN, INVALID_ROLE],
  [BASE64URL_PATTERN, 'must be base64url (RFC 4648 §5) without padding'],
  [DIGEST_PATTERN, 'must be a SHA-256 digest in base64url: 43 characters'],
])

/** Sets the message for texts that do not match a pattern, such as `must be four digits`. */
export const describePattern = (pattern: string, message: string): void => {
  PATTERNS.set(pattern, message)
}

const plural = (count: unknown, noun: string, nouns = `${noun}s`): string =>
  `${count} ${count === 1 ? noun : nouns}`

const types = (type: unknown): string => [type].flat().join(' or ')

const MESSAGES: Readonly<Record<string, (params: FieldViolation['params']) => string>> = {
  required: () => 'is required',
  additionalProperties: () => 'is not allowed',
  unevaluatedProperties: () => 'is not allowed',
  type: ({ type }) => `must be ${types(type)}`,
  minLength: ({ limit }) => `must have at least ${plural(limit, 'character')}`,
  maxLength: ({ limit }) => `must have at most ${plural(limit, 'character')}`,
  minimum: ({ limit }) => `must be at least ${limit}`,
  maximum: ({ limit }) => `must be at most ${limit}`,
  minProperties: ({ limit }) => `must have at least ${limit === 1 ? 'one property' : `${limit} properties`}`,
  enum: ({ allowedValues }) => `must be one of ${[allowedValues].flat().join(', ')}`,
  maxItems: ({ limit }) => `must have at most ${plural(limit, 'entry', 'entries')}`,
  uniqueItems: () => 'must not have the same entry twice',
  pattern: ({ pattern }) => PATTERNS.get(String(pattern)) ?? `must match pattern "${pattern}"`,
  format: ({ format }) => FORMATS[String(format)] ?? `must be a valid ${format}`,
}

/** The missing or unknown property, which is not part of `instancePath`. */
const property = ({ keyword, params }: FieldViolation): unknown => {
  if (keyword === 'required') return params.missingProperty
  if (keyword === 'unevaluatedProperties') return params.unevaluatedProperty
  return keyword === 'additionalProperties' ? params.additionalProperty : undefined
}

const fieldName = (violation: FieldViolation): string => {
  const path = violation.instancePath
    .split('/')
    .slice(1)
    .map(part => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  const own = property(violation)
  if (own !== undefined) path.push(String(own))
  // A property name may contain lone surrogates, which not every JSON parser accepts.
  return path.length === 0 ? 'global' : path.join('.').toWellFormed()
}

const messageOf = ({ keyword, instancePath, params, message }: FieldViolation): string => {
  // The body is missing or not an object.
  if (keyword === 'type' && instancePath === '') return ERRORS.bodyRequired.message
  return MESSAGES[keyword]?.(params) ?? message ?? 'is not valid'
}

/** @returns the messages of each field. The record has no prototype, because a client may name a property `__proto__`. */
export const fieldErrors = (violations: readonly FieldViolation[]): Record<string, string[]> => {
  const errors: Record<string, string[]> = Object.create(null)
  for (const violation of violations) {
    const field = fieldName(violation)
    const message = messageOf(violation)
    errors[field] ??= []
    if (!errors[field].includes(message)) errors[field].push(message)
  }
  return errors
}
