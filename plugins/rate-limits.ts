/**
 * Limits the requests of a client address to expensive routes (`config.rateLimit`). Registered as a route-level onRequest hook:
 * it runs after the scope's gate, so that rejected clients are not counted, and before the body is read.
 */
import type { FastifyInstance, onRequestAsyncHookHandler } from 'fastify'
import fp from 'fastify-plugin'
import { ServiceError } from '../src/errors.ts'
import type { RateLimitName } from '../src/rate-limits/limits.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The limit per address that the route counts towards; by default none. */
    rateLimit?: RateLimitName
  }
}

const rateLimits = async (app: FastifyInstance): Promise<void> => {
  const { rateLimits, storage, metrics } = app.services
  if (rateLimits === null) return

  const limitAs = (name: RateLimitName): onRequestAsyncHookHandler => {
    const { points, seconds: window } = rateLimits.perAddress[name]
    const limit = storage.openRateLimit({ name, points, seconds: window, final: true })
    // draft-ietf-httpapi-ratelimit-headers-10
    const policy = `"${name}";q=${points};w=${window}`
    return async function limitAddress(request, reply) {
      const { allowed, remaining, seconds: left } = await limit.consume(request.clientNetwork)
      // If the clock is set back, the remaining time would exceed the window.
      const seconds = Math.min(left, window)
      reply.header('ratelimit-policy', policy).header('ratelimit', `"${name}";r=${remaining};t=${seconds}`)
      if (allowed) return
      metrics.rateLimited.add(name)
      throw new ServiceError('tooManyRequests', {
        headers: { 'retry-after': String(seconds) },
        sampledAs: name,
      })
    }
  }

  const hooks = new Map<RateLimitName, onRequestAsyncHookHandler>()
  const hookOf = (name: RateLimitName): onRequestAsyncHookHandler => {
    const hook = hooks.get(name) ?? limitAs(name)
    hooks.set(name, hook)
    return hook
  }

  app.addHook('onRoute', route => {
    const name = route.config?.rateLimit
    if (name !== undefined) route.onRequest = [route.onRequest ?? [], hookOf(name)].flat()
  })
}

export default fp(rateLimits, {
  name: 'rate-limits',
  dependencies: ['not-found', 'client-address', 'reauthentication'],
})
