/** HTTP server spans: one for each request, a child of the span that the client's `traceparent` names (docs/design.md, "Observability"). */
import {
  type Context,
  context,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import {
  ATTR_ERROR_TYPE,
  ATTR_HTTP_REQUEST_METHOD,
  ATTR_HTTP_RESPONSE_STATUS_CODE,
  ATTR_HTTP_ROUTE,
  ATTR_URL_SCHEME,
} from '@opentelemetry/semantic-conventions'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { METHODS } from '#http/request-durations'
import { setSpan } from '#http/trace-context'
import packageJson from '../../../package.json' with { type: 'json' }

const CONTEXT = Symbol('context')

declare module 'fastify' {
  interface FastifyRequest {
    [CONTEXT]: Context | null
  }
}

/** The template without a slash at its end; `undefined` for unknown URLs, which clients choose. */
const routeOf = ({ routeOptions: { url } }: FastifyRequest): string | undefined =>
  url !== undefined && url.length > 1 && url.endsWith('/') ? url.slice(0, -1) : url

/** A response that was not sent has no status. */
const end = (request: FastifyRequest, { raw, statusCode }: FastifyReply): void => {
  const span = request[CONTEXT] && trace.getSpan(request[CONTEXT])
  if (!span) return
  request[CONTEXT] = null
  if (raw.headersSent) {
    span.setAttribute(ATTR_HTTP_RESPONSE_STATUS_CODE, statusCode)
    if (statusCode >= 500)
      span.setAttribute(ATTR_ERROR_TYPE, String(statusCode)).setStatus({ code: SpanStatusCode.ERROR })
  }
  span.end()
}

/**
 * Adds the hooks. They must be the first ones, so that every other hook runs in the span.
 *
 * No attribute has the URL, whose query may contain the token of a mailed link, or the client: see docs/design.md, "Observability".
 */
export const addRequestSpans = (app: FastifyInstance): void => {
  const tracer = trace.getTracer(packageJson.name, packageJson.version)

  app.decorateRequest(CONTEXT, null)
  app.addHook('onRequest', function startSpan(request, reply, done) {
    const parent = propagation.extract(ROOT_CONTEXT, request.headers)
    const route = routeOf(request)
    const isKnown = METHODS.has(request.method)
    const name = isKnown ? request.method : 'HTTP'
    const span = tracer.startSpan(
      route === undefined ? name : `${name} ${route}`,
      {
        kind: SpanKind.SERVER,
        attributes: {
          [ATTR_HTTP_REQUEST_METHOD]: isKnown ? request.method : '_OTHER',
          [ATTR_URL_SCHEME]: request.protocol,
          [ATTR_HTTP_ROUTE]: route,
        },
      },
      parent,
    )
    request[CONTEXT] = trace.setSpan(parent, span)
    setSpan(request.raw, span.spanContext())
    // When the client disconnects before its response, there is no `onResponse`.
    reply.raw.once('close', () => end(request, reply))
    context.with(request[CONTEXT], done)
  })
  app.addHook('onResponse', function endSpan(request, reply, done) {
    end(request, reply)
    done()
  })
}
