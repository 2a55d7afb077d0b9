/** Anything that a route throws is caught, formatted, logged once, and hidden in production (§7.2; docs/design.md, "Errors"). */
import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { ServiceError } from '#base/errors'
import { bearer, build, logCapture, signUp } from '../support/build.ts'
import { errorsOf, globalErrorOf } from '../support/error-response.ts'

const SECRET = 'SELECT * FROM users WHERE password_hash = sesame'
const HIDDEN = 'Something went wrong'

const withStatus = (statusCode: unknown, more: object = {}): Error =>
  Object.assign(new Error(SECRET), { statusCode, ...more })

class Awkward extends Error {
  override get message(): string {
    throw new TypeError('no message for you')
  }
}

const circular = (): object => {
  const circle: Record<string, unknown> = {}
  circle.circle = circle
  return circle
}

/** Values that a handler throws, and the status of the response. */
const THROWN: Record<string, [value: unknown, status: number]> = {
  Error: [new Error(SECRET), 500],
  TypeError: [new TypeError(SECRET), 500],
  AggregateError: [new AggregateError([new Error(SECRET)], SECRET), 500],
  'an-Error-without-a-message': [new Error(), 500],
  'an-Error-in-a-circle': [Object.assign(new Error(SECRET), { self: circular() }), 500],
  'an-Error-whose-message-throws': [new Awkward(), 500],
  string: [SECRET, 500],
  'empty-string': ['', 500],
  number: [42, 500],
  null: [null, 500],
  undefined: [undefined, 500],
  boolean: [false, 500],
  'plain-object': [{ message: SECRET, password: 'sesame' }, 500],
  'object-without-a-prototype': [Object.create(null), 500],
  'status-500': [withStatus(500), 500],
  'status-502': [withStatus(502), 502],
  'status-404': [withStatus(404), 404],
  'status-200': [withStatus(200), 500],
  'status-302': [withStatus(302), 500],
  'status-99': [withStatus(99), 500],
  'status-1000': [withStatus(1000), 500],
  'status-NaN': [withStatus(Number.NaN), 500],
  'status-of-text': [withStatus('nonsense'), 500],
  'validation-that-is-none': [Object.assign(new Error(SECRET), { validation: 'nonsense' }), 500],
}

const SENSIBLE: Record<string, number> = {
  'reply-not-found': 404,
  'http-not-found': 404,
  'http-conflict': 409,
  'http-internal': 500,
  'http-bad-gateway': 502,
}

/** Errors outside of handlers. */
const ELSEWHERE = [
  'on-request',
  'pre-validation',
  'pre-serialization',
  'on-send',
  'bigint',
  'schema',
  'stream',
]

const addRoutes = (app: FastifyInstance): void => {
  for (const [name, [value]] of Object.entries(THROWN)) {
    app.get(`/test/sync/${name}`, () => {
      throw value
    })
    app.get(`/test/async/${name}`, () => Promise.reject(value))
    if (value instanceof Error)
      app.get(`/test/send/${name}`, (_request, reply) => {
        reply.send(value)
      })
  }
  app.get('/test/sensible/reply-not-found', (_request, reply) => reply.notFound())
  app.get('/test/sensible/http-not-found', () => Promise.reject(app.httpErrors.notFound(SECRET)))
  app.get('/test/sensible/http-conflict', () => Promise.reject(app.httpErrors.conflict(SECRET)))
  app.get('/test/sensible/http-internal', () => Promise.reject(app.httpErrors.internalServerError(SECRET)))
  app.get('/test/sensible/http-bad-gateway', () => Promise.reject(app.httpErrors.badGateway(SECRET)))
  const boom = () => Promise.reject(new Error(SECRET))
  app.get('/test/on-request', { onRequest: boom }, () => 'fine')
  app.get('/test/pre-validation', { preValidation: boom }, () => 'fine')
  app.get('/test/pre-serialization', { preSerialization: boom }, () => ({}))
  app.get('/test/on-send', { onSend: boom }, () => 'fine')
  app.get('/test/bigint', () => ({ value: 1n }))
  const response = { 200: { type: 'object', required: ['id'], properties: { id: { type: 'string' } } } }
  app.get('/test/schema', { schema: { response } }, () => ({ other: 1 }))
  app.get('/test/stream', (_request, reply) => reply.send(Readable.from(failing())))
}

async function* failing(): AsyncGenerator<string> {
  yield* []
  throw new Error(SECRET)
}

