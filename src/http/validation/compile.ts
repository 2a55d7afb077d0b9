/** Compiles schemas to validators that report all errors of all fields. Ajv is loaded with the first schema. */
import { createRequire } from 'node:module'
import type { Ajv, ErrorObject } from 'ajv'
import { isTimestamp, UUID } from './formats.ts'
import { KEYWORDS } from './keywords.ts'

// Validators run synchronously, so it cannot be imported.
const require = createRequire(import.meta.url)

const createAjv = (): Ajv => {
  const { Ajv } = require('ajv') as typeof import('ajv')
  const formats = require('ajv-formats') as typeof import('ajv-formats').default
  const ajv = new Ajv({ allErrors: true, useDefaults: true, allowUnionTypes: true, addUsedSchema: false })
  formats.default(ajv)
  ajv.addFormat('date-time', isTimestamp)
  ajv.addFormat('uuid', UUID)
  // For the OpenAPI document only: `emailAddress` validates.
  ajv.addFormat('email', true)
  for (const keyword of KEYWORDS) ajv.addKeyword(keyword)
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
    const coerce = COERCE[String([type].flat()[0])]
    return coerce === undefined ? [] : [{ name, coerce }]
  })
  return (data: Record<string, unknown>): void => {
    for (const { name, coerce } of coercions) {
      const value = data[name]
      if (typeof value === 'string') data[name] = coerce(value)
    }
  }
}

export interface Validate {
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

const functionNumbers = new WeakMap<object, number>()
let functions = 0

const numberOf = (value: object): number => {
  const number = functionNumbers.get(value) ?? ++functions
  functionNumbers.set(value, number)
  return number
}

/** JSON leaves functions out. Keywords can have them: the validators of `metadata` differ between apps. */
const keyOf = (schema: object): string =>
  JSON.stringify(schema, (_name, value) =>
    typeof value === 'function' ? { function: numberOf(value) } : value,
  )

/**
 * Compiles each schema once per process: compilation is a large part of start-up time, and routes share schemas. Several apps in a
 * process have equal schemas that are not identical, because some are made for a configuration.
 */
const once = (compile: (schema: object) => Validate) => {
  const compiled = new Map<string, Validate>()
  return (schema: object): Validate => {
    const key = keyOf(schema)
    const validate = compiled.get(key) ?? compile(schema)
    compiled.set(key, validate)
    return validate
  }
}

export const jsonValidator = once(compile)

/** Compiles a schema for query strings, path parameters and other text. */
export const queryValidator = once(compileQuery)

/** The schema of undeclared input: rejects every property. */
export const NOTHING = { type: 'object', properties: {}, additionalProperties: false }

const unknownProperty = (additionalProperty: string): ErrorObject => ({
  keyword: 'additionalProperties',
  instancePath: '',
  schemaPath: '#/additionalProperties',
  params: { additionalProperty },
})

/**
 * Validates by {@link NOTHING} without Ajv, which takes 20 ms and 1.7 MB: the routes that are called most, and all that an idle process
 * is asked for, have no other schema.
 */
const rejectProperties: Validate = data => {
  for (const _ in data) {
    rejectProperties.errors = Object.keys(data).map(unknownProperty)
    return false
  }
  return true
}

const onDemand =
  (compile: (schema: object) => Validate) =>
  (schema: object): Validate => {
    let validate: Validate | undefined
    const validateOnDemand: Validate = data => {
      validate ??= compile(schema)
      if (validate(data)) return true
      validateOnDemand.errors = validate.errors ?? null
      return false
    }
    return validateOnDemand
  }

/** A validator for JSON that compiles its schema with the first call, which throws an error in the schema. */
export const lazyJsonValidator = onDemand(jsonValidator)

const queryOnDemand = onDemand(queryValidator)
/** A validator for query strings, path parameters and other text. Its first call compiles the schema, and throws an error in it. */
export const lazyQueryValidator = (schema: object): Validate =>
  schema === NOTHING ? rejectProperties : queryOnDemand(schema)
