/** Spans in the traces of a host application, whose SDK this process has; and failures, which are the same in the service. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { context, ROOT_CONTEXT, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { type ReadableSpan, TracerProvider } from '@opentelemetry/sdk-trace'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { operationSpans } from '#process/tracing/operation-spans'
import { addRequestSpans } from '#process/tracing/request-spans'
import { asAdmin, build, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { buildHost } from '../support/host.ts'
import { until } from '../support/until.ts'

const DEADLINE = 20_000

const started: ReadableSpan[] = []
const ended: ReadableSpan[] = []

context.setGlobalContextManager(new AsyncLocalStorageContextManager())
trace.setGlobalTracerProvider(
  new TracerProvider({
    spanProcessors: [
      {
        onStart: span => void started.push(span),
        onEnd: span => void ended.push(span),
        forceFlush: async () => undefined,
        shutdown: async () => undefined,
      },
    ],
  }),
)

const tracing = { recorderOf: operationSpans, addRequestSpans }

const named = (name: string): ReadableSpan | undefined => ended.find(span => span.name === name)

const childrenOf = (parent: ReadableSpan | undefined): string[] =>
  ended
    .filter(({ parentSpanContext }) => parentSpanContext?.spanId === parent?.spanContext().spanId)
    .map(({ name }) => name)

t.beforeEach(() => {
  started.length = 0
  ended.length = 0
})

/** A host whose instrumentation makes the span of its request the active one. */
const withHostSpans = (host: FastifyInstance): void => {
  const tracer = trace.getTracer('host')
  host.addHook('onRequest', (request, _reply, done) => {
    const span = tracer.startSpan(`host ${request.method}`)
    context.with(trace.setSpan(ROOT_CONTEXT, span), done)
  })
}

t.test('in a host, operations are children of its spans, and the host records requests', async t => {
  const config = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' }
  const host = await buildHost(t, { before: withHostSpans, config })
  const response = await host.inject({ url: '/auth/admin/users', headers: asAdmin })
  t.equal(response.statusCode, 200)
  const [request] = started
  t.equal(request?.name, 'host GET')
  t.same(childrenOf(request), ['users.list'])
  t.equal(started.length, 2)
})

t.test('without the setting a host has no spans of Gatehouse', async t => {
  const host = await buildHost(t, { before: withHostSpans })
  await host.inject({ url: '/auth/admin/users', headers: asAdmin })
  t.same(
    started.map(({ name }) => name),
    ['host GET'],
  )
})

await onEnginesOfRun(t, async (t, engine) => {
  t.test('a failed operation and its 503 are errors with their types', async t => {
    const app = await engine.build(t, { tracing })
    await signUp(app)
    await app.services.storage.close()
    t.equal((await app.inject('/ready')).statusCode, 503)
    const request = named('GET /ready')
    t.match(request?.attributes, { 'http.response.status_code': 503, 'error.type': '503' })
    t.strictSame(request?.status, { code: SpanStatusCode.ERROR })
    const ping = named('ping')
    t.equal(ping?.attributes['error.type'], 'storeUnavailable')
    t.strictSame(ping?.status, { code: SpanStatusCode.ERROR }, 'without a message')
    t.strictSame(ping?.events, [], 'without a stack')
  })

  t.test('rate limits are operations where the database counts them', async t => {
    const app = await engine.build(t, { tracing, env: { RATE_LIMIT: 'on' } })
    await signUp(app)
    const counts = childrenOf(named('POST /account/sign-up')).filter(name => name === 'rateLimits.consume')
    t.equal(counts.length > 0, engine.name === 'postgres')
  })

  t.test('the operations of features are recorded, and so is an export', async t => {
    const app = await engine.build(t, { tracing })
    const { id } = await signUp(app)
    await app.inject({ url: `/admin/users/${id}/api-keys`, headers: asAdmin })
    await app.inject({ url: '/admin/users/export', headers: asAdmin })
    for (const [request, operations] of [
      ['GET /admin/users/:id/api-keys', ['api-keys.listApiKeys', 'users.find']],
      ['GET /admin/users/export', ['bulkUsers.exportUsers']],
    ] as const) {
      t.match(childrenOf(named(request)), operations)
    }
  })
})

t.test('the span of a request whose client disconnects has no status, and ends', async t => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const received = Promise.withResolvers<void>()
  const app = await build(t, {
    tracing,
    extend(app) {
      app.get('/slow', async () => {
        received.resolve()
        await promise
        return {}
      })
    },
  })
  t.teardown(resolve)
  const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }))
  const socket = connect(Number(port), '127.0.0.1')
  await once(socket, 'connect')
  socket.write('GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await received.promise
  // A connection that the client has only half closed still gets its response.
  socket.resetAndDestroy()
  const span = await until(
    () => named('GET /slow'),
    found => found !== undefined,
    DEADLINE,
  )
  t.ok(span)
  t.notOk(span?.attributes['http.response.status_code'])
})
