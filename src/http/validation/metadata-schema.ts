/** Compiles the JSON Schema (2020-12) of an operator. Ajv is loaded only where a schema is configured. */
import { createRequire } from 'node:module'
import type { MetadataSchema } from './metadata.ts'

const require = createRequire(import.meta.url)

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The references of a schema to another document. Properties may have the names of keywords: their values are no text. */
function* remoteReferences(schema: unknown): Generator<string> {
  if (typeof schema !== 'object' || schema === null) return
  for (const [name, value] of Object.entries(schema)) {
    const isReference = name === '$ref' || name === '$dynamicRef'
    if (isReference && typeof value === 'string' && !value.startsWith('#')) yield value
    yield* remoteReferences(value)
  }
}

/**
 * Formats are asserted, unknown keywords and formats are errors.
 * @throws {Error} with what is wrong with the schema, as the end of a sentence.
 */
export const compileMetadataSchema = (schema: unknown): MetadataSchema => {
  if (!isObject(schema)) throw new Error('it must be a JSON object')
  const [remote] = remoteReferences(schema)
  if (remote !== undefined)
    throw new Error(`it refers to ${remote}: only references within the file (#/…) are allowed`)
  if ('$async' in schema) throw new Error('it must not have $async')
  const { Ajv2020 } = require('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js')
  const { default: formats } = require('ajv-formats') as typeof import('ajv-formats')
  const ajv = new Ajv2020({
    allErrors: true,
    strictTypes: false,
    strictTuples: false,
    allowUnionTypes: true,
    logger: false,
  })
  ;(formats as unknown as (instance: typeof ajv) => void)(ajv)
  const validate = ajv.compile(schema)
  try {
    validate({})
  } catch {
    throw new Error('it refers to itself without end')
  }
  return {
    schema,
    validate(metadata) {
      try {
        return validate(metadata) ? [] : [...(validate.errors ?? [])]
      } catch (error) {
        // A schema that refers to itself without end for this value only.
        if (!(error instanceof RangeError)) throw error
        return [{ keyword: 'metadata', params: {}, message: 'cannot be checked', instancePath: '' }]
      }
    },
  }
}
