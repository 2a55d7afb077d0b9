/**
 * CSRF protection (DESIGN §5). Browsers send the cookie with requests from any page, so an unsafe request that is authenticated by
 * the cookie must come from this service's origin or a configured one.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ServiceError } from '../src/errors.ts'

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])

const isAllowedOrigin = (
  { headers, protocol, host }: FastifyRequest,
  allowed: readonly string[],
): boolean => {
  const site = headers['sec-fetch-site']
  if (site === 'same-origin' || site === 'none') return true
  const { origin } = headers
  if (origin !== undefined) return origin === `${protocol}://${host}` || allowed.includes(origin)
  // Neither header: not a current browser, but curl, for example.
  return site === undefined
}

const csrf = async (app: FastifyInstance): Promise<void> => {
  const { allowedOrigins } = app.config

  app.addHook('onRequest', function rejectCrossSite(request, _reply, done) {
    if (request.principal === null || request.accessTokenSource !== 'cookie') return done()
    if (SAFE_METHODS.has(request.method) || isAllowedOrigin(request, allowedOrigins)) return done()
    done(new ServiceError('csrf'))
  })
}

export default fp(csrf, { name: 'csrf', dependencies: ['authentication'] })
