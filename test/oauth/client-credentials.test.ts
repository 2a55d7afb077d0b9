/** Tokens of clients' own: authentication of clients, what the tokens open, introspection, revocation and metadata. */
import t from 'tap'
import { createKey } from '../support/admin-keys.ts'
import { asAdmin, manualClock, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import {
  ASSERTION_TYPE,
  adminStatus,
  assertionClaims,
  basic,
  buildOAuth,
  claimsOf,
  clientKey,
  ISSUER,
  ownToken,
  postForm,
  registerClient,
  registerMachine,
  requestOwnToken,
  requestToken,
} from '../support/oauth.ts'

const HOUR = 3_600_000

/** An error in both shapes. */
const assertError = (
  t: Pick<typeof import('tap').t, 'equal' | 'match'>,
  response: { statusCode: number; headers: Record<string, unknown>; json(): unknown },
  status: number,
  error: string,
  title = error,
): void => {
  t.equal(response.statusCode, status, title)
  t.match(response.json(), { error, error_description: /^[ !#-[\]-~]+$/, errors: Object }, title)
  t.equal(response.headers['cache-control'], 'no-store', title)
}

await onEnginesOfRun(t, async (t, engine) => {
  t.test('a token has the form of RFC 9068, and opens the admin routes of its scopes', async t => {
    const clock = manualClock()
    const app = await buildOAuth(engine, t, { clock: clock.now })
    const client = await registerMachine(app, { adminScopes: ['users:read', 'users:write'] })
    const response = await requestOwnToken(app, client, { scope: 'users:read events:read unknown' })
    t.equal(response.statusCode, 200, response.body)
    t.equal(response.headers['cache-control'], 'no-store')
    t.equal(response.headers.pragma, 'no-cache')
    const { access_token: token, ...rest } = response.json()
    t.strictSame(rest, { token_type: 'Bearer', expires_in: 3_600, scope: 'users:read' })
    const iat = clock.now() / 1_000
    const { jti, ...claims } = claimsOf(token)
    t.match(jti, /^[0-9a-f-]{36}$/)
    t.strictSame(claims, {
      ...{ sub: client.id, client_id: client.id, scope: 'users:read' },
      ...{ iat, exp: iat + 3_600, iss: ISSUER, aud: 'gatehouse' },
    })
    const header = JSON.parse(Buffer.from(token.split('.')[0], 'base64url').toString())
    t.match(header, { typ: 'at+jwt', alg: 'EdDSA' })

    t.equal(await adminStatus(app, token), 200)
    const events = await app.inject({ url: '/admin/events', headers: { 'x-admin-key': token } })
    t.equal(events.statusCode, 403)
    const payload = { email: 'a.new.user@example.com' }
    const headers = { 'x-admin-key': token }
    t.equal((await app.inject({ method: 'POST', url: '/admin/users', headers, payload })).statusCode, 403)
    clock.advance(HOUR)
    t.equal(await adminStatus(app, token), 401, 'it has expired')
  })

  t.test('a token is an admin key only in x-admin-key, and nobody is signed in by it', async t => {
    const app = await buildOAuth(engine, t)
    const client = await registerMachine(app)
    const token = await ownToken(app, client)
    for (const headers of [{ authorization: `Bearer ${token}` }, { cookie: `ACCESS_TOKEN=${token}` }])
      for (const url of ['/account', '/admin/users'])
        t.equal((await app.inject({ url, headers })).statusCode, 401, url)
    const { token: session } = await signUp(app)
    t.equal(await adminStatus(app, session), 401, 'a session is no admin key')
  })

  t.test('events name the client', async t => {
    const app = await buildOAuth(engine, t)
    const client = await registerMachine(app, { adminScopes: ['users:write'] })
    const headers = { 'x-admin-key': await ownToken(app, client) }
    const payload = { email: 'of.a.client@example.com' }
    t.equal((await app.inject({ method: 'POST', url: '/admin/users', headers, payload })).statusCode, 201)
    const events = await app.inject({ url: '/admin/events?type=user.created', headers: asAdmin })
    t.match(events.json().results, [{ actor: { type: 'adminKey', id: client.id } }])
  })

  t.test('a client uses the one method that it is registered with', async t => {
    const app = await buildOAuth(engine, t)
    const inHeader = await registerMachine(app)
    const inBody = await registerMachine(app, {
      adminScopes: ['users:read'],
      authMethod: 'client_secret_post',
    })
    const grant = { grant_type: 'client_credentials' }
    const bodyOf = ({ id, secret }: typeof inBody) => ({
      ...grant,
      client_id: id,
      client_secret: String(secret),
    })
    t.equal((await requestToken(app, grant, basic(inHeader))).statusCode, 200)
    t.equal((await requestToken(app, bodyOf(inBody))).statusCode, 200)
    const wrong = [
      await requestToken(app, bodyOf(inHeader)),
      await requestToken(app, grant, basic(inBody)),
      await requestToken(app, { ...grant, client_id: inHeader.id }),
      await requestToken(app, grant, basic({ ...inHeader, secret: inBody.secret })),
      await requestToken(app, grant, basic({ ...inHeader, secret: '' })),
      await requestToken(app, grant, basic({ ...inHeader, id: 'unknown' })),
      await requestToken(app, grant, { authorization: 'Basic !' }),
      await requestToken(app, grant, { authorization: 'Basic bm9jb2xvbg==' }),
      await requestToken(app, grant),
    ]
    for (const [index, response] of wrong.entries()) {
      assertError(t, response, 401, 'invalid_client', `P34, ${index}`)
      t.match(response.headers['www-authenticate'], /^Basic /)
    }
    const both = await requestToken(app, bodyOf(inBody), basic(inBody))
    assertError(t, both, 400, 'invalid_request', 'two methods')
    const otherId = await requestToken(app, { ...grant, client_id: inBody.id }, basic(inHeader))
    assertError(t, otherId, 400, 'invalid_request', 'two ids')
  })

  t.test('P40: an assertion is for the issuer, is signed by the client, and is used once', async t => {
    const app = await buildOAuth(engine, t)
    const key = clientKey()
    const keyed = { adminScopes: ['users:read'], authMethod: 'private_key_jwt', jwks: { keys: [key.jwk] } }
    const { id } = await registerMachine(app, keyed)
    const request = (assertion: string, parameters = {}) =>
      requestToken(app, {
        ...{ grant_type: 'client_credentials', client_assertion: assertion },
        ...{ client_assertion_type: ASSERTION_TYPE, ...parameters },
      })
    const valid = key.assert(assertionClaims(id))
    const twice = await Promise.all([request(valid), request(valid)])
    t.strictSame(twice.map(({ statusCode }) => statusCode).sort(), [200, 401], 'once, also at the same time')
    t.equal((await request(valid)).statusCode, 401)
    t.equal((await request(key.assert(assertionClaims(id)), { client_id: id })).statusCode, 200)
    const now = Math.floor(Date.now() / 1_000)
    const changes: object[] = [
      { aud: `${ISSUER}/oauth/token` },
      { aud: [ISSUER, 'https://other.example.test'] },
      { aud: undefined },
      { iss: 'other' },
      { exp: undefined },
      { exp: now - 120 },
      { exp: now + 86_400 },
      { nbf: now + 600 },
      { iat: now + 600 },
      { jti: undefined },
      { jti: '' },
      { jti: 7 },
    ]
    for (const change of changes)
      assertError(
        t,
        await request(key.assert({ ...assertionClaims(id), ...change })),
        401,
        'invalid_client',
        JSON.stringify(change),
      )
    const others = [
      clientKey().assert(assertionClaims(id)),
      `${valid.split('.').slice(0, 2).join('.')}.`,
      'a.b.c',
      'x',
    ]
    for (const assertion of others) assertError(t, await request(assertion), 401, 'invalid_client')
    const otherType = await request(key.assert(assertionClaims(id)), { client_assertion_type: 'x' })
    assertError(t, otherType, 401, 'invalid_client')
  })

  t.test('failures are limited, and lock nobody out', async t => {
    const app = await buildOAuth(engine, t)
    const client = await registerMachine(app)
    const wrong = { ...client, secret: 'wrong' }
    let last = await requestOwnToken(app, wrong)
    for (let attempt = 1; attempt < 25; attempt += 1) last = await requestOwnToken(app, wrong)
    assertError(t, last, 429, 'temporarily_unavailable')
    t.match(last.headers['retry-after'], /^\d+$/)
    t.equal((await requestOwnToken(app, client)).statusCode, 200)
  })

  t.test('P29: bad requests are errors in both shapes', async t => {
    const app = await buildOAuth(engine, t)
    const client = await registerMachine(app)
    const headers = basic(client)
    const grant = ['grant_type', 'client_credentials'] as const
    const exchange = 'urn:ietf:params:oauth:grant-type:token-exchange'
    const web = await registerClient(app, { redirectUris: ['https://app.example.test/'] })
    const wrong: [number, string, Promise<Awaited<ReturnType<typeof requestToken>>>][] = [
      [400, 'unsupported_grant_type', requestToken(app, { grant_type: exchange }, headers)],
      [400, 'unsupported_grant_type', requestToken(app, { grant_type: 'password' }, headers)],
      [400, 'unsupported_grant_type', requestToken(app, { grant_type: 'constructor' }, headers)],
      [400, 'unauthorized_client', requestOwnToken(app, web)],
      [400, 'invalid_scope', requestOwnToken(app, client, { scope: 'users:write' })],
      [400, 'invalid_scope', requestOwnToken(app, client, { scope: '' })],
      [400, 'invalid_request', requestToken(app, {}, headers)],
      [400, 'invalid_request', requestToken(app, [grant, grant], headers)],
      [400, 'invalid_request', requestToken(app, [grant, ['scope', 'a'], ['scope', 'b']], headers)],
      [400, 'invalid_request', requestOwnToken(app, client, { scope: 'a\u0000b' })],
      [400, 'invalid_request', requestOwnToken(app, client, { scope: 'x'.repeat(5_000) })],
      [400, 'invalid_target', requestToken(app, [grant, ['resource', 'a'], ['resource', 'b']], headers)],
      [413, 'invalid_request', requestOwnToken(app, client, { padding: 'x'.repeat(2_000_000) })],
      [
        415,
        'invalid_request',
        app.inject({ method: 'POST', url: '/oauth/token', headers, payload: { grant_type: 'x' } }),
      ],
    ]
    for (const [status, error, response] of wrong) assertError(t, await response, status, error)
    t.equal((await requestOwnToken(app, client, { unknown: 'is ignored' })).statusCode, 200)
  })

  t.test('P41: a revoked token ends at once; the token of another client does not', async t => {
    const app = await buildOAuth(engine, t)
    const client = await registerMachine(app)
    const other = await registerMachine(app)
    const [token, kept] = [await ownToken(app, client), await ownToken(app, client)]
    for (const each of [token, kept]) t.equal(await adminStatus(app, each), 200)
    const revoke = (presented: string, by: typeof client) =>
      postForm(app, 'revoke', { token: presented }, basic(by))
    t.equal((await revoke(token, other)).statusCode, 200)
    t.equal(await adminStatus(app, token), 200)
    for (const presented of [token, token, 'unknown']) {
      t.equal((await revoke(presented, client)).statusCode, 200)
      t.equal(await adminStatus(app, token), 401)
    }
    t.equal(await adminStatus(app, kept), 200)
    const introspect = async (presented: string) =>
      (await postForm(app, 'introspect', { token: presented }, basic(client))).json().active
    t.strictSame([await introspect(token), await introspect(kept)], [false, true])
    assertError(t, await postForm(app, 'introspect', { token }), 401, 'invalid_client')
    assertError(t, await postForm(app, 'revoke', {}, basic(client)), 400, 'invalid_request')
  })

  t.test('a client gives nobody keys or sessions that outlive its token', async t => {
    const app = await buildOAuth(engine, t)
    const keyWriter = await createKey(app, ['clients:write', 'keys:write'])
    const payload = { name: 'Job', grantTypes: ['client_credentials'], adminScopes: ['keys:write'] }
    const refused = await app.inject({
      method: 'POST',
      url: '/admin/clients',
      headers: keyWriter.headers,
      payload,
    })
    t.equal(refused.statusCode, 400)
  })

  t.test('P36: metadata follows from PUBLIC_URL alone, also with a path and another host', async t => {
    const app = await buildOAuth(engine, t, { env: { PUBLIC_URL: `${ISSUER}/auth` } })
    const issuer = `${ISSUER}/auth`
    for (const name of ['oauth-authorization-server', 'openid-configuration'])
      for (const path of ['', '/auth']) {
        const url = `/.well-known/${name}${path}`
        const response = await app.inject({ url, headers: { host: 'evil.example.test' } })
        t.equal(response.statusCode, 200, url)
        t.match(response.json(), {
          issuer,
          jwks_uri: `${issuer}/.well-known/jwks.json`,
          token_endpoint: `${issuer}/oauth/token`,
          grant_types_supported: ['authorization_code', 'refresh_token', 'client_credentials'],
        })
      }
  })

  t.test('with OAUTH=off metadata leads verifiers to the keys', async t => {
    const app = await buildOAuth(engine, t, { env: { OAUTH: 'off' } })
    const { body } = await app.inject('/.well-known/openid-configuration')
    t.strictSame(JSON.parse(body), { issuer: ISSUER, jwks_uri: `${ISSUER}/.well-known/jwks.json` })
  })

  t.test('OAUTH needs keys that others can verify', async t => {
    const env = { OAUTH: 'on', JWT_ALGORITHM: 'HS256' }
    await t.rejects(engine.build(t, { env }), /OAUTH needs JWT_ALGORITHM=EdDSA or ES256/)
  })
})
