/** Tokens that are bound to a key of the client (DPoP, RFC 9449, docs/oauth.md). */
import { randomUUID } from 'node:crypto'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import t from 'tap'
import { accountStatus, bearer, manualClock, signUp } from '../support/build.ts'
import { newProofKey, type ProofKey, withProof } from '../support/dpop.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { buildHost, hostConfig } from '../support/host.ts'
import {
  adminStatus,
  basic,
  buildOAuth,
  claimsOf,
  ISSUER,
  OAUTH_ENV,
  postForm,
  registerClient,
  registerMachine,
  requestToken,
} from '../support/oauth.ts'
import { connectDevice, DEVICE_CODE, newDevice } from '../support/oauth-devices.ts'
import {
  authorize,
  CALLBACK,
  challengeOf,
  decide,
  newCode,
  newTokens,
  newVerifier,
  PUBLIC,
  requestIn,
  targetOf,
} from '../support/oauth-flow.ts'

const TOKEN = 'POST /oauth/token'

interface Tokens {
  readonly access_token: string
  readonly refresh_token: string
}

const account = (app: FastifyInstance, headers: Record<string, string>, url = '/account') =>
  app.inject({ url, headers })

await onEnginesOfRun(t, async (t, engine) => {
  const service = async (t: Parameters<typeof buildOAuth>[1]) => {
    const clock = manualClock()
    const app = await buildOAuth(engine, t, { clock: clock.now })
    const client = await registerClient(app, PUBLIC)
    const user = await signUp(app)
    const key = newProofKey()
    const now = clock.now()
    const redeemed = async (proof: string | undefined, query = {}): Promise<LightMyRequestResponse> => {
      const { code, verifier } = await newCode(app, client, user.token, query)
      return requestToken(
        app,
        {
          ...{ grant_type: 'authorization_code', client_id: client.id, code, code_verifier: verifier },
          redirect_uri: CALLBACK,
        },
        proof === undefined ? {} : { dpop: proof },
      )
    }
    const bound = async (): Promise<Tokens> => {
      const response = await redeemed(key.proof(TOKEN, { now: clock.now() }))
      if (response.statusCode !== 200) throw new Error(response.body)
      return response.json()
    }
    return { app, client, user, clock, key, now, redeemed, bound }
  }

  for (const alg of ['ES256', 'EdDSA'] as const)
    t.test(`${alg}: a bound token opens routes with a proof alone`, async t => {
      const { app, client, clock, redeemed } = await service(t)
      const key = newProofKey(alg)
      const now = clock.now()
      const { access_token: token, ...rest } = (await redeemed(key.proof(TOKEN, { now }))).json()
      t.match(rest, { token_type: 'DPoP', refresh_token: String })
      t.strictSame(claimsOf(token).cnf, { jkt: key.jkt })
      for (const _ of ['looked up', 'from memory'])
        t.equal((await account(app, withProof(key, token, 'GET /account', { now }))).statusCode, 200)
      const query = await account(app, withProof(key, token, 'GET /account', { now }), '/account?x=1')
      t.equal(query.statusCode, 400, 'htu has no query: the route refuses it, and not the proof')
      t.equal(await accountStatus(app, token), 401, 'P43: as bearer token')
      t.equal((await account(app, { authorization: `DPoP ${token}` })).statusCode, 401, 'without a proof')
      const machine = await registerMachine(app, { authMethod: 'client_secret_basic' })
      const resource = await postForm(app, 'introspect', { token }, basic(machine))
      t.strictSame(resource.json(), { active: false }, 'another client')
      const ended = await postForm(app, 'revoke', { token, client_id: client.id })
      t.equal(ended.statusCode, 200)
      t.equal((await account(app, withProof(key, token, 'GET /account', { now }))).statusCode, 401)
    })

  t.test('introspection tells the key of a token', async t => {
    const { app, clock, key } = await service(t)
    const machine = await registerMachine(app)
    const issued = await requestToken(
      app,
      { grant_type: 'client_credentials' },
      { ...basic(machine), dpop: key.proof(TOKEN, { now: clock.now() }) },
    )
    const { access_token: token, token_type: type } = issued.json()
    t.equal(type, 'DPoP')
    const introspected = await postForm(app, 'introspect', { token }, basic(machine))
    t.match(introspected.json(), { active: true, token_type: 'DPoP', cnf: { jkt: key.jkt } })
    t.equal(await adminStatus(app, token), 401, 'x-admin-key has no place for a proof')
  })

  t.test('P43: what a proof at a route must be', async t => {
    const { app, key, now, bound } = await service(t)
    const { access_token: token } = await bound()
    const other = newProofKey()
    const proof = (options: Parameters<ProofKey['proof']>[1] = {}, target = 'GET /account') =>
      key.proof(target, { token, now, ...options })
    const refused: Readonly<Record<string, string>> = {
      'another key': other.proof('GET /account', { token, now }),
      'another method': proof({}, 'POST /account'),
      'another path': proof({}, 'GET /account/sessions'),
      'another host': proof({ claims: { htu: 'https://evil.test/account' } }),
      'no ath': key.proof('GET /account', { now }),
      'ath of another token': proof({ token: `${token}x` }),
      'no jti': proof({ claims: { jti: undefined } }),
      'no htu': proof({ claims: { htu: undefined } }),
      'another type': proof({ header: { typ: 'JWT' } }),
      'no signature': proof({ header: { alg: 'none' } }),
      'a symmetric key': proof({ header: { alg: 'HS256' } }),
      'a private key': proof({ header: { jwk: key.privateJwk } }),
      'no key': proof({ header: { jwk: undefined } }),
      crit: proof({ header: { crit: ['b64'] } }),
      'a damaged signature': `${proof().slice(0, -4)}AAAA`,
      'two proofs': `${proof()}, ${proof()}`,
      'no JWT': 'x',
      'a token': token,
    }
    for (const [name, dpop] of Object.entries(refused)) {
      const response = await account(app, { authorization: `DPoP ${token}`, dpop })
      t.equal(response.statusCode, 401, name)
      t.match(response.headers['www-authenticate'], 'DPoP error="invalid_dpop_proof"', name)
    }
    const valid = { authorization: `DPoP ${token}`, dpop: proof() }
    t.equal((await account(app, valid)).statusCode, 200)
    t.equal((await account(app, valid)).statusCode, 401, 'replayed')
    const scheme = { authorization: `dpop ${token}`, dpop: proof() }
    t.equal((await account(app, scheme)).statusCode, 200, 'the scheme in any letter case')
    const unbound = await newTokens(app, await registerClient(app, PUBLIC), (await signUp(app)).token)
    const asBound = await account(app, withProof(key, unbound.accessToken, 'GET /account', { now }))
    t.equal(asBound.statusCode, 401, 'a bearer token with a proof')
    t.match(asBound.headers['www-authenticate'], 'DPoP error="invalid_token"')
    const { token: session } = await signUp(app)
    t.equal((await account(app, withProof(key, session, 'GET /account', { now }))).statusCode, 401)
  })

  t.test('a clock that differs needs a nonce, which is valid for half a minute', async t => {
    const { app, clock, key, bound } = await service(t)
    const { access_token: token } = await bound()
    const withClaims = (claims: object) =>
      account(app, withProof(key, token, 'GET /account', { claims, now: clock.now() }))
    const iat = Math.floor(clock.now() / 1_000) - 3_600
    const asked = await withClaims({ iat })
    t.equal(asked.statusCode, 401)
    t.match(asked.headers['www-authenticate'], 'DPoP error="use_dpop_nonce"')
    const nonce = String(asked.headers['dpop-nonce'])
    const jti = randomUUID()
    t.equal((await withClaims({ iat, nonce, jti })).statusCode, 200)
    t.equal((await withClaims({ iat, nonce, jti })).statusCode, 401, 'replayed')
    t.equal((await withClaims({ iat, nonce })).statusCode, 200)
    clock.advance(29_000)
    t.equal((await withClaims({ iat, nonce, jti })).statusCode, 401, 'still remembered')
    clock.advance(1_000)
    for (const each of [nonce, `${clock.now() + 9_000}.${nonce.split('.')[1]}`, 'x', 7])
      t.match((await withClaims({ nonce: each })).headers['dpop-nonce'], /^\d+\./)
    for (const seconds of [-14, 14]) {
      const near = Math.floor(clock.now() / 1_000) + seconds
      t.equal((await withClaims({ iat: near })).statusCode, 200)
    }
    for (const seconds of [-16, 16, Number.NaN]) {
      const far = Math.floor(clock.now() / 1_000) + seconds
      t.match((await withClaims({ iat: far })).headers['www-authenticate'], 'use_dpop_nonce')
    }
  })

  t.test('P43: at the token endpoint a proof is used once, on any instance', async t => {
    const env = { DATABASE_URL: await engine.newDatabase(t) }
    const app = await buildOAuth(engine, t, { env })
    const second = engine.name === 'postgres' ? await buildOAuth(engine, t, { env }) : app
    const machine = await registerMachine(app)
    const key = newProofKey()
    const request = (by: FastifyInstance, dpop: string) =>
      requestToken(by, { grant_type: 'client_credentials' }, { ...basic(machine), dpop })
    const dpop = key.proof(TOKEN)
    const responses = await Promise.all([app, second, app, second].map(each => request(each, dpop)))
    t.strictSame(responses.map(({ statusCode }) => statusCode).sort(), [200, 400, 400, 400])
    const replayed = responses.find(({ statusCode }) => statusCode === 400)
    t.match(replayed?.json(), { error: 'invalid_dpop_proof' })
    t.match((await request(app, key.proof('POST /oauth/par'))).json(), { error: 'invalid_dpop_proof' })
    t.match((await request(app, 'x')).json(), { error: 'invalid_dpop_proof' })
    const late = await request(app, key.proof(TOKEN, { claims: { iat: 1 } }))
    t.match(late.json(), { error: 'use_dpop_nonce' })
    const nonce = String(late.headers['dpop-nonce'])
    t.equal((await request(second, key.proof(TOKEN, { claims: { iat: 1, nonce } }))).statusCode, 200)
  })

  t.test('refresh tokens of a client without a secret are bound, and not replaced', async t => {
    const { app, client, clock, key, bound, redeemed } = await service(t)
    const { refresh_token: token } = await bound()
    const refresh = (dpop?: string, refresh_token = token) =>
      requestToken(
        app,
        { grant_type: 'refresh_token', client_id: client.id, refresh_token },
        dpop === undefined ? {} : { dpop },
      )
    clock.advance(3_600_000)
    const proof = () => key.proof(TOKEN, { now: clock.now() })
    const refreshed = await refresh(proof())
    t.match(refreshed.json(), { token_type: 'DPoP', refresh_token: token })
    const { access_token: next } = refreshed.json()
    const headers = withProof(key, next, 'GET /account', { now: clock.now() })
    t.equal((await account(app, headers)).statusCode, 200)
    t.match((await refresh()).json(), { error: 'invalid_grant' }, 'without a proof')
    const stolen = newProofKey().proof(TOKEN, { now: clock.now() })
    t.match((await refresh(stolen)).json(), { error: 'invalid_grant' }, 'with another key')
    t.equal((await refresh(proof())).statusCode, 200, 'nothing of this ends the grant')
    const unbound = (await redeemed(undefined)).json()
    t.equal(unbound.token_type, 'Bearer')
    t.match((await refresh(proof(), unbound.refresh_token)).json(), { token_type: 'DPoP' })
  })

  t.test('a code is bound to dpop_jkt, or to the proof of a pushed request', async t => {
    const { app, client, user, clock, key, redeemed } = await service(t)
    const proof = (target = TOKEN) => key.proof(target, { now: clock.now() })
    const query = { dpop_jkt: key.jkt, prompt: 'consent' }
    t.match((await redeemed(undefined, query)).json(), { error: 'invalid_grant' })
    const other = newProofKey().proof(TOKEN, { now: clock.now() })
    t.match((await redeemed(other, query)).json(), { error: 'invalid_grant' })
    t.equal((await redeemed(proof(), query)).statusCode, 200)
    const verifier = newVerifier()
    const form = {
      ...{ client_id: client.id, response_type: 'code', redirect_uri: CALLBACK },
      ...{ code_challenge: challengeOf(verifier), code_challenge_method: 'S256' },
    }
    const contrary = { ...form, dpop_jkt: newProofKey().jkt }
    const refused = await postForm(app, 'par', contrary, { dpop: proof('POST /oauth/par') })
    t.match(refused.json(), { error: 'invalid_dpop_proof' })
    const pushed = await postForm(app, 'par', form, { dpop: proof('POST /oauth/par') })
    const { request_uri } = pushed.json()
    const begun = await authorize(app, { client_id: client.id, request_uri }, user.token)
    const target = targetOf(await decide(app, requestIn(begun), 'allow', user.token))
    const code = target.searchParams.get('code') ?? ''
    const redeem = (headers: Record<string, string>) =>
      requestToken(
        app,
        {
          ...{ grant_type: 'authorization_code', client_id: client.id, code, code_verifier: verifier },
          redirect_uri: CALLBACK,
        },
        headers,
      )
    t.match((await redeem({})).json(), { error: 'invalid_grant' })
    t.match((await redeem({ dpop: proof() })).json(), { token_type: 'DPoP' })
  })

  t.test('a device gets bound tokens, and UserInfo accepts them', async t => {
    const { app, user, clock, key } = await service(t)
    const client = await registerClient(app, {
      ...{ authMethod: 'none', grantTypes: [DEVICE_CODE], scopes: ['openid'] },
    })
    const device = await newDevice(app, { client })
    await connectDevice(app, device, user.token)
    const response = await requestToken(
      app,
      { grant_type: DEVICE_CODE, client_id: client.id, device_code: device.deviceCode },
      { dpop: key.proof(TOKEN, { now: clock.now() }) },
    )
    t.match(response.json(), { token_type: 'DPoP' })
    const { access_token: token } = response.json()
    const url = '/oauth/userinfo'
    const headers = withProof(key, token, `GET ${url}`, { now: clock.now() })
    t.match((await account(app, headers, url)).json(), { sub: user.id })
    const replayed = await account(app, headers, url)
    t.equal(replayed.statusCode, 401)
    t.match(replayed.json(), { error: 'invalid_token' })
    t.match(replayed.headers['www-authenticate'], 'invalid_dpop_proof')
    t.equal((await account(app, bearer(token), url)).statusCode, 401)
  })

  t.test('a request whose user changes while its body arrives has one proof', async t => {
    const { app, client, clock, user, key } = await service(t)
    const writing = await registerClient(app, { ...PUBLIC, scopes: ['account:write', 'account:read'] })
    t.not(writing.id, client.id)
    const { code, verifier } = await newCode(app, writing, user.token)
    const issued = await requestToken(
      app,
      {
        ...{ grant_type: 'authorization_code', client_id: writing.id, code, code_verifier: verifier },
        redirect_uri: CALLBACK,
      },
      { dpop: key.proof(TOKEN, { now: clock.now() }) },
    )
    const { access_token: token } = issued.json()
    const change = (firstName: string) =>
      app.inject({
        ...{ method: 'PUT', url: '/account', payload: { firstName } },
        headers: withProof(key, token, 'PUT /account', { now: clock.now() }),
      })
    const responses = await Promise.all(['Ann', 'Bea', 'Cleo'].map(change))
    t.strictSame(
      responses.map(({ statusCode }) => statusCode),
      [200, 200, 200],
    )
  })
})

