/**
 * A browser sends the cookie with whatever page made it send a request. So where the cookie is what identified the user,
 * a request that changes something has to come from a page of this service or of a configured one (DESIGN §5).
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ServiceError } from '../src/errors.ts'

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])

const comesFromHere = ({ headers, protocol, host }: FastifyRequest, allowed: readonly string[]): boolean => {
  const site = headers['sec-fetch-site']
  if (site === 'same-origin' || site === 'none') return true
  const { origin } = headers
  if (origin !== undefined) return origin === `${protocol}://${host}` || allowed.includes(origin)
  // Neither header: no browser of today, but curl.
  return site === undefined
}

const crossSite = async (app: FastifyInstance): Promise<void> => {
  const { allowedOrigins } = app.config

  app.addHook('onRequest', function refuseCrossSite(request, _reply, done) {
    if (request.principal === null || request.accessTokenSource !== 'cookie') return done()
    if (SAFE_METHODS.has(request.method) || comesFromHere(request, allowedOrigins)) return done()
    done(new ServiceError('crossSite'))
  })
}

export default fp(crossSite, { name: 'csrf', dependencies: ['authentication'] })
