/**
 * The CSRF rule of docs/design.md, "Tokens and sessions" for requests with the cookie, in every combination. No store can change it: one
 * engine.
 */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { asAdmin, bearer, build, cookie, PASSWORD, type SignedUp, signUp } from '../support/build.ts'

const HOST = 'accounts.example.com:8080'
const OWN = `http://${HOST}`
const CONFIGURED = 'https://app.example.net'

type Headers = Record<string, string>

interface Case {
  readonly site: string | undefined
  readonly origin: string | undefined
  readonly method: 'GET' | 'HEAD' | 'PUT'
  readonly carrier: 'cookie' | 'bearer'
}

const SITES = [undefined, 'same-origin', 'none', 'same-site', 'cross-site', 'junk']

const ORIGINS = [
  undefined,
  OWN,
  CONFIGURED,
  'https://other.example.org',
  'null',
  'http://accounts.example.com:8081',
  'http://accounts.example.com',
  `https://${HOST}`,
  `${CONFIGURED}:8443`,
  'http://app.example.net',
  `${OWN}.example.org`,
  `http://sub.${HOST}`,
]

/**
 * "When the cookie is what identified the user, an unsafe method needs `Sec-Fetch-Site` same-origin or none, else an
 * `Origin` equal to the service's own or a configured one, else neither header; otherwise 403. Bearer requests are exempt."
 */
const verdict = ({ site, origin, method, carrier }: Case, own: string): 200 | 403 => {
  if (carrier === 'bearer' || method !== 'PUT') return 200
  if (site === 'same-origin' || site === 'none') return 200
  if (origin === own || origin === CONFIGURED) return 200
  return site === undefined && origin === undefined ? 200 : 403
}

const cases = function* (): Generator<Case> {
  for (const site of SITES)
    for (const origin of ORIGINS)
      for (const method of ['GET', 'HEAD', 'PUT'] as const)
        for (const carrier of ['cookie', 'bearer'] as const) yield { site, origin, method, carrier }
}

const headersOf = ({ site, origin, carrier }: Case, token: string): Headers => ({
  host: HOST,
  ...(carrier === 'cookie' ? cookie(token) : bearer(token)),
  ...(site === undefined ? {} : { 'sec-fetch-site': site }),
  ...(origin === undefined ? {} : { origin }),
})

let names = 0

/** Sends the request; a PUT sets a new name. @returns the response and the name. */
const send = async (app: FastifyInstance, one: Case, token: string, more: Headers = {}) => {
  names += 1
  const firstName = `Name ${names}`
  const response = await app.inject({
    method: one.method,
    url: '/account',
    headers: { ...headersOf(one, token), ...more },
    ...(one.method === 'PUT' ? { payload: { firstName } } : {}),
  })
  return { response, firstName }
}

const app = await build(t, { env: { ALLOWED_ORIGINS: `https://www.example.net,${CONFIGURED}` } })
const user = await signUp(app)

const nameOf = async ({ token }: SignedUp): Promise<string> =>
  (await app.inject({ url: '/account', headers: bearer(token) })).json().firstName

for (const method of ['GET', 'HEAD', 'PUT']) {
  t.test(`${method} by cookie and by bearer token, from every site and origin`, async t => {
    for (const one of cases()) {
      if (one.method !== method) continue
      const title = `${one.carrier}, Sec-Fetch-Site ${one.site}, Origin ${one.origin}`
      const expected = verdict(one, OWN)
      const { response, firstName } = await send(app, one, user.token)
      t.equal(response.statusCode, expected, title)
      if (method !== 'PUT') continue
      const done = (await nameOf(user)) === firstName
      t.equal(done, expected === 200, `${title}: ${expected === 200 ? 'changed' : 'nothing changed'}`)
      if (expected === 403) t.strictSame(Object.keys(response.json().errors), ['global'], 'the errors body')
    }
  })
}

t.test('an invalid cookie is a 401 from any origin (§5.1.4)', async t => {
  for (const one of cases()) {
    if (one.method !== 'PUT' || one.carrier !== 'cookie') continue
    const { response } = await send(app, one, 'garbage')
    t.equal(response.statusCode, 401, `Sec-Fetch-Site ${one.site}, Origin ${one.origin}`)
  }
})

