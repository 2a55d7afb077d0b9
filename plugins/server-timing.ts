/**
 * `Server-Timing` with `SERVER_TIMING=on`, for authenticated requests to routes that do not declare a rate limit (docs/design.md,
 * "Observability"): exact times of the others would show what their responses hide.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

/** Timestamps in milliseconds; 0 for a phase that has not begun. */
interface Phases {
  readonly start: number
  authenticated: number
  validated: number
}

/** A symbol, so that a host application cannot have the same name. */
const PHASES = Symbol('phases')

declare module 'fastify' {
  interface FastifyRequest {
    [PHASES]: Phases | null
  }
}

/** Whether nothing that the times show is hidden from the client. */
const mayShowTimes = ({ routeOptions, principal, adminKey }: FastifyRequest): boolean => {
  const { gate, rateLimit } = routeOptions.config
  return gate !== undefined && rateLimit === undefined && (principal !== null || adminKey !== null)
}

const metric = (name: string, from: number, to: number): string => `${name};dur=${(to - from).toFixed(2)}`

/** @returns the value of the header: the phases that have ended, and their sum. */
const timing = ({ start, authenticated, validated }: Phases, now: number): string => {
  const metrics = [metric('total', start, now)]
  if (authenticated > 0) metrics.push(metric('auth', start, authenticated))
  if (validated > 0) metrics.push(metric('body', authenticated, validated), metric('handler', validated, now))
  return metrics.join(', ')
}

const serverTiming = async (app: FastifyInstance): Promise<void> => {
  if (!app.config.hasServerTiming) return
  app.decorateRequest(PHASES, null)
  app.addHook('onRequest', function startTiming(request, _reply, done) {
    request[PHASES] = { start: performance.now(), authenticated: 0, validated: 0 }
    done()
  })
  app.addHook('preParsing', function endAuthentication(request, _reply, payload, done) {
    if (request[PHASES] !== null) request[PHASES].authenticated = performance.now()
    done(null, payload)
  })
  app.addHook('preHandler', function endValidation(request, _reply, done) {
    if (request[PHASES] !== null) request[PHASES].validated = performance.now()
    done()
  })
  app.addHook('onSend', function sendTiming(request, reply, payload, done) {
    const phases = request[PHASES]
    if (phases !== null && mayShowTimes(request))
      reply.header('server-timing', timing(phases, performance.now()))
    done(null, payload)
  })
}

export default fp(serverTiming, { name: 'server-timing' })
