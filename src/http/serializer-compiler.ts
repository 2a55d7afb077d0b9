/** Compiles response schemas. Most routes share those of errors, and each compilation takes 0.15 ms of start-up. */
import SerializerSelector from '@fastify/fast-json-stringify-compiler'

type Factory = SerializerSelector.SerializerFactory
type Serializer = SerializerSelector.Serializer

const fastifysFactory = SerializerSelector()

const compiled = new Map<string, Serializer>()

/**
 * Fastify's own factory of compilers, which compiles each schema once per process: serializers have no state. With schemas that
 * the app has added (`addSchema`), which a schema may refer to, it compiles each one anew.
 */
export const buildSerializer: Factory = (addedSchemas, options) => {
  const compile = fastifysFactory(addedSchemas, options)
  if (Object.keys(addedSchemas ?? {}).length > 0 || options !== undefined) return compile
  return route => {
    const key = JSON.stringify(route.schema)
    const serializer = compiled.get(key) ?? compile(route)
    compiled.set(key, serializer)
    return serializer
  }
}