t.test('a request of another site counts towards no limit', async t => {
  const READER = 'https://reader.example.net'
  const env = { RATE_LIMIT: 'on', ALLOWED_ORIGINS: CONFIGURED, CORS_ORIGINS: READER }
  const limited = await build(t, { env })
  const post = (url: string, headers: Headers, payload?: string) =>
    limited.inject({
      method: 'POST',
      url,
      headers: { host: HOST, ...headers },
      ...(payload !== undefined && { payload }),
    })
  const foreign = [
    { origin: 'https://other.example.org' },
    { origin: 'null' },
    { origin: 'https://other.example.org', 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ]
  const withoutPreflight = [
    {},
    { 'content-type': 'text/plain' },
    { 'content-type': 'TEXT/PLAIN ; charset=UTF-8' },
    { 'content-type': 'application/x-www-form-urlencoded' },
    { 'content-type': 'multipart/form-data; boundary=x' },
  ]
  for (const url of ['/account/sign-in/passkey/options', '/account/sign-in', '/account/sign-up'])
    for (const site of foreign)
      for (const type of withoutPreflight) {
        const title = `${url} ${JSON.stringify({ ...site, ...type })}`
        const { statusCode, headers, body } = await post(url, { ...site, ...type } as Headers, 'x')
        t.equal(statusCode, 403, title)
        t.equal(body, '{"errors":{"global":["A page of another site cannot send this request"]}}')
        t.notOk(headers.ratelimit, title)
      }
  const options = '/account/sign-in/passkey/options'
  for (const headers of [
    {},
    { origin: OWN },
    { origin: CONFIGURED },
    { origin: READER },
    { 'sec-fetch-site': 'same-origin' },
    { 'sec-fetch-site': 'none' },
  ])
    t.equal((await post(options, headers as Headers)).statusCode, 200, JSON.stringify(headers))
  const json = { origin: 'https://other.example.org', 'content-type': 'application/json' }
  t.equal((await post('/account/sign-in', json, '{}')).statusCode, 400, 'browsers ask before they send JSON')
  const { token, id } = await signUp(limited)
  const elsewhere = { origin: 'https://other.example.org' }
  t.equal((await post('/account/sign-out', { ...elsewhere, ...bearer('none') })).statusCode, 401)
  t.equal((await post('/account/sign-out', { ...elsewhere, ...bearer(token) })).statusCode, 204)
  t.equal((await post(`/admin/users/${id}/impersonate`, { ...elsewhere, ...asAdmin })).statusCode, 201)
})

t.test('a cookie takes precedence over a bearer token, so the rule applies (§5.1.1)', async t => {
  const foreign: Case = {
    site: 'cross-site',
    origin: 'https://other.example.org',
    method: 'PUT',
    carrier: 'cookie',
  }
  t.equal((await send(app, foreign, user.token, bearer(user.token))).response.statusCode, 403)
  const empty = { ...bearer(user.token), cookie: 'ACCESS_TOKEN=' }
  t.equal((await send(app, foreign, user.token, empty)).response.statusCode, 200, 'an empty cookie is absent')
  const other = { ...bearer(user.token), cookie: 'theme=dark' }
  t.equal(
    (await send(app, foreign, user.token, other)).response.statusCode,
    200,
    'other cookies do not matter',
  )
})

t.test('the rule applies to public and admin routes too', async t => {
  const payload = { email: user.email, password: PASSWORD }
  const requests = [
    { method: 'POST', url: '/account/sign-in', payload },
    { method: 'PUT', url: `/admin/users/${user.id}`, payload: { lastName: 'Foreign' } },
  ] as const
  for (const request of requests) {
    const status = async (headers: Headers) =>
      (await app.inject({ ...request, headers: { ...asAdmin, host: HOST, ...headers } })).statusCode
    const foreign = { 'sec-fetch-site': 'cross-site' }
    t.equal(await status({ ...foreign, ...cookie(user.token) }), 403, `${request.url}, by cookie`)
    t.equal(await status({ 'sec-fetch-site': 'same-origin', ...cookie(user.token) }), 200)
    t.equal(await status({ ...foreign, ...bearer(user.token) }), 200, 'by bearer')
    t.equal(await status({ ...foreign, ...cookie('garbage') }), 200, 'an invalid cookie')
    t.equal(await status(foreign), 200, 'no cookie')
  }
})

t.test('a request to open a WebSocket is not safe, though its method is GET', async t => {
  const status = async (origin: string, upgrade: Headers = {}) => {
    const headers = { ...cookie(user.token), host: HOST, origin, ...upgrade }
    return (await app.inject({ url: '/account', headers })).statusCode
  }
  for (const upgrade of ['websocket', 'WebSocket']) {
    t.equal(await status('https://other.example.org', { connection: 'upgrade', upgrade }), 403, upgrade)
    t.equal(await status(OWN, { connection: 'upgrade', upgrade }), 200)
  }
  t.equal(await status('https://other.example.org'), 200)
})

t.test('a cross-site request is rejected before validation', async t => {
  const headers = { ...cookie(user.token), host: HOST, 'sec-fetch-site': 'cross-site' }
  for (const payload of ['{"firstName":5}', '{not json', '{"unknown":1}', '']) {
    const request = { method: 'PUT', url: '/account', payload } as const
    const json = await app.inject({
      ...request,
      headers: { ...headers, 'content-type': 'application/json' },
    })
    t.equal(json.statusCode, 403, `JSON ${payload}`)
    const form = await app.inject({ ...request, headers: { ...headers, 'content-type': 'text/plain' } })
    t.equal(form.statusCode, 403, `a form's ${payload}`)
  }
})

t.test('by default only the own origin is allowed', async t => {
  const app = await build(t)
  const user = await signUp(app)
  const status = async (origin: string, more: Headers = {}) => {
    const one = { site: undefined, origin, method: 'PUT', carrier: 'cookie' } as const
    return (await send(app, one, user.token, more)).response.statusCode
  }
  t.equal(await status(OWN), 200)
  t.equal(await status(CONFIGURED), 403)
  t.equal(await status('http://plain.example.com', { host: 'plain.example.com' }), 200, 'the default port')
  const forwarded = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'other.example.org' }
  t.equal(
    await status('https://other.example.org', forwarded),
    403,
    'forwarded headers of an untrusted client',
  )
})

t.test('behind a trusted proxy the own origin is the forwarded one', async t => {
  const app = await build(t, { env: { TRUST_PROXY: '127.0.0.1' } })
  const user = await signUp(app)
  const status = async (origin: string) => {
    const one = { site: undefined, origin, method: 'PUT', carrier: 'cookie' } as const
    return (await send(app, one, user.token, { 'x-forwarded-proto': 'https' })).response.statusCode
  }
  t.equal(await status(`https://${HOST}`), 200)
  t.equal(await status(OWN), 403, 'the scheme behind the proxy is not the own one')
})
