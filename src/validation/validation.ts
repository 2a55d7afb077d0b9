/**
 * Compiles schemas to validators that report all errors of all fields, and turns those errors into the error body. First the
 * messages, then the keywords that schemas can use beside those of JSON Schema, then the compilers.
 */
import { Ajv, type ErrorObject } from 'ajv'
import formats from 'ajv-formats'
import { ERRORS } from '../errors.ts'
import { hashViolation } from '../passwords/formats.ts'
import { passwordViolations } from '../passwords/policy.ts'
import { canonicalEmail } from '../users/user.ts'
import {
  emailViolations,
  INVALID_TIMESTAMP,
  idListViolations,
  isTimestamp,
  nameViolations,
  newEmailViolations,
  UUID,
} from './formats.ts'

/** An error of Ajv, as far as it is used. */
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

/** The missing or unknown property, which is not part of `instancePath`. */
const property = ({ keyword, params }: FieldViolation): unknown => {
  if (keyword === 'required') return params.missingProperty
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

interface Parent {
  readonly parentData: Record<string | number, unknown>
  readonly parentDataProperty: string | number
}

const NORMALIZE: Readonly<Record<string, (text: string) => string>> = {
  trim: text => text.trim(),
  email: canonicalEmail,
  lower: text => text.toLowerCase(),
}

/** `normalize: 'trim' | 'email' | 'lower'`: changes the text in place, before its length and format are checked. */
const normalize = (name: string, text: string, _schema: unknown, parent?: Parent): boolean => {
  if (parent !== undefined) parent.parentData[parent.parentDataProperty] = NORMALIZE[name]?.(text) ?? text
  return true
}

interface KeywordValidator {
  (
    value: unknown,
    text: string,
    schema?: { readonly minLength?: number; readonly [keyword: string]: unknown },
    parent?: Parent,
  ): boolean
  errors?: Pick<FieldViolation, 'keyword' | 'message' | 'params'>[]
}

/** Reports the messages as Ajv expects it. @returns whether the value is valid. */
const report = (keyword: string, validate: KeywordValidator, messages: readonly string[]): boolean => {
  validate.errors = messages.map(message => ({ keyword, message, params: {} }))
  return messages.length === 0
}

/** `chosenPassword: true`: the rules for new passwords. */
const chosenPassword: KeywordValidator = (_on, text, schema, parent) =>
  report(
    'chosenPassword',
    chosenPassword,
    passwordViolations(text, schema?.minLength ?? 0, parent?.parentData.email),
  )

/** `emailAddress: 'new' | 'known'`: the rules for new addresses, or for those that existing accounts may have. */
const emailAddress: KeywordValidator = (kind, email) =>
  report('emailAddress', emailAddress, kind === 'new' ? newEmailViolations(email) : emailViolations(email))

/** `personName: true` */
const personName: KeywordValidator = (_on, name) => report('personName', personName, nameViolations(name))

/** `passwordHash: true`: a hash of another service, in a format that can be verified here. */
const passwordHash: KeywordValidator = (_on, encoded) => {
  const violation = hashViolation(encoded)
  return report('passwordHash', passwordHash, violation === null ? [] : [violation])
}

/** `text: 'any' | 'storable'`: rejects text that a store could not return exactly (DESIGN §4). */
const text: KeywordValidator = (kind, value) => {
  const violations: string[] = []
  if (!value.isWellFormed()) violations.push('must be valid Unicode')
  if (kind === 'storable' && value.includes('\0')) violations.push('must not contain NUL')
  return report('text', text, violations)
}

/** `idList: 100`: at most 100 ids, separated by commas. */
const idList: KeywordValidator = (limit, text) =>
  report('idList', idList, idListViolations(text, Number(limit)))

const addKeywords = (ajv: Ajv): void => {
  // `before` runs it before the other keywords for strings.
  ajv.addKeyword({
    keyword: 'normalize',
    type: 'string',
    modifying: true,
    before: 'maxLength',
    validate: normalize,
    errors: false,
  })
  const rules = { text, emailAddress, personName, chosenPassword, passwordHash, idList }
  for (const [keyword, validate] of Object.entries(rules))
    ajv.addKeyword({ keyword, type: 'string', validate, errors: true })
}

const createAjv = (): Ajv => {
  const ajv = new Ajv({ allErrors: true, useDefaults: true, allowUnionTypes: true, addUsedSchema: false })
  formats.default(ajv)
  ajv.addFormat('date-time', isTimestamp)
  ajv.addFormat('uuid', UUID)
  // For the OpenAPI document only: `emailAddress` validates.
  ajv.addFormat('email', true)
  addKeywords(ajv)
  return ajv
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null

/** Adds `text: 'storable'` to every string schema that has no `text`, so that no route can forget it. */
const withStorableText = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(withStorableText)
  if (!isObject(schema)) return schema
  const copy: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(schema)) copy[key] = withStorableText(value)
  if ([schema.type].flat().includes('string')) copy.text ??= 'storable'
  return copy
}

const COERCE: Readonly<Record<string, (text: string) => unknown>> = {
  integer: text => (/^-?\d{1,15}$/.test(text) ? Number(text) : text),
  boolean: text => (text === 'true' ? true : text === 'false' ? false : text),
}

/**
 * Converts integers and booleans of a query string, where every value is text. Ajv's coercion would also accept `0x10`, and let
 * `Infinity` past `maximum`.
 */
const queryCoercion = (properties: Record<string, { type?: unknown }>) => {
  const coercions = Object.entries(properties).flatMap(([name, { type }]) => {
    const coerce = COERCE[String(type)]
    return coerce === undefined ? [] : [{ name, coerce }]
  })
  return (data: Record<string, unknown>): void => {
    for (const { name, coerce } of coercions) {
      const value = data[name]
      if (typeof value === 'string') data[name] = coerce(value)
    }
  }
}

/** A validator as Fastify expects it. */
interface Validate {
  (data: Record<string, unknown>): boolean
  errors?: ErrorObject[] | null
}

let ajv: Ajv | undefined

const compile = (schema: object): Validate => {
  ajv ??= createAjv()
  return ajv.compile(withStorableText(schema) as object) as Validate
}

const compileQuery = (schema: object): Validate => {
  const validate = compile(schema)
  const { properties = {} } = schema as { properties?: Record<string, { type?: unknown }> }
  const coerce = queryCoercion(properties)
  const validateQuery: Validate = data => {
    coerce(data)
    const valid = validate(data)
    validateQuery.errors = validate.errors ?? null
    return valid
  }
  return validateQuery
}

/** Compiles each schema once per process: compilation is a large part of start-up time, and routes share schemas. */
const once = (compile: (schema: object) => Validate) => {
  const compiled = new WeakMap<object, Validate>()
  return (schema: object): Validate => {
    const validate = compiled.get(schema) ?? compile(schema)
    compiled.set(schema, validate)
    return validate
  }
}

/** Compiles a schema for JSON. */
export const jsonValidator = once(compile)

/** Compiles a schema for query strings, path parameters and other text. */
export const queryValidator = once(compileQuery)
