/** Responses of providers that bend their standards or are broken, each with its reason in the log (CASES D9). */
import { createPublicKey, generateKeyPairSync, randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import type { LightMyRequestResponse } from 'fastify'
import { SignJWT } from 'jose'
import t, { type Test } from 'tap'
import { call } from '../support/account-routes.ts'
import { build, freshEmail, logCapture, manualClock } from '../support/build.ts'
import { globalErrorOf } from '../support/error-response.ts'
import { providersEnv, serve } from '../support/identity-provider.ts'

const [DEBUG, INFO, WARN] = [20, 30, 40]
const MINUTE = 60_000
const TENANT = '01936b7e-4a5c-7d3e-9f10-2b3c4d5e6f70'
const ACCESS_TOKEN = 'the-access-token-7'

type Members = Readonly<Record<string, unknown>>
type Respond = (response: ServerResponse) => void

const keys = generateKeyPairSync('rsa', { modulusLength: 2_048 })

const json =
  (body: unknown, status = 200): Respond =>
  response =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))

/** What the next sign-in meets. */
interface Script {
  /** Members of the token response. */
  token: Members
  claims: Members
  userInfo: Members
  /** Of the metadata. */
  metadata: Members
  sign: (claims: Members) => Promise<string> | string
  /** Whole responses by path. */
  respond: Readonly<Record<string, Respond>>
}

const signWith =
  (header = { alg: 'RS256', kid: 'k' }) =>
  (claims: Members) =>
    new SignJWT(claims).setProtectedHeader(header).sign(keys.privateKey)

const usual: Script = { token: {}, claims: {}, userInfo: {}, metadata: {}, sign: signWith(), respond: {} }
let script = usual
let account = { sub: '', email: '', nonce: '' }
const tokenRequests: { readonly authorization: string | undefined; readonly body: URLSearchParams }[] = []

