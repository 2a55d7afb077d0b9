/** Validation faults in the words of the error body: every failing field with each of its messages. */

import { ERRORS } from '../errors.ts'
import { NO_MOMENT } from './formats.ts'

/** What is used of a fault as Ajv reports one. */
export interface FieldViolation {
  readonly keyword: string
  /** JSON pointer (RFC 6901) to the value; of an object, where a property is missing or unknown. */
  readonly instancePath: string
  readonly params: Readonly<Record<string, unknown>>
  readonly message?: string
}

const FORMATS: Readonly<Record<string, string>> = {
  uuid: 'must be a valid id',
  'date-time': NO_MOMENT,
}

const plural = (count: unknown, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

const types = (type: unknown): string => [type].flat().join(' or ')

const MESSAGES: Readonly<Record<string, (params: FieldViolation['params']) => string>> = {
  required: () => 'is required',
  additionalProperties: () => 'is not allowed',
  type: ({ type }) => `must be ${types(type)}`,
  minLength: ({ limit }) => `must have at least ${plural(limit, 'character')}`,
  maxLength: ({ limit }) => `must have at most ${plural(limit, 'character')}`,
  minimum: ({ limit }) => `must be at least ${limit}`,
  maximum: ({ limit }) => `must be at most ${limit}`,
  minProperties: ({ limit }) => `must have at least ${limit === 1 ? 'one property' : `${limit} properties`}`,
  enum: ({ allowedValues }) => `must be one of ${[allowedValues].flat().join(', ')}`,
  format: ({ format }) => FORMATS[String(format)] ?? `must be a valid ${format}`,
}

/** The property that a fault is about: of a missing or unknown one, the object's own path does not say. */
const property = ({ keyword, params }: FieldViolation): unknown => {
  if (keyword === 'required') return params.missingProperty
  return keyword === 'additionalProperties' ? params.additionalProperty : undefined
}

const fieldName = (fault: FieldViolation): string => {
  const path = fault.instancePath
    .split('/')
    .slice(1)
    .map(part => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  const own = property(fault)
  if (own !== undefined) path.push(String(own))
  // A client may have given a name that is no text: not every parser of JSON would take it back.
  return path.length === 0 ? 'global' : path.join('.').toWellFormed()
}

const messageOf = ({ keyword, instancePath, params, message }: FieldViolation): string => {
  // A body that is missing, or is no object, is a fault of the whole.
  if (keyword === 'type' && instancePath === '') return ERRORS.bodyRequired.message
  return MESSAGES[keyword]?.(params) ?? message ?? 'is not valid'
}

/** A record without a prototype: a client may have named a property `__proto__`. */
export const fieldErrors = (faults: readonly FieldViolation[]): Record<string, string[]> => {
  const errors: Record<string, string[]> = Object.create(null)
  for (const fault of faults) {
    const field = fieldName(fault)
    const message = messageOf(fault)
    errors[field] ??= []
    if (!errors[field].includes(message)) errors[field].push(message)
  }
  return errors
}
