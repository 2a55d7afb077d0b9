/** `POST /oauth/register` (RFC 7591): clients that register themselves. */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { OPERATOR } from '#core/audit-log/event'
import { createKey } from '../support/admin-keys.ts'
import { allEvents } from '../support/admin-routes.ts'
import { asAdmin, bearer, manualClock, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { mailbox } from '../support/mailbox.ts'
import { buildOAuth, clientKey, oauthErrorAt, postClient, registerClient } from '../support/oauth.ts'
import {
  authorize,
  CALLBACK,
  newCode,
  newTokens,
  openConsent,
  PUBLIC,
  redeem,
  requestIn,
  tokensIn,
} from '../support/oauth-flow.ts'

const DAY = 86_400_000
const LOOPBACK = 'http://127.0.0.1/callback'
const QUERY = { response_type: 'code', code_challenge: 'x'.repeat(43), code_challenge_method: 'S256' }

await onEnginesOfRun(t, async (t, engine) => {
  const build = (
    t: Parameters<typeof buildOAuth>[1],
    mode: 'token' | 'loopback',
    { env = {}, ...options }: Parameters<typeof buildOAuth>[2] = {},
  ) => buildOAuth(engine, t, { env: { OAUTH_REGISTRATION: mode, ...env }, ...options })

  const register = (app: FastifyInstance, payload: object | string, token?: string) =>
    app.inject({
      method: 'POST',
      url: '/oauth/register',
      headers: {
        'content-type': 'application/json',
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      payload: typeof payload === 'string' ? payload : JSON.stringify(payload),
    })

  const metadata = async (app: FastifyInstance) =>
    (await app.inject('/.well-known/oauth-authorization-server')).json()

  const job = () => ({ job: 'test', fence: 1, signal: AbortSignal.timeout(10_000) })

  t.test('off: both forms of the error, and no endpoint in the metadata', async t => {
    const app = await buildOAuth(engine, t)
    const response = await register(app, { redirect_uris: [LOOPBACK] })
    t.equal(response.statusCode, 403)
    t.match(response.json(), {
      error: 'access_denied',
      error_description: /administrator/,
      errors: { global: [/./] },
    })
    t.equal((await metadata(app)).registration_endpoint, undefined)
  })

  t.test('loopback: a program registers itself, and users get its tokens', async t => {
    const app = await build(t, 'loopback')
    t.equal((await metadata(app)).registration_endpoint, 'https://id.example.test/oauth/register')
    const response = await register(app, {
      ...{ redirect_uris: [LOOPBACK, 'http://localhost/callback'], client_name: ' Terminal ' },
      ...{
        grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
      },
      ...{ scope: 'account:read offline_access', client_uri: 'https://terminal.example.test' },
    })
    t.equal(response.statusCode, 201, response.body)
    t.equal(response.headers['cache-control'], 'no-store')
    const { client_id: id, client_id_issued_at: issuedAt, ...rest } = response.json()
    t.type(issuedAt, 'number')
    t.strictSame(rest, {
      client_name: 'Terminal',
      redirect_uris: [LOOPBACK, 'http://localhost/callback'],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      scope: 'account:read offline_access',
      id_token_signed_response_alg: 'RS256',
      client_uri: 'https://terminal.example.test',
    })
    const stored = await app.inject({ url: `/admin/clients/${id}`, headers: asAdmin })
    t.match(stored.json(), { origin: 'registered', firstParty: false, requirePkce: true, adminScopes: [] })
    const [event] = await allEvents(app)
    t.match(event, { type: 'client.created', actor: { type: 'anonymous' }, details: { client: id } })
    const { token, email } = await signUp(app)
    const uri = 'http://127.0.0.1:5005/callback'
    const client = { id, secret: null }
    for (let times = 0; times < 2; times += 1) {
      const code = await newCode(app, client, token, { redirect_uri: uri })
      const { accessToken } = tokensIn(await redeem(app, client, code, { redirect_uri: uri }))
      const account = await app.inject({ url: '/account', headers: bearer(accessToken) })
      t.equal(account.statusCode, 200)
    }
    const known = await registerClient(app, PUBLIC)
    await newTokens(app, known, token)
    const mails = await mailbox(app).to(email, 'clientConnected')
    t.equal(mails.length, 1, 'only of the first access, and only of a client that nobody has checked')
    t.match(mails[0]?.text, 'calls itself “Terminal”')
  })

  t.test('P19: the consent page says who nobody has checked, and where the user goes on', async t => {
    const app = await build(t, 'loopback')
    const { token } = await signUp(app)
    const open = async (id: string, uri: string) => {
      const begun = await authorize(app, { client_id: id, redirect_uri: uri, ...QUERY }, token)
      return (await openConsent(app, requestIn(begun), token)).body
    }
    const { client_id: id } = (await register(app, { redirect_uris: [LOOPBACK] })).json()
    const page = await open(id, 'http://127.0.0.1:5005/callback')
    t.match(page, 'Unverified')
    t.match(page, '127.0.0.1:5005')
    t.match(page, 'Anybody can write one')
    const known = await registerClient(app, PUBLIC)
    t.notMatch(await open(known.id, CALLBACK), 'Unverified')
  })

  t.test('loopback: only public clients on the device of the user', async t => {
    const app = await build(t, 'loopback')
    const method = 'token_endpoint_auth_method'
    const wrong: [string, string, object][] = [
      ['redirect_uris', 'invalid_redirect_uri', { redirect_uris: [CALLBACK] }],
      ['redirect_uris', 'invalid_redirect_uri', { redirect_uris: [LOOPBACK, CALLBACK] }],
      ['redirect_uris', 'invalid_redirect_uri', { redirect_uris: ['com.example.app:/cb'] }],
      ['redirect_uris.0', 'invalid_redirect_uri', { redirect_uris: ['http://localhost.evil.test/cb'] }],
      [method, 'invalid_client_metadata', { redirect_uris: [LOOPBACK], [method]: 'client_secret_basic' }],
      [
        method,
        'invalid_client_metadata',
        { redirect_uris: [LOOPBACK], [method]: 'private_key_jwt', jwks: { keys: [clientKey().jwk] } },
      ],
    ]
    for (const [field, error, document] of wrong) {
      const response = await register(app, document)
      oauthErrorAt(t, response, 400, error, [field], JSON.stringify(document))
    }
  })

  t.test('token: an admin key with clients:register as Bearer token', async t => {
    const app = await build(t, 'token')
    const document = { redirect_uris: [CALLBACK], client_name: 'Partner' }
    const key = await createKey(app, ['clients:register'])
    const other = await createKey(app, ['clients:write'])
    const { 'x-admin-key': text } = key.headers as Record<string, string>
    const anonymous = await register(app, document)
    t.match(anonymous.json(), { error: 'invalid_token' })
    t.strictSame([anonymous.statusCode, anonymous.headers['www-authenticate']], [401, 'Bearer'])
    t.equal((await register(app, document, 'nothing')).statusCode, 401)
    const refused = await register(app, document, (other.headers as Record<string, string>)['x-admin-key'])
    t.equal(refused.statusCode, 403)
    t.match(refused.json(), { error: 'insufficient_scope' })
    const inHeader = await app.inject({
      method: 'POST',
      url: '/oauth/register',
      headers: key.headers,
      payload: document,
    })
    t.equal(inHeader.statusCode, 401)

    const response = await register(app, document, text)
    t.equal(response.statusCode, 201, response.body)
    t.match(response.json(), {
      client_secret: /^gate_cls_/,
      client_secret_expires_at: 0,
      grant_types: ['authorization_code'],
    })
    const { client_id: id, client_secret: secret } = response.json()
    t.match(response.json().scope, /openid profile email/)
    const [event] = await allEvents(app)
    t.match(event, { actor: { type: 'adminKey', id: key.id } })
    const { token } = await signUp(app)
    t.type((await newTokens(app, { id, secret }, token, { scope: 'openid' })).accessToken, 'string')
    const list = await app.inject({ url: '/admin/clients', headers: asAdmin })
    t.notMatch(list.body, secret)
  })

  t.test('P31, P32: privileges are refused, and ids are generated', async t => {
    const app = await build(t, 'loopback')
    const base = { redirect_uris: [LOOPBACK] }
    const privileges = [
      ...[
        { firstParty: true },
        { adminScopes: ['users:read'] },
        { requirePkce: false },
        { require_pkce: false },
      ],
      ...[{ first_party: true }, { blocked: false }],
    ]
    for (const privilege of privileges) {
      const response = await register(app, { ...base, ...privilege })
      oauthErrorAt(t, response, 400, 'invalid_client_metadata', Object.keys(privilege))
    }
    const machine = await register(app, { ...base, grant_types: ['client_credentials'] })
    oauthErrorAt(t, machine, 400, 'invalid_client_metadata', ['grant_types'])
    const { id } = await registerClient(app, PUBLIC)
    const again = await register(app, { ...base, client_id: id, client_secret: 'x' })
    t.equal(again.statusCode, 201)
    t.not(again.json().client_id, id)
    t.equal(again.json().client_secret, undefined)
  })

  t.test('P33: unknown members are ignored', async t => {
    const app = await build(t, 'loopback')
    const unknown = {
      ...{ software_id: 'x', contacts: [1], logo_uri: 'x:', 'client_name#de': 'Y' },
      application_type: 7,
    }
    const response = await register(app, { redirect_uris: [LOOPBACK], ...unknown })
    t.equal(response.statusCode, 201)
    t.equal(response.json().client_name, '127.0.0.1')
    t.notMatch(response.body, 'software_id')
  })

  t.test('metadata that is not valid is a 400 in both forms', async t => {
    const app = await build(t, 'loopback')
    const wrong: [string[], string | object][] = [
      [['redirect_uris'], {}],
      [['redirect_uris'], { redirect_uris: [] }],
      [['redirect_uris'], { redirect_uris: LOOPBACK }],
      [['redirect_uris'], { redirect_uris: [LOOPBACK, LOOPBACK] }],
      [['redirect_uris.0'], { redirect_uris: [7] }],
      [['redirect_uris.0'], { redirect_uris: [`${LOOPBACK}\u0000`] }],
      [['redirect_uris.0'], { redirect_uris: [`${LOOPBACK}?${'x'.repeat(2_048)}`] }],
      [['redirect_uris'], { redirect_uris: Array.from({ length: 21 }, (_, i) => `${LOOPBACK}${i}`) }],
      ...[{}, '', 7, 'a\u0000b', 'x'.repeat(129)].map((client_name): [string[], object] => [
        ['client_name'],
        { client_name },
      ]),
      [['grant_types'], { grant_types: 'authorization_code' }],
      [['grant_types'], { grant_types: ['refresh_token'] }],
      [['response_types'], { response_types: ['token'] }],
      [['token_endpoint_auth_method'], { token_endpoint_auth_method: 'tls_client_auth' }],
      [['id_token_signed_response_alg'], { id_token_signed_response_alg: 'none' }],
      [['id_token_signed_response_alg'], { id_token_signed_response_alg: 'ES256' }],
      [['jwks'], { jwks: { keys: [clientKey().jwk] } }],
      [['jwks'], { jwks: [] }],
      [['scope'], { scope: 7 }],
      [['scope'], { scope: 'x'.repeat(4_097) }],
      [['client_uri'], { client_uri: 'http://example.test' }],
      [['policy_uri'], { policy_uri: 'javascript:alert(1)' }],
      [['tos_uri'], { tos_uri: [] }],
    ]
    for (const [fields, change] of wrong) {
      const own = change as { redirect_uris?: unknown }
      const isOfUri = fields[0]?.startsWith('redirect_uris')
      const response = await register(app, isOfUri ? own : { redirect_uris: [LOOPBACK], ...own })
      const error = isOfUri ? 'invalid_redirect_uri' : 'invalid_client_metadata'
      oauthErrorAt(t, response, 400, error, fields, JSON.stringify(change))
    }
    for (const body of [
      '',
      '[]',
      'null',
      '{',
      '{"a":1,"a":2}',
      `{"redirect_uris":["${LOOPBACK}"],"__proto__":{}}`,
    ]) {
      const response = await register(app, body)
      t.equal(response.statusCode, 400, body)
      t.match(response.json(), { error: 'invalid_client_metadata', errors: {} })
    }
    const large = await register(app, { redirect_uris: [LOOPBACK], x: 'x'.repeat(2_000_000) })
    t.equal(large.statusCode, 413)
    t.match(large.json(), { error: 'invalid_request' })
    const form = await app.inject({
      method: 'POST',
      url: '/oauth/register',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      payload: 'redirect_uris=x',
    })
    t.strictSame([form.statusCode, form.json().error], [415, 'invalid_request'])
  })

  t.test('an address may register twenty clients in ten minutes', async t => {
    const app = await build(t, 'loopback', { env: { RATE_LIMIT: 'on' } })
    for (let count = 0; count < 20; count += 1)
      t.equal((await register(app, { redirect_uris: [LOOPBACK] })).statusCode, 201)
    const limited = await register(app, { redirect_uris: [LOOPBACK] })
    t.equal(limited.statusCode, 429)
    t.match(limited.json(), { error: 'temporarily_unavailable' })
  })

  t.test('a registered client that nobody used for a month goes', async t => {
    const clock = manualClock()
    const app = await build(t, 'loopback', { clock: clock.now })
    const isKnown = async (id: string) =>
      (await app.inject({ url: `/admin/clients/${id}`, headers: asAdmin })).statusCode === 200
    const { client_id: unused } = (await register(app, { redirect_uris: [LOOPBACK] })).json()
    const own = (await postClient(app, { ...PUBLIC, name: 'Own' })).json()
    const remove = () => app.services.clients.removeUnused(job())
    clock.advance(30 * DAY)
    await remove()
    t.equal(await isKnown(unused), true)
    clock.advance(1)
    await remove()
    t.equal(await isKnown(unused), false)
    t.equal(await isKnown(own.id), true)
    const [event] = await allEvents(app)
    t.match(event, { type: 'client.deleted', actor: { type: 'system' }, details: { client: unused } })
  })

  t.test('a grant keeps a registered client, and its end begins the month anew', async t => {
    const clock = manualClock()
    const app = await build(t, 'token', { clock: clock.now })
    const isKnown = async (id: string) =>
      (await app.inject({ url: `/admin/clients/${id}`, headers: asAdmin })).statusCode === 200
    const key = await createKey(app, ['clients:register'])
    const { 'x-admin-key': text } = key.headers as Record<string, string>
    const document = {
      ...{ redirect_uris: [CALLBACK], token_endpoint_auth_method: 'none' },
      scope: 'account:read',
    }
    const { client_id: id } = (await register(app, document, text)).json()
    clock.advance(20 * DAY)
    const { token, id: userId } = await signUp(app)
    await newTokens(app, { id, secret: null }, token)
    clock.advance(20 * DAY)
    await app.services.clients.removeUnused(job())
    t.equal(await isKnown(id), true)
    const grants = app.services.oauth?.grants
    for (const grant of (await grants?.list(userId)) ?? [])
      await grants?.end(grant.id, userId, OPERATOR, false)
    await app.services.clients.removeUnused(job())
    t.equal(await isKnown(id), true, 'it was used 20 days ago')
    clock.advance(11 * DAY)
    await app.services.clients.removeUnused(job())
    t.equal(await isKnown(id), false)
  })
})
