/** Compiles schemas to validators, which report every fault, and change nothing but what a schema asks for. */
import { Ajv, type ErrorObject } from 'ajv'
import formats from 'ajv-formats'
import { isMoment, UUID } from './formats.ts'
import { addKeywords } from './schema-keywords.ts'

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
