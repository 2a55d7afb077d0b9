/** ID tokens, their keys, and UserInfo (OpenID Connect Core). */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import * as jose from 'jose'
import t from 'tap'
import { allFeatures } from '#features/built-in'
import { loadConfig } from '#process/config/config'
import { addTotp, signInWith } from '../support/authenticator-apps.ts'
import {
  ADMIN_KEY,
  accountStatus,
  asAdmin,
  bearer,
  build,
  manualClock,
  signUp,
  temporaryFolder,
} from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { buildOAuth, ISSUER, newRsaPem, OAUTH_ENV, postClient, registerClient } from '../support/oauth.ts'
import { CALLBACK, newCode, type Query, redeem, refresh } from '../support/oauth-flow.ts'
import { createMigratedFile } from '../support/sqlite.ts'
import { newPem } from '../support/token-signers.ts'

const WEB = {
  redirectUris: [CALLBACK],
  scopes: ['openid', 'profile', 'email', 'account:read', 'offline_access'],
}

const keysOf = async (app: FastifyInstance): Promise<jose.JSONWebKeySet> =>
  (await app.inject('/.well-known/jwks.json')).json()

const verified = async (app: FastifyInstance, idToken: string) =>
  jose.jwtVerify(idToken, jose.createLocalJWKSet(await keysOf(app)), { issuer: ISSUER })

const userInfo = (app: FastifyInstance, token: string, method: 'GET' | 'POST' = 'GET') =>
  app.inject({ method, url: '/oauth/userinfo', headers: bearer(token) })

await onEnginesOfRun(t, async (t, engine) => {
  const issued = async (app: FastifyInstance, token: string, query: Query, metadata: object = {}) => {
    const client = await registerClient(app, { ...WEB, ...metadata })
    const response = await redeem(app, client, await newCode(app, client, token, query))
    return {
      client,
      ...(response.json() as { access_token: string; id_token?: string; refresh_token: string }),
    }
  }

  t.test('an ID token has the claims of its scopes, and opens nothing', async t => {
    const clock = manualClock(1_800_000_000_000)
    const app = await buildOAuth(engine, t, { clock: clock.now })
    const { token, id, email } = await signUp(app, { firstName: 'Ann' })
    clock.advance(5_000)
    const {
      id_token: idToken = '',
      client,
      ...rest
    } = await issued(app, token, { scope: 'openid email', nonce: 'n-1' })
    const { payload, protectedHeader } = await verified(app, idToken)
    t.match(protectedHeader, { alg: 'RS256', typ: 'JWT' })
    t.strictSame(
      { ...payload, at_hash: undefined, sid: undefined },
      {
        ...{ sub: id, email, email_verified: false, iss: ISSUER, aud: client.id, nonce: 'n-1', amr: ['pwd'] },
        ...{ iat: 1_800_000_005, exp: 1_800_003_605, auth_time: 1_800_000_000 },
        ...{ at_hash: undefined, sid: undefined },
      },
    )
    t.type(payload.sid, 'string')
    t.equal(await accountStatus(app, idToken), 401)
    t.equal((await userInfo(app, idToken)).statusCode, 401)
    t.equal((await app.inject({ url: '/admin/users', headers: { 'x-admin-key': idToken } })).statusCode, 401)
    const refreshed = (await refresh(app, client, rest.refresh_token)).json()
    t.notOk('id_token' in refreshed)
  })

  t.test('without openid there is none, and UserInfo is refused', async t => {
    const app = await buildOAuth(engine, t)
    const { token } = await signUp(app)
    const tokens = await issued(app, token, { scope: 'account:read' })
    t.equal(tokens.id_token, undefined)
    const refused = await userInfo(app, tokens.access_token)
    t.equal(refused.statusCode, 403)
    t.match(refused.headers['www-authenticate'], 'insufficient_scope')
    t.equal(refused.json().error, 'insufficient_scope')
    const session = await userInfo(app, token)
    t.equal(session.statusCode, 401, 'a session is no grant')
    t.match(session.headers['www-authenticate'], 'Bearer error="invalid_token"')
    t.equal((await userInfo(app, 'forged')).statusCode, 401)
  })

  t.test('UserInfo follows the user, and tells no more than the scopes', async t => {
    const app = await buildOAuth(engine, t)
    const { token, id } = await signUp(app)
    const { access_token: accessToken } = await issued(app, token, { scope: 'openid profile' })
    const put = { method: 'PUT', url: '/account', headers: bearer(token) } as const
    await app.inject({ ...put, payload: { firstName: 'Ann', lastName: 'Keeper', locale: 'de' } })
    for (const method of ['GET', 'POST'] as const) {
      const response = await userInfo(app, accessToken, method)
      t.equal(response.headers['cache-control'], 'no-store')
      const { updated_at: updatedAt, ...claims } = response.json()
      t.type(updatedAt, 'number')
      t.strictSame(claims, {
        sub: id,
        name: 'Ann Keeper',
        given_name: 'Ann',
        family_name: 'Keeper',
        locale: 'de',
      })
    }
    await app.inject({ method: 'DELETE', url: '/account/sessions', headers: bearer(token) })
    await app.inject({ method: 'POST', url: '/account/sign-out', headers: bearer(token) })
    t.equal((await userInfo(app, accessToken)).statusCode, 401, 'the session has ended')
  })

  t.test('two factors are acr and amr', async t => {
    const app = await buildOAuth(engine, t)
    const { token, email } = await signUp(app)
    const { recoveryCodes } = await addTotp(app, token)
    const { accessToken } = (await signInWith(app, email, recoveryCodes[0])).json()
    const { id_token: idToken = '' } = await issued(app, accessToken, { scope: 'openid' })
    t.match((await verified(app, idToken)).payload, {
      acr: 'http://schemas.openid.net/pape/policies/2007/06/multi-factor',
      amr: ['pwd', 'otp', 'mfa'],
    })
  })

  t.test('the algorithm is that of the client, if there is a key', async t => {
    const app = await buildOAuth(engine, t, {
      env: { JWT_PRIVATE_KEY_PREVIOUS: newPem('ES256'), OAUTH_RSA_KEY_PREVIOUS: newRsaPem() },
    })
    const { token } = await signUp(app)
    const { keys } = await keysOf(app)
    t.strictSame(keys.map(({ alg }) => alg).sort(), ['ES256', 'EdDSA', 'RS256', 'RS256'])
    t.notOk(
      keys.some(key => 'd' in key),
      'nothing private',
    )
    for (const idTokenAlgorithm of ['RS256', 'ES256', 'EdDSA']) {
      const { id_token: idToken = '' } = await issued(app, token, { scope: 'openid' }, { idTokenAlgorithm })
      const { protectedHeader } = await verified(app, idToken)
      t.equal(protectedHeader.alg, idTokenAlgorithm)
    }
    const other = await buildOAuth(engine, t)
    const metadata = (await other.inject('/.well-known/openid-configuration')).json()
    t.strictSame(metadata.id_token_signing_alg_values_supported, ['RS256', 'EdDSA'])
    const refused = await postClient(other, { name: 'A', ...WEB, idTokenAlgorithm: 'ES256' })
    t.equal(refused.statusCode, 400)
    t.ok('idTokenAlgorithm' in refused.json().errors)
    const { id } = await registerClient(other, WEB)
    const url = `/admin/clients/${id}`
    const put = { method: 'PUT', url, headers: asAdmin, payload: { idTokenAlgorithm: 'ES256' } } as const
    t.equal((await other.inject(put)).statusCode, 400)
  })
})

