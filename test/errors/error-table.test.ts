/** The error table of docs/design.md, "Errors", row by row, in development and in production. */
import t from 'tap'
import { ServiceError } from '#base/errors'
import { ADMIN_KEY, asAdmin, bearer, build, cookie, freshEmail, signUp } from '../support/build.ts'
import { errorsAt, errorsOf, globalErrorOf } from '../support/error-response.ts'

const KIB_16 = 16 * 1024
const UNKNOWN_USER = '01890000-0000-7000-8000-000000000000'
const JSON_TYPE = { 'content-type': 'application/json' }

/** Invalid on a public route. On a gated route authentication fails first (§5.1.4, §5.2.3). */
const BAD_PAYLOADS = {
  'malformed JSON': { headers: JSON_TYPE, payload: '{"firstName":' },
  'wrong media type': { headers: { 'content-type': 'text/plain' }, payload: 'hello' },
  'over-long body': { headers: JSON_TYPE, payload: JSON.stringify({ firstName: 'x'.repeat(KIB_16) }) },
  'duplicate keys': { headers: JSON_TYPE, payload: '{"firstName":"a","firstName":"b"}' },
  'invalid UTF-8': { headers: JSON_TYPE, payload: Buffer.from([0x22, 0xff, 0x22]) },
  'failed validation': { headers: JSON_TYPE, payload: '{"firstName":5,"nonsense":true}' },
  'empty body': { headers: JSON_TYPE, payload: '' },
  'unknown Content-Encoding': { headers: { ...JSON_TYPE, 'content-encoding': 'gzip' }, payload: '{}' },
}

