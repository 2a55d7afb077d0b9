/** Validates the input of every route. Input that a route does not declare is rejected. */
import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import { NOTHING } from '#http/validation/compile'
import { validatorCompiler } from '#http/validator-compiler'

export const NO_BODY = { ...NOTHING, type: ['object', 'null'] }

/** The default schema of path parameters: the names in the URL, with any storable text. */
const paramsOf = (url: string): FastifySchema => {
  const names = Array.from(url.matchAll(/:(\w+)|\*/g), ([, name = '*']) => name)
  if (names.length === 0) return {}
  const properties = Object.fromEntries(names.map(name => [name, { type: 'string' }]))
  return { params: { ...NOTHING, properties } }
}

const BODY_METHODS = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])

const takesBody = ({ method }: RouteOptions): boolean => [method].flat().some(name => BODY_METHODS.has(name))

const validation = async (app: FastifyInstance): Promise<void> => {
  app.setValidatorCompiler(validatorCompiler(app.config.environment))

  app.addHook('onRoute', route => {
    const schema: FastifySchema = { querystring: NOTHING, ...paramsOf(route.url), ...route.schema }
    if (takesBody(route)) schema.body ??= NO_BODY
    route.schema = schema
  })
}

export default fp(validation, { name: 'validation', dependencies: ['error-handler'] })
