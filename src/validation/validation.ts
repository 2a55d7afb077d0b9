/** Validation faults in the words of the error body: every failing field with each of its messages. */

import { Ajv, type ErrorObject } from 'ajv'
import formats from 'ajv-formats'
import { ERRORS } from '../errors.ts'
import { hashViolation } from '../passwords/formats.ts'
import { passwordViolations } from '../passwords/policy.ts'
import { canonicalEmail } from '../users/user.ts'
import {
  emailFaults,
  idListViolations,
  isMoment,
  NO_MOMENT,
  nameFaults,
  newEmailFaults,
  UUID,
} from './formats.ts'

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

/** What schemas here can ask for besides JSON Schema's own keywords. */

interface Fault {
  keyword: string
  message: string
  params: Record<string, unknown>
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

/** `normalize: 'trim'` and so on: changes the text in place, before its length and format are looked at. */
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
  errors?: Partial<Fault>[]
}

const faulty = (keyword: string, validate: KeywordValidator, messages: readonly string[]): boolean => {
  validate.errors = messages.map(message => ({ keyword, message, params: {} }))
  return messages.length === 0
}

/** `chosenPassword: true`: the rules for passwords that are chosen, as opposed to presented. */
const chosenPassword: KeywordValidator = (_on, text, schema, parent) =>
  faulty(
    'chosenPassword',
    chosenPassword,
    passwordViolations(text, schema?.minLength ?? 0, parent?.parentData.email),
  )

/** `emailAddress: 'new' | 'known'`: one for an account, or one that an account may have since the rules were others. */
const emailAddress: KeywordValidator = (kind, email) =>
  faulty('emailAddress', emailAddress, kind === 'new' ? newEmailFaults(email) : emailFaults(email))

/** `personName: true` */
const personName: KeywordValidator = (_on, name) => faulty('personName', personName, nameFaults(name))

/** `passwordHash: true`: what another service has made of a password, in a form that can be verified here. */
const passwordHash: KeywordValidator = (_on, encoded) => {
  const fault = hashViolation(encoded)
  return faulty('passwordHash', passwordHash, fault === null ? [] : [fault])
}

/** `text: 'any' | 'storable'`: what the store could not give back exactly is refused (DESIGN §4). */
const text: KeywordValidator = (kind, value) => {
  const faults: string[] = []
  if (!value.isWellFormed()) faults.push('must be valid Unicode')
  if (kind === 'storable' && value.includes('\0')) faults.push('must not contain NUL')
  return faulty('text', text, faults)
}

/** `idList: 100`: so many ids at most, with commas between them. */
const idList: KeywordValidator = (limit, text) =>
  faulty('idList', idList, idListViolations(text, Number(limit)))

export const addKeywords = (ajv: Ajv): void => {
  // `before` puts them ahead of the other keywords for strings.
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

/** Compiles schemas to validators, which report every fault, and change nothing but what a schema asks for. */

const createAjv = (): Ajv => {
  const ajv = new Ajv({ allErrors: true, useDefaults: true, allowUnionTypes: true, addUsedSchema: false })
  formats.default(ajv)
  ajv.addFormat('date-time', isMoment)
  ajv.addFormat('uuid', UUID)
  // For the documentation: `emailAddress` says why an e-mail is refused.
  ajv.addFormat('email', true)
  addKeywords(ajv)
  return ajv
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null

/** Every string of a schema is checked to be storable text, unless the schema says otherwise: no route has to ask for it. */
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
 * Query strings are all text. Read the numbers and flags of the schema's own properties, in the one spelling that each
 * has; Ajv's coercion would also take `0x10`, and let `Infinity` past `maximum`.
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

/** As Fastify takes it. */
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

/** Compiling is a good part of what a start costs, and routes share schemas: each is compiled once in a process. */
const once = (compile: (schema: object) => Validate) => {
  const compiled = new WeakMap<object, Validate>()
  return (schema: object): Validate => {
    const validate = compiled.get(schema) ?? compile(schema)
    compiled.set(schema, validate)
    return validate
  }
}

/** The validator of JSON by a schema. */
export const jsonValidator = once(compile)

/** The validator of a query string, or of whatever else is all text. */
export const queryValidator = once(compileQuery)
