/** Compiles the schemas of what routes receive. */
import type { FastifyServerOptions } from 'fastify'
import type { FastifyRouteSchemaDef } from 'fastify/types/schema.js'
import {
  jsonValidator,
  lazyJsonValidator,
  lazyQueryValidator,
  queryValidator,
  type Validate,
} from '../validation/compile.ts'
import { isOwnRoute } from './own-routes.ts'

type Definition = Pick<FastifyRouteSchemaDef<object>, 'schema' | 'httpPart' | 'url'>

type Factories = NonNullable<NonNullable<FastifyServerOptions['schemaController']>['compilersFactory']>
type BuildValidator = NonNullable<Factories['buildValidator']>

/** Compiles at the start, so that an error in a schema stops it. */
export const validatorAtStart = ({ schema, httpPart }: Definition): Validate =>
  httpPart === 'body' ? jsonValidator(schema) : queryValidator(schema)

const validatorOnDemand = ({ schema, httpPart }: Definition): Validate =>
  httpPart === 'body' ? lazyJsonValidator(schema) : lazyQueryValidator(schema)

/** @param prefix of the service in a host application. */
export const validatorCompiler =
  (prefix = '') =>
  (definition: Definition): Validate =>
    isOwnRoute((definition.url ?? '').slice(prefix.length))
      ? validatorOnDemand(definition)
      : validatorAtStart(definition)

/** In place of Fastify's own factory, with which Fastify would load a compiler that no route uses. Its type lacks what compilers receive. */
export const buildValidator = (() => validatorCompiler()) as unknown as BuildValidator