t.test('the guards of a host accept bound tokens, with a proof for its own path', async t => {
  const config = { ...hostConfig(t), ...OAUTH_ENV, PUBLIC_URL: `${ISSUER}/auth` }
  const host = await buildHost(t, { config })
  const { requireScope } = host.gatehouse
  host.get('/own', { onRequest: requireScope('account:read') }, async ({ user }) => ({ id: user.id }))
  const app = {
    inject: ({ url, ...options }: { readonly url: string }) =>
      host.inject({ ...options, url: `/auth${url}` }),
  } as unknown as FastifyInstance
  const client = await registerClient(app, PUBLIC)
  const user = await signUp(app)
  const key = newProofKey()
  const { code, verifier } = await newCode(app, client, user.token)
  const issued = await requestToken(
    app,
    {
      ...{ grant_type: 'authorization_code', client_id: client.id, code, code_verifier: verifier },
      redirect_uri: CALLBACK,
    },
    { dpop: key.proof('POST /auth/oauth/token') },
  )
  const { access_token: token } = issued.json()
  const valid = withProof(key, token, 'GET /own')
  t.strictSame((await account(host, valid, '/own')).json(), { id: user.id })
  const replayed = await account(host, valid, '/own')
  t.equal(replayed.statusCode, 401)
  t.match(replayed.headers['www-authenticate'], 'invalid_dpop_proof')
  t.equal((await account(host, bearer(token), '/own')).statusCode, 401)
  t.equal((await account(app, withProof(key, token, 'GET /auth/account'))).statusCode, 200)
})
