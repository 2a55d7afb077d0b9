/** Log levels: errors that cost an unidentified client nothing are at `debug`, so that they cannot fill the log. */
import { connect } from 'node:net'
import type { InjectOptions } from 'fastify'
import t from 'tap'
import { asAdmin, bearer, build, freshEmail, logCapture, PASSWORD, signUp } from '../support/build.ts'
import { until } from '../support/until.ts'

const INFO = 30
const DEBUG = 20

/** Milliseconds until a missing line counts as a failure. */
const DEADLINE = 5_000

const json = { 'content-type': 'application/json' }

/** Errors that any client can cause, on every kind of route. */
const CHEAP: Record<string, [status: number, options: InjectOptions]> = {
  'unknown route': [404, { url: '/nope' }],
  'wrong method': [405, { method: 'PATCH', url: '/account' }],
  'malformed URL': [400, { url: '/%zz' }],
  'malformed JSON': [400, { method: 'POST', url: '/account/sign-in', headers: json, payload: '{' }],
  'duplicate key': [
    400,
    { method: 'POST', url: '/account/sign-in', headers: json, payload: '{"email":"a","email":"b"}' },
  ],
  'media type': [
    415,
    { method: 'POST', url: '/account/sign-in', headers: { 'content-type': 'text/plain' }, payload: 'x' },
  ],
  'body too large': [
    413,
    {
      method: 'POST',
      url: '/account/sign-up',
      headers: json,
      payload: JSON.stringify({ a: 'x'.repeat(20_000) }),
    },
  ],
  'failed validation': [400, { method: 'POST', url: '/account/sign-up', payload: { email: 5 } }],
  'unknown token of a mail': [
    400,
    { method: 'POST', url: '/account/verify-email/reject', payload: { token: 'x'.repeat(43) } },
  ],
  expectation: [417, { url: '/health', headers: { expect: 'a miracle' } }],
}

const log = logCapture()
const app = await build(t, { logStream: log.stream, env: { LOG_LEVEL: 'debug', MAIL_URL: 'off' } })
const user = await signUp(app)

/** The one log line of a request. */
const lineOf = async (options: InjectOptions, headers = {}) => {
  const before = log.records().length
  const { statusCode } = await app.inject({ ...options, headers: { ...options.headers, ...headers } })
  const lines = log.records().slice(before)
  return { statusCode, lines }
}

t.test('errors of anonymous clients are at debug, those of users and valid keys at info', async t => {
  for (const [title, [status, options]] of Object.entries(CHEAP)) {
    const who = {
      anonymous: [DEBUG, {}],
      'a wrong token': [DEBUG, bearer('x.y.z')],
      'a wrong key': [DEBUG, { 'x-admin-key': 'wrong' }],
      user: [INFO, bearer(user.token)],
      'a valid key': [INFO, asAdmin],
    } as const
    for (const [name, [level, headers]] of Object.entries(who)) {
      const { statusCode, lines } = await lineOf(options, headers)
      t.equal(statusCode, status, `${title}, ${name}`)
      // These occur before authentication.
      const isEarly = title === 'malformed URL' || (title === 'expectation' && name === 'user')
      const expected = isEarly ? DEBUG : level
      t.match(lines, [{ level: expected, status }], `${title}, ${name}: one line`)
      t.equal(lines.length, 1)
    }
  }
})

t.test('errors of use cases on rate-limited routes are at info', async t => {
  const payload = { email: freshEmail(), password: PASSWORD }
  const signIn = await lineOf({ method: 'POST', url: '/account/sign-in', payload })
  t.match(signIn, { statusCode: 401, lines: [{ level: INFO, ip: '127.0.0.1' }] })
  const taken = { email: user.email, password: PASSWORD }
  t.match(await lineOf({ method: 'POST', url: '/account/sign-up', payload: taken }), {
    statusCode: 409,
    lines: [{ level: INFO }],
  })
})

t.test('wrong tokens and keys are at info once per address, the rest at debug', async t => {
  const rejections: [string, InjectOptions][] = [
    ['access-token', { url: '/account', headers: bearer('x.y.z') }],
    ['admin-key', { url: '/admin/users', headers: { 'x-admin-key': 'wrong' } }],
  ]
  for (const [limit, options] of rejections) {
    const lines = []
    for (const remoteAddress of ['192.0.2.1', '192.0.2.1', '192.0.2.1', '192.0.2.2'])
      lines.push(...(await lineOf({ ...options, remoteAddress })).lines)
    t.match(lines, [
      { level: INFO, limit, suppressed: 0, ip: '192.0.2.1' },
      { level: DEBUG, limit },
      { level: DEBUG, limit },
      { level: INFO, limit, suppressed: 0, ip: '192.0.2.2' },
    ])
    const { lines: quiet } = await lineOf({ ...options, headers: {} })
    t.match(quiet, [{ level: DEBUG }], 'without credentials')
  }
})

t.test('malformed HTTP is at debug', async t => {
  const url = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
  const before = log.records().length
  const socket = connect(Number(url.port), '127.0.0.1')
  t.teardown(() => socket.destroy())
  socket.on('error', () => undefined)
  socket.write('not http\r\n\r\n')
  socket.resume()
  const isRejection = ({ msg }: Record<string, unknown>) => String(msg).startsWith('malformed HTTP')
  const lines = await until(
    () => log.records().slice(before).filter(isRejection),
    found => found.length > 0,
    DEADLINE,
  )
  t.match(lines, [{ level: DEBUG }])
})