for (const NODE_ENV of ['development', 'production'])
  t.test(`unexpected errors in ${NODE_ENV} (§7.2)`, async t => {
    const production = NODE_ENV === 'production'
    const app = await build(t, { env: { NODE_ENV }, extend: addRoutes })
    const checkMessage = (message: string, status: number, real: string, title: string): void => {
      const expected = production && status >= 500 ? HIDDEN : real
      t.equal(message, expected, `${title}: ${production ? 'hidden' : 'the real message'}`)
    }

    t.test('errors that are thrown, rejected or sent are a 500', async t => {
      for (const [name, [value, status]] of Object.entries(THROWN))
        for (const way of value instanceof Error ? ['sync', 'async', 'send'] : ['sync', 'async']) {
          const response = await app.inject({ url: `/test/${way}/${name}` })
          const message = globalErrorOf(t, response, status, `${way} ${name}`)
          if (production && status >= 500) t.equal(message, HIDDEN, `${way} ${name}: hidden`)
          else if (response.body.includes('SELECT') || value === SECRET)
            t.equal(message, SECRET, `${way} ${name}: the real message, alone`)
          if (value instanceof Error && !(value instanceof Awkward) && value.message !== '')
            checkMessage(message, status, SECRET, `${way} ${name}`)
        }
    })

    t.test("@fastify/sensible's errors and replies keep their status", async t => {
      for (const [name, status] of Object.entries(SENSIBLE)) {
        const message = globalErrorOf(t, await app.inject({ url: `/test/sensible/${name}` }), status, name)
        if (name !== 'reply-not-found') checkMessage(message, status, SECRET, name)
      }
    })

    t.test('errors of hooks, serialisation and streams are a 500', async t => {
      for (const name of ELSEWHERE) {
        const message = globalErrorOf(t, await app.inject({ url: `/test/${name}` }), 500, name)
        if (production) t.equal(message, HIDDEN, `${name}: hidden`)
        // If sending fails, the error is not sent in any mode; it is logged.
        else if (name === 'on-send') t.equal(message, HIDDEN, `${name}: hidden`)
        else if (!['bigint', 'schema'].includes(name)) t.equal(message, SECRET, `${name}: the real message`)
      }
    })

    t.test('HEAD errors have no body, and the service continues', async t => {
      const response = await app.inject({ method: 'HEAD', url: '/test/sync/Error' })
      t.equal(response.statusCode, 500)
      t.equal(response.body, '')
      t.equal((await app.inject({ url: '/health' })).statusCode, 200)
    })
  })

t.test('each error is logged once with its context (§7.2)', async t => {
  const log = logCapture()
  let requestId = ''
  const app = await build(t, {
    logStream: log.stream,
    env: { LOG_LEVEL: 'debug', NODE_ENV: 'production' },
    extend: app => {
      app.addHook('onRequest', async request => {
        requestId = request.id
      })
      addRoutes(app)
      app.get('/test/missing/:id', () => Promise.reject(new ServiceError('userNotFound')))
      app.get('/test/quiet', () => Promise.reject(new ServiceError('signInRequired', { quiet: true })))
    },
  })
  const user = await signUp(app)
  const bad = { email: 5, password: 'sesame open' }
  const requests = [
    { url: '/test/sync/Error', status: 500, route: '/test/sync/Error', cause: SECRET },
    { url: '/test/async/string', status: 500, route: '/test/async/string', cause: SECRET },
    { url: '/test/sync/undefined', status: 500, route: '/test/sync/undefined' },
    { url: '/test/on-send', status: 500, route: '/test/on-send', cause: SECRET },
    { url: '/test/stream', status: 500, route: '/test/stream', cause: SECRET },
    { url: '/test/schema', status: 500, route: '/test/schema' },
    { url: '/test/missing/42', status: 404, route: '/test/missing/:id' },
    { url: '/test/sensible/reply-not-found', status: 404, route: '/test/sensible/reply-not-found' },
    { url: '/test/quiet', status: 401, route: '/test/quiet' },
    { url: '/nope', status: 404 },
    { method: 'PATCH', url: '/account', status: 405 },
    { url: '/users?limit=0', status: 400, route: '/users' },
    { url: '/admin/users', status: 401, route: '/admin/users' },
    { method: 'POST', url: '/account/sign-up', payload: bad, status: 400, route: '/account/sign-up' },
    { method: 'POST', url: '/account/sign-up', payload: 'x', status: 415, route: '/account/sign-up' },
    { url: '/%zz', status: 400 },
  ] as const
  for (const { url, status, ...more } of requests) {
    for (const token of [user.token, undefined]) {
      const title = `${url} ${token === undefined ? 'anonymous' : 'identified'}`
      const before = log.records().length
      const headers = token === undefined ? {} : bearer(token)
      const { method = 'GET', payload = undefined } = { ...more } as { method?: 'GET'; payload?: object }
      requestId = ''
      const response = await app.inject({
        method,
        url,
        headers,
        ...(payload === undefined ? {} : { payload }),
      })
      const expected = url.startsWith('/users') && token === undefined ? 401 : status
      errorsOf(t, response, expected, title)
      const records = log.records().slice(before)
      t.equal(records.length, 1, `${title}: one log line`)
      const [record = {}] = records
      t.match(record, { method, status: expected }, `${title}: method and status`)
      t.equal(record.reqId, requestId === '' ? record.reqId : requestId, `${title}: request id`)
      t.ok(record.reqId, `${title}: a request id`)
      if (url !== '/%zz') t.equal(record.userId, token === undefined ? null : user.id, `${title}: user id`)
      if ('route' in more) t.equal(record.route, more.route, `${title}: route`)
      if ('cause' in more) t.ok(JSON.stringify(record).includes(more.cause), `${title}: the real message`)
      if (status >= 500) t.equal(record.level, 50, `${title}: at the level error`)
      if (url === '/test/quiet') t.equal(record.level, 20, 'a quiet one at the level debug alone')
      t.notOk(/sesame open/.test(JSON.stringify(record)), `${title}: no password`)
      t.notOk(JSON.stringify(record).includes(user.token), `${title}: no token`)
    }
  }
})

t.test('a lack of file descriptors is a 503, not an unexpected error', async t => {
  // Errors of Node's module loader and of the file system.
  const errors = [
    Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' }),
    new Error('Cannot read package config: too many open files.'),
  ]
  for (const error of errors) {
    const app = await build(t, {
      extend: app =>
        app.get('/fails', async () => {
          throw error
        }),
    })
    const response = await app.inject({ url: '/fails' })
    globalErrorOf(t, response, 503, error.message)
    t.equal(response.headers['retry-after'], '1')
  }
})
