/** 404 for unknown paths; 405 with an exact `Allow` for known ones (RFC 9110 §15.5.6), before a body is looked at. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import Router from 'find-my-way'
import { ServiceError } from '../src/errors.ts'

interface Known {
  readonly methods: Set<string>
}

const unknownRoutes = async (app: FastifyInstance): Promise<void> => {
  const known = new Map<string, Known>()
  // Fastify's own router tells nothing about other methods; the same kind of router, with every path under one method.
  const paths = Router({ maxParamLength: Number.MAX_SAFE_INTEGER })

  app.addHook('onRoute', ({ url, method }) => {
    let entry = known.get(url)
    if (entry === undefined) {
      entry = { methods: new Set() }
      known.set(url, entry)
      paths.on('GET', url, () => undefined, entry)
    }
    for (const name of [method].flat()) entry.methods.add(name)
  })

  const refusal = (url: string): ServiceError => {
    const entry = paths.find('GET', url)?.store as Known | undefined
    if (entry === undefined) return new ServiceError('routeNotFound')
    return new ServiceError('methodNotAllowed', { headers: { allow: [...entry.methods].sort().join(', ') } })
  }

  app.addHook('onRequest', function refuseUnknownRoute(request: FastifyRequest, _reply: FastifyReply, done) {
    if (request.is404) done(refusal(request.raw.url ?? '/'))
    else done()
  })
}

export default fp(unknownRoutes, { name: 'unknown-routes', dependencies: ['cross-site'] })