t.test('the RSA key is generated beside the SQLite file, and replaced without a sign-out', async t => {
  const folder = temporaryFolder(t)
  const file = join(folder, 'test.db.oauth-rsa.pem')
  const start = async (env: Record<string, string> = {}) => {
    const { OAUTH_RSA_KEY: _, ...settings } = OAUTH_ENV
    return build(t, { env: { ...settings, DATABASE_URL: `sqlite:${join(folder, 'test.db')}`, ...env } })
  }
  await createMigratedFile(join(folder, 'test.db'))
  await start({ OAUTH: 'off' })
  t.notOk(existsSync(file))
  const first = await start()
  t.equal(statSync(file).mode & 0o777, 0o600)
  const { token } = await signUp(first)
  const client = await registerClient(first, WEB)
  const tokens = (
    await redeem(first, client, await newCode(first, client, token, { scope: 'openid' }))
  ).json()
  const second = await start()
  await verified(second, tokens.id_token)
  const replaced = await start({
    OAUTH_RSA_KEY: newRsaPem(),
    OAUTH_RSA_KEY_PREVIOUS: readFileSync(file, 'utf8'),
  })
  await verified(replaced, tokens.id_token)
  t.equal(await accountStatus(replaced, token), 200)
  t.equal((await userInfo(replaced, tokens.access_token)).statusCode, 200)
  const off = await start({ OAUTH: 'off' })
  t.strictSame(
    (await keysOf(off)).keys.map(({ alg }) => alg),
    ['EdDSA'],
  )
})

t.test('the settings of the key', t => {
  const { OAUTH_RSA_KEY, ...settings } = OAUTH_ENV
  const loaded = (env: Record<string, string>) =>
    loadConfig({ ...settings, NODE_ENV: 'test', ADMIN_KEY, ...env }, allFeatures([]))
  const DATABASE_URL = 'postgres://localhost/gatehouse'
  t.throws(() => loaded({ DATABASE_URL }), /OAUTH_RSA_KEY is needed with PostgreSQL/)
  t.doesNotThrow(() => loaded({ DATABASE_URL, OAUTH_RSA_KEY }))
  for (const wrong of [newPem('EdDSA'), newRsaPem(1_024)])
    t.throws(() => loaded({ OAUTH_RSA_KEY: wrong }), /OAUTH_RSA_KEY must be an RSA key of at least 2048 bits/)
  t.throws(() => loaded({ OAUTH_RSA_KEY: 'x' }), /OAUTH_RSA_KEY must be a private key in PKCS#8 PEM/)
  t.end()
})
