/**
 * Limits the requests of a client address to expensive routes (`config.rateLimit`), and the writes of a user to private routes. Route-level
 * onRequest hooks: they run after the scope's gate, so that rejected clients are not counted, and before the body is read. Routes
 * without a limit have no hook.
 */
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  onRequestAsyncHookHandler,
  RouteOptions,
} from 'fastify'
import fp from 'fastify-plugin'
import { ServiceError } from '#base/errors'
import { type WindowLimit, WRITE_LIMIT } from '#core/rate-limits/limits'
import { isSafeMethod } from '#http/cross-site-requests'
import { checkDeclarations, countsAsWrite } from '#http/route-declarations'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The limit per address that the route counts towards; by default none. */
    rateLimit?: string
    /**
     * `false`: a private route does not count towards the limit on the writes of its user. For routes that take access away, or need the
     * password each time: they must work while somebody else uses the limit up.
     */
    writeLimit?: false
  }
  interface FastifyInstance {
    /** Adds the limit on writes to a route. Called by the gate of users for the routes of its scope. */
    limitWrites(route: RouteOptions): void
  }
}

/** Several limits of one response are a list (RFC 9651 §3.1). */
const addMember = (reply: FastifyReply, header: string, member: string): void => {
  const present = reply.getHeader(header)
  reply.header(header, present === undefined ? member : `${present}, ${member}`)
}

const addHook = (route: RouteOptions, hook: onRequestAsyncHookHandler): void => {
  route.onRequest = [route.onRequest ?? [], hook].flat()
}

const rateLimits = async (app: FastifyInstance): Promise<void> => {
  const { rateLimits, rateLimitNames, storage, metrics } = app.services
  checkDeclarations(app, 'rateLimit', ({ config }) =>
    config?.rateLimit === undefined || rateLimitNames.includes(config.rateLimit)
      ? null
      : `declares the rate limit ${JSON.stringify(config.rateLimit)}, which is none of ${rateLimitNames.join(', ')}`,
  )
  if (rateLimits === null) {
    app.decorate('limitWrites', () => undefined)
    return
  }

  const limiter = (name: string, { points, seconds: window }: WindowLimit) => {
    const limit = storage.openRateLimit({ name, points, seconds: window, final: true })
    // draft-ietf-httpapi-ratelimit-headers-10
    const policy = `"${name}";q=${points};w=${window}`
    return async (reply: FastifyReply, key: string): Promise<void> => {
      const { allowed, remaining, seconds: left } = await limit.consume(key)
      // If the clock is set back, the remaining time would exceed the window.
      const seconds = Math.min(left, window)
      addMember(reply, 'ratelimit-policy', policy)
      addMember(reply, 'ratelimit', `"${name}";r=${remaining};t=${seconds}`)
      if (allowed) return
      metrics.rateLimited.add(name)
      throw new ServiceError('tooManyRequests', {
        headers: { 'retry-after': String(seconds) },
        sampledAs: name,
      })
    }
  }

  const hooks = new Map<string, onRequestAsyncHookHandler>()
  for (const [name, limit] of Object.entries(rateLimits.perAddress)) {
    const count = limiter(name, limit)
    hooks.set(name, async function limitAddress(request: FastifyRequest, reply: FastifyReply) {
      await count(reply, request.clientNetwork)
    })
  }

  app.addHook('onRoute', route => {
    const hook = hooks.get(route.config?.rateLimit ?? '')
    if (hook !== undefined) addHook(route, hook)
  })

  const countWrite = limiter(WRITE_LIMIT, rateLimits.writesPerUser)
  const limitUser = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (!isSafeMethod(request.method)) await countWrite(reply, request.user.id)
  }
  app.decorate('limitWrites', route => {
    if (countsAsWrite(route)) addHook(route, limitUser)
  })
}

export default fp(rateLimits, {
  name: 'rate-limits',
  dependencies: ['not-found', 'client-address', 'client-gate', 'reauthentication'],
})