const issuer = await serve(t, async (request, response) => {
  const { pathname } = new URL(request.url ?? '', issuer)
  let text = ''
  for await (const chunk of request) text += chunk
  const { authorization } = request.headers
  if (pathname === '/token') tokenRequests.push({ authorization, body: new URLSearchParams(text) })
  const own = script.respond[pathname]
  if (own) return own(response)
  const now = Math.floor(Date.now() / 1_000)
  switch (pathname) {
    case '/.well-known/openid-configuration':
      return json({
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/keys`,
        userinfo_endpoint: `${issuer}/me`,
        ...script.metadata,
      })(response)
    case '/keys':
      return json({
        keys: [{ ...createPublicKey(keys.privateKey).export({ format: 'jwk' }), kid: 'k', use: 'sig' }],
      })(response)
    case '/token': {
      const { sub, nonce } = account
      const claims = { iss: issuer, aud: 'gatehouse', sub, nonce, iat: now, exp: now + 60, ...script.claims }
      const id_token = await script.sign(claims)
      return json({ access_token: ACCESS_TOKEN, token_type: 'Bearer', id_token, ...script.token })(response)
    }
    default:
      if (authorization !== `Bearer ${ACCESS_TOKEN}`) return json({ error: 'invalid_token' }, 401)(response)
      return json({ sub: account.sub, email: account.email, email_verified: true, ...script.userInfo })(
        response,
      )
  }
})

const entry = (id: string, further: object = {}) => ({
  id,
  name: 'Test',
  issuer,
  clientId: 'gatehouse',
  clientSecret: 'the secret of the client',
  authoritativeFor: '*',
  ...further,
})
const endpoints = { authorization: `${issuer}/authorize`, token: `${issuer}/token`, userInfo: `${issuer}/me` }
const log = logCapture()
const clock = manualClock()
const app = await build(t, {
  env: {
    ...providersEnv(
      [
        entry('oidc'),
        entry('oauth2', { type: 'oauth2', issuer: 'https://oauth2.example', endpoints }),
        entry('tenant', { tenant: TENANT }),
        entry('without-nonce', { nonce: false }),
        entry('post', { tokenEndpointAuthMethod: 'client_secret_post' }),
        entry('basic', {
          type: 'oauth2',
          issuer: 'https://basic.example',
          endpoints,
          tokenEndpointAuthMethod: 'client_secret_basic',
        }),
      ],
      [issuer],
    ),
    LOG_LEVEL: 'trace',
  },
  logStream: log.stream,
  clock: clock.now,
})

interface Ended {
  readonly response: LightMyRequestResponse
  /** The lines of the log with a reason. */
  readonly lines: readonly Members[]
}

/** Signs a new user in, after the last minute's lines. @param change of the URL of the callback. */
const signIn = async (
  id: string,
  changes: Partial<Script> = {},
  change: (url: URL) => void = () => undefined,
): Promise<Ended> => {
  clock.advance(MINUTE)
  return signInNow(id, changes, change)
}

const signInNow = async (
  id: string,
  changes: Partial<Script> = {},
  change: (url: URL) => void = () => undefined,
): Promise<Ended> => {
  script = { ...usual, ...changes }
  const before = log.text().length
  const ended = (response: LightMyRequestResponse): Ended => ({
    response,
    lines: log
      .text()
      .slice(before)
      .split('\n')
      .filter(line => line.includes('"reason":'))
      .map(line => JSON.parse(line)),
  })
  const started = await call(app, 'POST', `/account/sign-in/providers/${id}`, {})
  if (started.statusCode !== 201) return ended(started)
  const { authorizationUrl, flow } = started.json()
  const query = new URL(authorizationUrl).searchParams
  account = {
    sub: randomBytes(8).toString('hex'),
    email: freshEmail(),
    nonce: query.get('nonce') ?? '',
  }
  const url = new URL(query.get('redirect_uri') ?? '')
  url.search = new URLSearchParams({ code: 'the-code', state: query.get('state') ?? '' }).toString()
  change(url)
  return ended(await call(app, 'POST', `/account/sign-in/providers/${id}/callback`, { url: url.href, flow }))
}

interface Expected {
  readonly status: number
  readonly level: number
  readonly reason: RegExp
  readonly endpoint?: string
}

const fails = (t: Test, what: string, { response, lines }: Ended, expected: Expected): void => {
  globalErrorOf(t, response, expected.status, what)
  t.equal(lines.length, 1, `${what}: one line has the reason`)
  const { endpoint } = expected
  t.match(lines[0], { ...expected, ...(endpoint !== undefined && { endpoint }) }, what)
  t.match(lines[0]?.provider, /^[a-z]/)
}

const VALUES: Readonly<Record<string, unknown>> = {
  missing: undefined,
  null: null,
  empty: '',
  'a number': 7,
  negative: -1.5,
  'a numeric text': '3600',
  'another text': 'user',
  'in capitals': 'BEARER',
  'a list': ['a', 'b'],
  'an object': { a: 1 },
  true: true,
  'very long': 'x'.repeat(100_000),
}

t.test('D9 members of a token response that nothing depends on may be anything', async t => {
  const members = ['token_type', 'expires_in', 'scope', 'refresh_token', 'error', 'ok', 'x']
  for (const [what, value] of Object.entries(VALUES))
    for (const id of ['oidc', 'oauth2']) {
      const token = Object.fromEntries(members.map(member => [member, value]))
      const { response, lines } = await signIn(id, { token })
      t.equal(response.statusCode, 200, `${id}: ${what}: ${response.body}`)
      t.strictSame(lines, [])
    }
})

t.test('D9 without an access token the provider is 503, and without an ID token 401', async t => {
  for (const [what, value] of Object.entries(VALUES)) {
    for (const id of ['oidc', 'oauth2'])
      fails(t, `access_token ${what}`, await signIn(id, { token: { access_token: value } }), {
        status: 503,
        level: WARN,
        reason: /^no access_token$|^status 401$|^status 431$|^connection$/,
      })
    fails(t, `id_token ${what}`, await signIn('oidc', { token: { id_token: value } }), {
      status: 401,
      level: WARN,
      reason: /^no id_token$|^Invalid JWT$/,
    })
    const { response } = await signIn('oauth2', { token: { id_token: value } })
    t.equal(response.statusCode, 200, 'a provider of type oauth2 needs none')
  }
  for (const access_token of ['a\r\nx: y', 'ü', ' '])
    fails(t, 'no header field', await signIn('oidc', { token: { access_token } }), {
      status: 503,
      level: WARN,
      reason: /^no access_token$/,
    })
})

const html: Respond = response =>
  void response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end('<html>')
const bytes =
  (body: Buffer, headers: Record<string, string> = {}): Respond =>
  response =>
    void response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(body)
const status =
  (code: number, headers: Record<string, string> = {}): Respond =>
  response =>
    void response.writeHead(code, headers).end('{')

const BROKEN: Readonly<Record<string, readonly [Respond, reason: RegExp]>> = {
  'cut JSON': [bytes(Buffer.from('{"access_token":"a')), /^not JSON, or cut$/],
  'an empty body': [bytes(Buffer.alloc(0)), /^not JSON, or cut$/],
  HTML: [html, /^HTML instead of JSON$/],
  'no UTF-8': [bytes(Buffer.from('{"access_token":"\xff"}', 'latin1')), /^not UTF-8$/],
  'a gzip bomb': [
    bytes(gzipSync(Buffer.alloc(10_000_000, 0x20)), { 'content-encoding': 'gzip' }),
    /^compressed$/,
  ],
  'too many bytes': [bytes(Buffer.alloc(2_000_000, 0x20)), /^tooLarge$/],
  'a list': [json([{}]), /^not a JSON object$/],
  null: [json(null), /^not a JSON object$/],
  'a redirect': [status(302, { location: 'https://idp.example/' }), /^status 302$/],
  'a missing page': [status(404), /^status 404$/],
  'an outage': [status(502), /^status 502$/],
  'no content': [response => void response.writeHead(204).end(), /^status 204$/],
  'a connection that ends': [response => void response.destroy(), /^connection$/],
}

t.test('D9 a broken response is 503, with one line that says which and why', async t => {
  const paths = [
    ['/token', 'token'],
    ['/me', 'userInfo'],
    ['/keys', 'keys'],
    ['/.well-known/openid-configuration', 'discovery'],
  ] as const
  for (const [path, endpoint] of paths)
    for (const [what, [respond, reason]] of Object.entries(BROKEN)) {
      const ended = await signIn('oidc', { respond: { [path]: respond } })
      fails(t, `${path}: ${what}`, ended, { status: 503, level: WARN, reason, endpoint })
    }
  for (const [what, [respond, reason]] of Object.entries(BROKEN))
    fails(t, `oauth2: ${what}`, await signIn('oauth2', { respond: { '/me': respond } }), {
      status: 503,
      level: WARN,
      reason,
    })
  for (const body of [{}, { keys: {} }, { keys: [7] }, { keys: [{ kty: 'RSA', kid: 'k', use: 'sig' }] }]) {
    const ended = await signIn('oidc', { respond: { '/keys': json(body) } })
    fails(t, JSON.stringify(body), ended, { status: 503, level: WARN, reason: /^no keys$|^unexpected: / })
  }
  t.equal((await signIn('oidc')).response.statusCode, 200, 'then it works again')
})

t.test('D9 metadata of another kind are 503, or do not matter', async t => {
  const members = ['issuer', 'authorization_endpoint', 'token_endpoint', 'jwks_uri', 'userinfo_endpoint']
  const further = ['token_endpoint_auth_methods_supported', 'id_token_signing_alg_values_supported', 'x']
  const outage = { '/token': status(500) }
  for (const member of [...members, ...further])
    for (const what of ['null', 'empty', 'a number', 'another text', 'a list']) {
      // The next one reads the metadata.
      await signIn('oidc', { respond: outage })
      const { response, lines } = await signIn('oidc', {
        metadata: { [member]: VALUES[what] },
        claims: { email: freshEmail() },
      })
      const isOk = response.statusCode === 200
      t.ok(isOk || [401, 503].includes(response.statusCode), `${member} ${what}: ${response.statusCode}`)
      t.equal(lines.length, isOk ? 0 : 1, `${member} ${what}: ${JSON.stringify(lines)}`)
      t.ok(isOk || lines[0]?.level === WARN)
    }
  for (const member of ['authorization_endpoint', 'token_endpoint']) {
    await signIn('oidc', { respond: outage })
    const ended = await signIn('oidc', { metadata: { [member]: [`${issuer}/x`] } })
    fails(t, `${member} in a list`, ended, { status: 503, level: WARN, reason: new RegExp(member) })
  }
  await signIn('oidc', { respond: outage })
  for (const userinfo_endpoint of [null, '', undefined]) {
    const ended = await signIn('oidc', { metadata: { userinfo_endpoint }, claims: { email: freshEmail() } })
    t.equal(ended.response.statusCode, 200, 'there is no user info')
  }
})

t.test('D9 errors of the token endpoint: a used code is 401, everything else 503', async t => {
  const stale: readonly (readonly [status: number, body: object])[] = [
    [400, { error: 'invalid_grant' }],
    // GitHub, Slack.
    [200, { error: 'bad_verification_code', error_description: 'The code is incorrect or expired.' }],
    [200, { access_token: '', error: 'bad_verification_code' }],
    [200, { ok: false, error: 'invalid_code' }],
  ]
  const misconfigured: readonly (readonly [status: number, body: object, reason: RegExp])[] = [
    [401, { error: 'invalid_client' }, /^invalid_client$/],
    [400, { error: 'unauthorized_client' }, /^unauthorized_client$/],
    [400, { error: 'invalid_request' }, /^invalid_request$/],
    [400, { error: 'unsupported_grant_type' }, /^unsupported_grant_type$/],
    [200, { error: 'incorrect_client_credentials' }, /^incorrect_client_credentials$/],
    [200, { ok: false, error: 'bad_client_secret' }, /^bad_client_secret$/],
    [503, { error: 'temporarily_unavailable' }, /^status 503$/],
    // Facebook, Twitch.
    [400, { error: { message: 'x', type: 'OAuthException', code: 1 } }, /^status 400$/],
    [400, { status: 400, message: 'Invalid client' }, /^status 400$/],
    [400, { error: 'ann@example.com' }, /^an unknown error$/],
    [200, { error: ACCESS_TOKEN }, /^an unknown error$/],
  ]
  for (const id of ['oidc', 'oauth2']) {
    for (const [code, body] of stale) {
      const ended = await signIn(id, { respond: { '/token': json(body, code) } })
      const reason = /^(?:invalid_grant|bad_verification_code|invalid_code)$/
      fails(t, JSON.stringify(body), ended, { status: 401, level: INFO, reason })
    }
    for (const [code, body, reason] of misconfigured) {
      const ended = await signIn(id, { respond: { '/token': json(body, code) } })
      fails(t, JSON.stringify(body), ended, { status: 503, level: WARN, reason, endpoint: 'token' })
    }
    const ended = await signIn(id, { userInfo: { ok: false, error: 'invalid_auth' } })
    fails(t, 'Slack', ended, { status: 503, level: WARN, reason: /^invalid_auth$/, endpoint: 'userInfo' })
  }
})

t.test('D9 each 401 has its reason in the log, at warn if it is the provider’s', async t => {
  const now = Math.floor(Date.now() / 1_000)
  const mistakes: readonly (readonly [reason: RegExp, changes: Partial<Script>])[] = [
    [/"nonce".* missing/, { claims: { nonce: undefined } }],
    [/"iss"/, { claims: { iss: 'https://other.example' } }],
    [/"iss"/, { claims: { iss: undefined } }],
    [/"aud"/, { claims: { aud: 'another' } }],
    [/"aud"/, { claims: { aud: ['gatehouse', 'another'] } }],
    [/"azp"/, { claims: { azp: 'another' } }],
    [/"azp"/, { claims: { aud: ['gatehouse', 'another'], azp: 'another' } }],
    [/"exp"/, { claims: { exp: now - 120 } }],
    [/"exp"/, { claims: { exp: String(now + 60) } }],
    [/"iat".*clocks/, { claims: { iat: now - 3_600 } }],
    [/"iat".*clocks/, { claims: { iat: now + 3_600 } }],
    [/"iat"/, { claims: { iat: null } }],
    [/"nbf"/, { claims: { nbf: now + 3_600 } }],
    [/"sub"/, { claims: { sub: undefined } }],
    [/"sub"/, { claims: { sub: '' } }],
    [/"sub"/, { userInfo: { sub: 'another' } }],
    [/"sub"/, { userInfo: { sub: 7 } }],
    [/signature/, { sign: async claims => `${(await signWith()(claims)).slice(0, -8)}AAAAAAAA` }],
    [/verification key/, { sign: signWith({ alg: 'RS256', kid: 'unknown' }) }],
    [/"alg"/, { sign: signWith({ alg: 'PS256', kid: 'k' }) }],
    [/JWE/, { sign: () => 'a.b.c.d.e' }],
    [/JWT/, { sign: () => 'nonsense' }],
    [/base64url/, { sign: () => 'ü.ü.ü' }],
    [/base64url/, { sign: async claims => (await signWith()(claims)).replace(/\.[^.]*$/, '.a') }],
  ]
  for (const [reason, changes] of mistakes)
    fails(t, String(reason), await signIn('oidc', changes), { status: 401, level: WARN, reason })
  const tenant = await signIn('tenant', { claims: { tid: 'another' } })
  fails(t, 'tid', tenant, { status: 401, level: WARN, reason: /"tid"/ })
  const noSubject = await signIn('oauth2', { userInfo: { sub: null } })
  fails(t, 'sub', noSubject, { status: 401, level: WARN, reason: /"sub"/ })
  const injected = await signIn('oidc', { claims: { nonce: 'of another flow' } })
  fails(t, 'nonce', injected, { status: 401, level: INFO, reason: /"nonce"/ })
})

t.test('D9 what a client can cause is at info, once a minute for each address', async t => {
  const refusing = (error: string) => (url: URL) => {
    url.searchParams.delete('code')
    url.searchParams.set('error', error)
  }
  const refused = await signIn('oidc', {}, refusing('access_denied'))
  fails(t, 'refused', refused, { status: 401, level: INFO, reason: /^access_denied$/ })
  const again = await signInNow('oidc', {}, refusing('access_denied'))
  fails(t, 'again', again, { status: 401, level: DEBUG, reason: /^access_denied$/ })
  const text = await signIn('oidc', {}, refusing('Call 0900-123'))
  fails(t, 'text', text, { status: 401, level: INFO, reason: /^an unknown error$/ })
  for (const name of ['response', 'id_token', 'token']) {
    const ended = await signIn('oidc', {}, url => url.searchParams.set(name, 'x'))
    fails(t, name, ended, { status: 401, level: INFO, reason: /another flow/ })
  }
  const wrong: Readonly<Record<string, (url: URL) => void>> = {
    state: url => url.searchParams.set('state', 'x'),
    iss: url => url.searchParams.set('iss', 'https://other.example'),
    code: url => url.searchParams.append('code', 'x'),
    path: url => {
      url.pathname += '/x'
    },
  }
  for (const [what, change] of Object.entries(wrong)) {
    const ended = await signIn('oidc', {}, change)
    fails(t, what, ended, { status: 400, level: INFO, reason: /flow|response|URL/ })
  }
})

t.test('D9 the reason of a provider is at warn once a second, and at debug meanwhile', async t => {
  const outage = { respond: { '/.well-known/openid-configuration': status(500) } }
  await signIn('oidc', { respond: { '/token': status(500) } })
  for (const level of [WARN, DEBUG, DEBUG])
    fails(t, 'discovery', await signInNow('oidc', outage), { status: 503, level, reason: /^status 500$/ })
  clock.advance(MINUTE)
  for (const level of [WARN, DEBUG, DEBUG]) {
    const ended = await signInNow('oidc', { claims: { azp: 'another' } })
    fails(t, 'azp', ended, { status: 401, level, reason: /"azp"/ })
  }
  const { lines } = await signIn('oidc', { claims: { azp: 'another' } })
  t.match(lines, [{ level: WARN, suppressed: 2 }])
})

t.test('nonce: false: the request has none, and neither has the ID token', async t => {
  const without = { nonce: undefined }
  t.equal((await signIn('without-nonce', { claims: without })).response.statusCode, 200)
  t.equal(account.nonce, '')
  const foreign = await signIn('without-nonce', { claims: { nonce: 'x' } })
  fails(t, 'foreign', foreign, { status: 401, level: INFO, reason: /"nonce"/ })
})

t.test('tokenEndpointAuthMethod decides how the client secret is sent', async t => {
  for (const [id, isBasic] of [
    ['oidc', true],
    ['post', false],
    ['oauth2', false],
    ['basic', true],
  ] as const) {
    await signIn(id)
    const { authorization, body } = tokenRequests.at(-1) ?? {}
    t.equal(authorization?.startsWith('Basic ') ?? false, isBasic, id)
    t.equal(body?.has('client_secret'), !isBasic, id)
  }
})

t.test('D9 null and blank claims of the ID token do not hide those of the user info', async t => {
  for (const empty of [null, '', ' ']) {
    const names = { given_name: empty, family_name: empty, name: empty, locale: empty }
    const userInfo = { given_name: 'Ann', family_name: 'Lee', locale: 'de-DE' }
    const { response } = await signIn('oidc', {
      claims: { ...names, email: empty, email_verified: empty },
      userInfo,
    })
    const expected = { firstName: 'Ann', lastName: 'Lee', locale: 'de-DE', emailVerified: true }
    t.match(response.json().user, { ...expected, email: account.email }, response.body)
    const { response: named } = await signIn('oidc', { claims: { family_name: empty, name: 'Ann Lee' } })
    t.match(named.json().user, { firstName: 'Ann Lee', lastName: null })
    const email = freshEmail()
    const confirmedBy = async (info: Members) =>
      (await signIn('oidc', { claims: { email, email_verified: empty }, userInfo: info })).response.json()
        .user?.emailVerified
    t.equal(await confirmedBy({ email: freshEmail() }), false, 'the confirmation is of another address')
  }
})

t.test('D9 the user info confirms the address that the ID token only names', async t => {
  const email = freshEmail()
  const { response } = await signIn('oidc', {
    claims: { email, email_verified: null },
    userInfo: { email: email.toUpperCase() },
  })
  t.match(response.json().user, { email, emailVerified: true })
  const denied = await signIn('oidc', {
    claims: { email: freshEmail(), email_verified: false },
    userInfo: { email_verified: true },
  })
  t.equal(denied.response.json().user?.emailVerified, false)
})

t.test('locales with underscores are tags, and others are left out', async t => {
  const locales: readonly (readonly [given: unknown, locale: string | null])[] = [
    ['en_US', 'en-US'],
    ['zh_Hant_TW', 'zh-Hant-TW'],
    ['pt_br', 'pt-BR'],
    ['de', 'de'],
    ['', null],
    ['_', null],
    ['en_US.UTF-8', null],
    ['C', null],
    [{ country: 'US', language: 'en' }, null],
    [7, null],
    ['x'.repeat(1_000), null],
  ]
  for (const [given, locale] of locales) {
    const { response } = await signIn('oidc', { userInfo: { locale: given } })
    t.equal(response.json().user?.locale, locale, String(given))
  }
  const { response } = await signIn('oidc', { claims: { locale: 'C' }, userInfo: { locale: 'fr_FR' } })
  t.equal(response.json().user?.locale, 'fr-FR')
})

t.test('D9 no line has a token, a code, a claim or a secret', async t => {
  const text = log.text()
  t.match(text, '"reason"')
  for (const secret of [
    ACCESS_TOKEN,
    'the-code',
    'eyJ',
    'the secret of',
    '@example.com',
    'Call 0900',
    account.sub,
  ])
    t.notOk(text.includes(secret), secret)
})
