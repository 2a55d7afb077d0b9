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
import { ServiceError } from '../src/errors.ts'
import { isSafeMethod } from '../src/http/csrf.ts'
import { countsAsWrite } from '../src/http/route-declarations.ts'
import type { LimitName, RateLimitName, WindowLimit } from '../src/rate-limits/limits.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The limit per address that the route counts towards; by default none. */
    rateLimit?: RateLimitName
    /**
     * `false`: a private route does not count towards the limit on the writes of its user. For routes that take access away, or need the
     * password each time: they must work while somebody else uses the limit up.
     */
    writeLimit?: false
  }
  interface FastifyInstance {
    /** For the gate of users: adds the limit on writes to a route of its scope. */
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
  const { rateLimits, storage, metrics } = app.services
  if (rateLimits === null) {
    app.decorate('limitWrites', () => undefined)
    return
  }

  const limiter = (name: LimitName, { points, seconds: window }: WindowLimit) => {
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

  const hooks = new Map<RateLimitName, onRequestAsyncHookHandler>()
  const hookOf = (name: RateLimitName): onRequestAsyncHookHandler => {
    const found = hooks.get(name)
    if (found !== undefined) return found
    const count = limiter(name, rateLimits.perAddress[name])
    const hook = async function limitAddress(request: FastifyRequest, reply: FastifyReply) {
      await count(reply, request.clientNetwork)
    }
    hooks.set(name, hook)
    return hook
  }

  app.addHook('onRoute', route => {
    const name = route.config?.rateLimit
    if (name !== undefined) addHook(route, hookOf(name))
  })

  const countWrite = limiter('write', rateLimits.writesPerUser)
  const limitUser = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (!isSafeMethod(request.method)) await countWrite(reply, request.user.id)
  }
  app.decorate('limitWrites', route => {
    if (countsAsWrite(route)) addHook(route, limitUser)
  })
}

export default fp(rateLimits, {
  name: 'rate-limits',
  dependencies: ['not-found', 'client-address', 'reauthentication'],
})
