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

type Definition = Pick<FastifyRouteSchemaDef<object>, 'schema' | 'httpPart'>

type Factories = NonNullable<NonNullable<FastifyServerOptions['schemaController']>['compilersFactory']>
type BuildValidator = NonNullable<Factories['buildValidator']>

const validatorAtStart = ({ schema, httpPart }: Definition): Validate =>
  httpPart === 'body' ? jsonValidator(schema) : queryValidator(schema)

const validatorOnDemand = ({ schema, httpPart }: Definition): Validate =>
  httpPart === 'body' ? lazyJsonValidator(schema) : lazyQueryValidator(schema)

/** In production on demand; else at the start, which an error in a schema stops (DESIGN §18). */
export const validatorCompiler = ({ isProduction }: { readonly isProduction: boolean }) =>
  isProduction ? validatorOnDemand : validatorAtStart

/** In place of Fastify's own factory, with which Fastify would load a compiler that no route uses. Its type lacks what compilers receive. */
export const buildValidator = (() => validatorAtStart) as unknown as BuildValidator