for (const NODE_ENV of ['development', 'production']) {
  t.test(`error table in ${NODE_ENV}`, async t => {
    const env = { NODE_ENV, RATE_LIMIT: 'off' }
    const app = await build(t, {
      env,
      extend: app => {
        app.get('/test/too-many', () => Promise.reject(new ServiceError('tooManyRequests')))
        app.get('/test/overloaded', () => Promise.reject(new ServiceError('overloaded')))
        app.get('/test/user-missing', () => Promise.reject(new ServiceError('userNotFound')))
        app.get('/test/disabled', () => Promise.reject(new ServiceError('accountDisabled')))
      },
    })
    const user = await signUp(app)
    const signUpWith = (payload: Record<string, unknown>) =>
      app.inject({ method: 'POST', url: '/account/sign-up', payload })

    t.test('400 reports every invalid field with every message (§7.2)', async t => {
      const errors = errorsOf(
        t,
        await signUpWith({ email: 'x'.repeat(300), password: 'short', firstName: '', lastName: 5 }),
        400,
      )
      t.strictSame(Object.keys(errors).sort(), ['email', 'firstName', 'lastName', 'password'])
      t.ok((errors.email?.length ?? 0) >= 2, 'too long, and not an e-mail address')
      errorsAt(t, await signUpWith({}), 400, ['email', 'password'], 'a missing field fails under its name')
      const query = { limit: '0', sort: 'password', nonsense: '1' }
      const list = await app.inject({ url: '/users', query, headers: bearer(user.token) })
      const inQuery = errorsOf(t, list, 400, 'query')
      t.strictSame(Object.keys(inQuery).sort(), ['limit', 'nonsense', 'sort'])
      t.strictSame(inQuery.nonsense, ['is not allowed'])
    })

    t.test('400 reports an unknown property as not allowed', async t => {
      const errors = errorsOf(
        t,
        await signUpWith({ email: freshEmail(), password: 'zu7 Korrekte Heftklammer', admin: true, role: 1 }),
        400,
      )
      t.strictSame(errors, { admin: ['is not allowed'], role: ['is not allowed'] })
    })

    t.test('a single message is under global, with its own status (§7.2)', async t => {
      globalErrorOf(t, await app.inject({ url: '/test/disabled' }), 403)
      t.equal(
        globalErrorOf(t, await app.inject({ url: '/test/user-missing' }), 404),
        'There is no such user',
        'also in production: a 4xx is meant for the caller',
      )
      const put = { method: 'PUT', url: `/admin/users/${UNKNOWN_USER}`, headers: asAdmin } as const
      globalErrorOf(t, await app.inject({ ...put, payload: { disabled: true } }), 404, 'unknown user')
    })

    t.test('private routes return 401 and WWW-Authenticate: Bearer (§5.1.4, RFC 9110 §11.6.1)', async t => {
      const challengeFor = async (headers: Record<string, string>, title: string): Promise<unknown> => {
        const response = await app.inject({ url: '/account', headers })
        globalErrorOf(t, response, 401, title)
        return response.headers['www-authenticate']
      }
      const invalid = /^Bearer (.*, ?)?error="invalid_token"/
      t.match(await challengeFor(bearer('nonsense'), 'bad token'), invalid)
      t.match(await challengeFor(bearer(`${user.token}x`), 'forged token'), invalid)
      t.match(await challengeFor(cookie('nonsense'), 'bad cookie'), invalid)
      t.match(await challengeFor({ ...cookie('x'), ...bearer(user.token) }, 'cookie first'), invalid)
      const absent = { nothing: {}, 'empty bearer': { authorization: 'Bearer ' }, 'empty cookie': cookie('') }
      const other = { basic: { authorization: 'Basic dTpw' }, 'other cookie': { cookie: 'theme=dark' } }
      for (const [title, headers] of Object.entries({ ...absent, ...other })) {
        const challenge = await challengeFor(headers, title)
        t.match(challenge, /^Bearer/, title)
        t.notMatch(challenge, /invalid_token/, `${title}: no token was presented`)
      }
    })

    t.test('admin routes without the correct key return 401 and a challenge (§5.2.3)', async t => {
      const rejected: Record<string, Record<string, string>> = {
        none: {},
        wrong: { 'x-admin-key': `${ADMIN_KEY}x` },
        prefix: { 'x-admin-key': ADMIN_KEY.slice(0, -1) },
        empty: { 'x-admin-key': '' },
        'as a bearer token': bearer(ADMIN_KEY),
        "a user's token": bearer(user.token),
      }
      for (const [title, headers] of Object.entries(rejected))
        for (const [method, url] of [
          ['GET', '/admin/users'],
          ['PUT', `/admin/users/${user.id}`],
        ] as const) {
          const response = await app.inject({ method, url, headers })
          globalErrorOf(t, response, 401, `${method} ${title}`)
          t.ok(response.headers['www-authenticate'], `${method} ${title}: a challenge`)
        }
    })

    t.test('a rejected client learns nothing about payloads', async t => {
      for (const [title, { headers, payload }] of Object.entries(BAD_PAYLOADS))
        for (const url of ['/account', `/admin/users/${user.id}`, '/admin/users/not-an-id'])
          globalErrorOf(
            t,
            await app.inject({ method: 'PUT', url, headers, payload }),
            401,
            `PUT ${url}, ${title}`,
          )
      for (const url of ['/users', '/admin/users', '/account'])
        globalErrorOf(t, await app.inject({ url: `${url}?limit=0&cursor=x&nonsense=1` }), 401, `GET ${url}`)
    })

    t.test('an unknown route is a 404, before anything about the body', async t => {
      const unknown = [
        '/nope',
        '/account/sign-up/x',
        '/admin',
        '/admin/nope',
        '/users/1',
        '//account',
        '/ACCOUNT',
      ]
      for (const url of unknown) globalErrorOf(t, await app.inject({ url }), 404, url)
      for (const [title, { headers, payload }] of Object.entries(BAD_PAYLOADS))
        for (const url of ['/nope', '/admin/nope'])
          globalErrorOf(
            t,
            await app.inject({ method: 'POST', url, headers, payload }),
            404,
            `${url} ${title}`,
          )
    })

    t.test('a known path with another method is a 405 with an exact Allow (RFC 9110 §15.5.6)', async t => {
      const allowed: Record<string, string[]> = {
        '/health': ['GET', 'HEAD'],
        '/ready': ['GET', 'HEAD'],
        '/account/sign-up': ['POST'],
        '/account/sign-in': ['POST'],
        '/account': ['DELETE', 'GET', 'HEAD', 'PUT'],
        '/users': ['GET', 'HEAD'],
        '/admin/users': ['GET', 'HEAD', 'POST'],
        '/admin/users/import': ['POST'],
        '/admin/users/export': ['GET', 'HEAD'],
        '/admin/events': ['GET', 'HEAD'],
        [`/admin/users/${UNKNOWN_USER}`]: ['DELETE', 'GET', 'HEAD', 'PUT'],
        [`/admin/users/${UNKNOWN_USER}/impersonate`]: ['POST'],
        [`/admin/users/${UNKNOWN_USER}/sessions`]: ['DELETE', 'GET', 'HEAD'],
        '/account/sign-out': ['POST'],
        '/account/password': ['DELETE', 'PUT'],
        '/account/email': ['PUT'],
        '/account/verify-email': ['GET', 'HEAD', 'POST'],
        '/account/verify-email/resend': ['POST'],
        '/account/forgot-password': ['POST'],
        '/account/reset-password': ['POST'],
        '/account/sessions': ['DELETE', 'GET', 'HEAD'],
        [`/account/sessions/${UNKNOWN_USER}`]: ['DELETE'],
      }
      const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'] as const
      for (const [url, allow] of Object.entries(allowed))
        for (const method of methods.filter(each => !allow.includes(each))) {
          const response = await app.inject({ method, url: `${url}?a=1` })
          if (method === 'HEAD') t.equal(response.statusCode, 405, `HEAD ${url}`)
          else globalErrorOf(t, response, 405, `${method} ${url}`)
          t.strictSame(String(response.headers.allow).split(', ').sort(), allow, `${method} ${url}: Allow`)
        }
      for (const [title, { headers, payload }] of Object.entries(BAD_PAYLOADS)) {
        const response = await app.inject({ method: 'PATCH', url: '/account', headers, payload })
        globalErrorOf(t, response, 405, `before the body: ${title}`)
      }
    })

    t.test('a wrong pair is a 401 under credentials, a taken e-mail a 409 under email', async t => {
      const payload = { email: user.email, password: 'not this pass phrase' }
      const rejected = await app.inject({ method: 'POST', url: '/account/sign-in', payload })
      errorsAt(t, rejected, 401, ['credentials'])
      const taken = await signUpWith({
        email: user.email.toUpperCase(),
        password: 'a rather long phrase 8',
      })
      errorsAt(t, taken, 409, ['email'])
    })

    t.test('429 and 503 have Retry-After (RFC 9110 §10.2.3)', async t => {
      for (const [url, status] of Object.entries({ '/test/too-many': 429, '/test/overloaded': 503 })) {
        const response = await app.inject({ url })
        const message = globalErrorOf(t, response, status)
        t.not(message, 'Something went wrong', 'foreseen: its message is meant for the caller')
        t.match(response.headers['retry-after'], /^[1-9]\d*$/, 'whole seconds')
      }
    })

    t.test('HEAD errors have no body, and the headers of GET (RFC 9110 §9.3.2)', async t => {
      for (const url of ['/nope', '/account', '/admin/users', '/test/overloaded', '/users?limit=0']) {
        const [get, head] = [await app.inject({ url }), await app.inject({ method: 'HEAD', url })]
        t.equal(head.body, '', url)
        t.equal(head.statusCode, get.statusCode, url)
        for (const name of ['content-type', 'content-length', 'www-authenticate', 'retry-after'])
          t.equal(head.headers[name], get.headers[name], `${url}: ${name}`)
      }
    })
  })
}
