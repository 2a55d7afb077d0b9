/**
 * Compiles response schemas on demand. The library is loaded with the first one: a start takes 20 to 70 ms of CPU and 4 MB less than if
 * it compiled all of them.
 */
import { createRequire } from 'node:module'
import type SerializerSelector from '@fastify/fast-json-stringify-compiler'

type Factory = SerializerSelector.SerializerFactory
type Compiler = SerializerSelector.SerializerCompiler
type Serializer = SerializerSelector.Serializer

// Serializers run synchronously, so it cannot be imported.
const require = createRequire(import.meta.url)

const fastifysFactory: Factory = (addedSchemas, options) => {
  const selector = require('@fastify/fast-json-stringify-compiler') as typeof SerializerSelector
  return selector()(addedSchemas, options)
}

const compiled = new Map<string, Serializer>()

/** Examples change nothing, and those of errors differ from route to route. A property of this name has a schema, which is no list. */
const withoutExamples = (key: string, value: unknown): unknown =>
  key === 'examples' && Array.isArray(value) ? undefined : value

let fastifysCompiler: Compiler | undefined

/** Compiles each schema once per process: serializers have no state, and most routes share the schemas of errors. */
const compileOnce: Compiler = route => {
  const key = JSON.stringify(route.schema, withoutExamples)
  fastifysCompiler ??= fastifysFactory({})
  const serializer = compiled.get(key) ?? fastifysCompiler(route)
  compiled.set(key, serializer)
  return serializer
}

const compileOnDemand: Compiler = route => {
  let serializer: Serializer | undefined
  return data => {
    serializer ??= compileOnce(route)
    return serializer(data)
  }
}

/**
 * The factory of an app's compilers. In development they compile at the start, so that an error in a schema stops it; else on demand
 * (docs/design.md, "Start and idle memory"). With schemas that the app has added (`addSchema`), which a schema may refer to, each schema is
 * compiled anew, at the start.
 */
export const serializerFactory =
  (environment: string): Factory =>
  (addedSchemas, options) => {
    if (Object.keys(addedSchemas ?? {}).length > 0 || options !== undefined)
      return fastifysFactory(addedSchemas, options)
    return environment === 'development' ? compileOnce : compileOnDemand
  }
