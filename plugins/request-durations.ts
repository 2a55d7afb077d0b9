/**
 * Measures every request by route (docs/design.md, "Observability"). In `onSend`, because `onResponse` adds a listener for the end of each
 * response.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest, onSendHookHandler } from 'fastify'
import fp from 'fastify-plugin'
import { type RouteDurations, ticks } from '#http/request-durations'

/** When the request began. A symbol, so that a host application cannot have the same name. */
const STARTED_AT = Symbol('startedAt')

declare module 'fastify' {
  interface FastifyRequest {
    [STARTED_AT]: number
  }
}

const isStream = (payload: unknown): boolean =>
  typeof payload === 'object' && payload !== null && 'pipe' in payload

const observe = (durations: RouteDurations, request: FastifyRequest, reply: FastifyReply): void =>
  durations.observe(request.method, reply.statusCode, request[STARTED_AT])

const hookOf =
  (durations: RouteDurations): onSendHookHandler =>
  (request, reply, payload, done) => {
    if (isStream(payload)) reply.raw.once('close', () => observe(durations, request, reply))
    else observe(durations, request, reply)
    done(null, payload)
  }

const requestDurations = async (app: FastifyInstance): Promise<void> => {
  const { requestDurations } = app.services.metrics

  app.decorateRequest(STARTED_AT, 0)
  app.addHook('onRequest', function startMeasurement(request, _reply, done) {
    request[STARTED_AT] = ticks()
    done()
  })
  app.addHook('onRoute', route => {
    route.onSend = [route.onSend ?? [], hookOf(requestDurations.of(route.url))].flat()
  })
  app.addHook('onSend', function measureUnknownRoute(request, reply, payload, done) {
    if (request.is404) requestDurations.observeUnknown(request.method, reply.statusCode, request[STARTED_AT])
    done(null, payload)
  })
}

export default fp(requestDurations, { name: 'request-durations' })
