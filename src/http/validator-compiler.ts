/** Compiles the schemas of what routes receive. */
import type { FastifyServerOptions } from 'fastify'
import type { FastifyRouteSchemaDef } from 'fastify/types/schema.js'
import {
  jsonValidator,
  lazyJsonValidator,
  lazyQueryValidator,
  queryValidator,
  type Validate,
} from './validation/compile.ts'

type Definition = Pick<FastifyRouteSchemaDef<object>, 'schema' | 'httpPart'>

type Factories = NonNullable<NonNullable<FastifyServerOptions['schemaController']>['compilersFactory']>
type BuildValidator = NonNullable<Factories['buildValidator']>

const validatorAtStart = ({ schema, httpPart }: Definition): Validate =>
  httpPart === 'body' ? jsonValidator(schema) : queryValidator(schema)

const validatorOnDemand = ({ schema, httpPart }: Definition): Validate =>
  httpPart === 'body' ? lazyJsonValidator(schema) : lazyQueryValidator(schema)

/**
 * In development it compiles at the start, so that an error in a schema stops it; else on demand (docs/design.md, "Start and idle memory"),
 * which saves 270 ms of CPU (a third) and 12 MB of a start.
 */
export const validatorCompiler = (environment: string) =>
  environment === 'development' ? validatorAtStart : validatorOnDemand

/**
 * Replaces Fastify's own factory, which would load a compiler that no route uses. The cast is needed because Fastify's type of the factory
 * omits the parameter of compilers.
 */
export const buildValidator = (() => validatorAtStart) as unknown as BuildValidator
