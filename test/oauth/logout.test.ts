/** Logout that a client begins, and clients that learn of the end of sessions (docs/oauth.md). */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import * as jose from 'jose'
import t from 'tap'
import {
  accountStatus,
  asAdmin,
  cookie,
  manualClock,
  PASSWORD,
  signIn,
  signUp,
  updateUser,
} from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { buildOAuth, claimsOf, ISSUER, registerClient } from '../support/oauth.ts'
import { CALLBACK, newCode, type Query, redeem, targetOf } from '../support/oauth-flow.ts'
import { until } from '../support/until.ts'
import { type Received, receiver, status } from '../support/webhook-receiver.ts'

const SIGNED_OUT = 'https://app.example.test/signed-out'
const WEB = { redirectUris: [CALLBACK], postLogoutRedirectUris: [SIGNED_OUT], scopes: ['openid'] }
const EVENT = 'http://schemas.openid.net/event/backchannel-logout'

const idToken = async (
  app: FastifyInstance,
  client: Parameters<typeof redeem>[1],
  token: string,
): Promise<string> =>
  (await redeem(app, client, await newCode(app, client, token, { prompt: 'consent' }))).json().id_token

const logout = (app: FastifyInstance, query: Query, token?: string): Promise<LightMyRequestResponse> =>
  app.inject({
    url: `/oauth/logout?${new URLSearchParams(query)}`,
    headers: { accept: 'text/html', ...(token !== undefined && cookie(token)) },
  })

const form = (app: FastifyInstance, url: string, values: Query, headers: Record<string, string> = {}) =>
  app.inject({
    ...{ method: 'POST', url, payload: new URLSearchParams(values).toString() },
    headers: { accept: 'text/html', 'content-type': 'application/x-www-form-urlencoded', ...headers },
  })

await onEnginesOfRun(t, async (t, engine) => {
  t.test('the ID token of the session’s user ends the session, and the browser goes back', async t => {
    const app = await buildOAuth(engine, t)
    const client = await registerClient(app, WEB)
    const { token } = await signUp(app)
    const id_token_hint = await idToken(app, client, token)
    const query = { id_token_hint, post_logout_redirect_uri: SIGNED_OUT, state: 'a & b' }
    const response = await logout(app, query, token)
    t.equal(response.statusCode, 200)
    const target = targetOf(response)
    t.equal(target.origin + target.pathname, SIGNED_OUT)
    t.equal(target.searchParams.get('state'), 'a & b')
    t.match(response.headers['set-cookie'], 'ACCESS_TOKEN=;')
    t.equal(await accountStatus(app, token), 401)
    const again = await logout(app, query)
    t.equal(targetOf(again).searchParams.get('state'), 'a & b', 'without a session it goes back, too')
    const { post_logout_redirect_uri: _, ...withoutTarget } = query
    t.match((await logout(app, withoutTarget)).body, 'signed out')
  })

  t.test('P44: another user’s ID token, or none, asks', async t => {
    const app = await buildOAuth(engine, t)
    const client = await registerClient(app, { ...WEB, name: 'Planner <b>' })
    const [{ token, email }, other] = [await signUp(app), await signUp(app)]
    const id_token_hint = await idToken(app, client, other.token)
    const target = { post_logout_redirect_uri: SIGNED_OUT, state: 's' }
    const cases = {
      another: { id_token_hint, ...target },
      none: { client_id: client.id, ...target },
      bare: {},
    }
    for (const [name, query] of Object.entries(cases)) {
      const asked = await logout(app, query, token)
      t.equal(asked.statusCode, 200, name)
      t.match(asked.body, email, name)
      t.notMatch(asked.body, 'http-equiv', name)
      if (name !== 'bare') t.match(asked.body, 'Planner &lt;b&gt; wants you to sign out', name)
      t.equal(await accountStatus(app, token), 200, name)
    }
    const foreign = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.test', ...cookie(token) }
    const crossSite = await form(app, '/oauth/logout/decision', {}, foreign)
    t.equal(crossSite.statusCode, 403, 'only the page itself decides')
    t.equal(await accountStatus(app, token), 200)
    const decided = await form(app, '/oauth/logout/decision', cases.another, cookie(token))
    t.equal(targetOf(decided).href, `${SIGNED_OUT}?state=s`)
    t.equal(await accountStatus(app, token), 401)
    t.equal(await accountStatus(app, other.token), 200)
  })

  t.test('a form of the client’s site leads to the page, and changes nothing', async t => {
    const app = await buildOAuth(engine, t)
    const client = await registerClient(app, WEB)
    const { token } = await signUp(app)
    const id_token_hint = await idToken(app, client, token)
    const headers = { 'sec-fetch-site': 'cross-site', origin: 'https://app.example.test' }
    const response = await form(app, '/oauth/logout', { id_token_hint, ui_locales: 'de' }, headers)
    t.equal(response.statusCode, 303)
    const { searchParams } = new URL(String(response.headers.location), 'http://service.test/oauth/logout')
    t.strictSame(Object.fromEntries(searchParams), { id_token_hint })
    t.equal(await accountStatus(app, token), 200)
  })

  t.test('the browser is not sent to what is not registered', async t => {
    const app = await buildOAuth(engine, t)
    const [client, other] = [await registerClient(app, WEB), await registerClient(app, WEB)]
    const { token } = await signUp(app)
    const hint = await idToken(app, client, token)
    const [header, claims, signature] = hint.split('.')
    const forged = Buffer.from(JSON.stringify({ ...claimsOf(hint), aud: other.id })).toString('base64url')
    const refused: Readonly<Record<string, Query>> = {
      'another address': { id_token_hint: hint, post_logout_redirect_uri: `${SIGNED_OUT}/` },
      'a redirect URI': { id_token_hint: hint, post_logout_redirect_uri: CALLBACK },
      'no client': { post_logout_redirect_uri: SIGNED_OUT },
      'an unknown client': { client_id: 'unknown', post_logout_redirect_uri: SIGNED_OUT },
      'two clients': { id_token_hint: hint, client_id: other.id, post_logout_redirect_uri: SIGNED_OUT },
      'forged claims': { id_token_hint: `${header}.${forged}.${signature}` },
      'no signature': { id_token_hint: `${header}.${claims}.` },
      'an access token': { id_token_hint: token },
      'no JWT': { id_token_hint: 'x' },
    }
    for (const [name, query] of Object.entries(refused)) {
      const response = await logout(app, query, token)
      t.equal(response.statusCode, 400, name)
      t.notMatch(response.body, 'http-equiv', name)
      t.notOk(response.headers.location, name)
    }
    t.equal(await accountStatus(app, token), 200)
  })

  t.test('an ID token that has expired is a hint', async t => {
    const clock = manualClock()
    const app = await buildOAuth(engine, t, { clock: clock.now })
    const client = await registerClient(app, WEB)
    const { token } = await signUp(app)
    const id_token_hint = await idToken(app, client, token)
    clock.advance(7_200_000)
    await logout(app, { id_token_hint }, token)
    t.equal(await accountStatus(app, token), 401)
  })

  const receiving = async (t: Parameters<typeof buildOAuth>[1]) => {
    const clients = await receiver(t)
    const app = await buildOAuth(engine, t, { env: { OAUTH_ALLOWED_HOSTS: clients.host } })
    const client = await registerClient(app, { ...WEB, backchannelLogoutUri: `http://${clients.host}/out` })
    return { app, client, clients }
  }

  const logoutToken = ({ text }: Received): string => new URLSearchParams(text).get('logout_token') ?? ''

  t.test('a client learns of the end of its sessions by a logout token', async t => {
    const { app, client, clients } = await receiving(t)
    const { id: userId, email } = await signUp(app)
    const { accessToken: token } = (await signIn(app, email, PASSWORD)).json()
    const { accessToken: unseen } = (await signIn(app, email, PASSWORD)).json()
    const hint = await idToken(app, client, token)
    const { sid } = claimsOf(hint)
    t.type(sid, 'string')
    await app.inject({ method: 'POST', url: '/account/sign-out', headers: cookie(unseen) })
    await app.inject({ method: 'POST', url: '/account/sign-out', headers: cookie(token) })
    const [first] = (await clients.arrived(1)) as readonly [Received]
    t.equal(first.url, '/out')
    t.equal(first.headers['content-type'], 'application/x-www-form-urlencoded')
    const keys = jose.createLocalJWKSet((await app.inject('/.well-known/jwks.json')).json())
    const { payload } = await jose.jwtVerify(logoutToken(first), keys, {
      ...{ issuer: ISSUER, audience: client.id, typ: 'logout+jwt' },
    })
    t.match(payload, { sub: userId, sid, jti: String, exp: Number, events: { [EVENT]: {} } })
    t.notOk('nonce' in payload)
    const asHint = await logout(app, { id_token_hint: logoutToken(first) })
    t.equal(asHint.statusCode, 400, 'it is no ID token')
    t.equal(clients.received.length, 1, 'not of a session that it knows nothing of')
  })

  t.test('a password reset, a disabled and a deleted user end sessions of clients', async t => {
    const { app, client, clients } = await receiving(t)
    const users = [await signUp(app), await signUp(app)]
    for (const { token } of users) await idToken(app, client, token)
    const [disabled, deleted] = users.map(({ id }) => id)
    await updateUser(app, disabled ?? '', { disabled: true })
    await app.inject({ method: 'DELETE', url: `/admin/users/${deleted}`, headers: asAdmin })
    const arrived = await clients.arrived(2)
    t.strictSame(arrived.map(each => claimsOf(logoutToken(each)).sub).sort(), [disabled, deleted].sort())
  })

  t.test('what a client has not accepted is sent again', async t => {
    const clients = await receiver(t)
    clients.respondWith(status(503))
    const clock = manualClock()
    const app = await buildOAuth(engine, t, {
      ...{ clock: clock.now, jobPace: { startWithin: 20, maxWait: 20 } },
      env: { OAUTH_ALLOWED_HOSTS: clients.host },
    })
    const client = await registerClient(app, { ...WEB, backchannelLogoutUri: `http://${clients.host}/out` })
    const { token } = await signUp(app)
    await idToken(app, client, token)
    await app.inject({ method: 'POST', url: '/account/sign-out', headers: cookie(token) })
    await clients.arrived(1)
    clients.respondWith(status(200))
    // The wait begins when the failure is stored.
    const passMinute = () => {
      clock.advance(61_000)
      return clients.received.length
    }
    await until(passMinute, length => length >= 2, 20_000)
    const [first, second] = clients.received
    const [one, two] = [first, second].map(each => claimsOf(each === undefined ? '..' : logoutToken(each)))
    t.equal(one?.sid, two?.sid)
    t.not(one?.jti, two?.jti)
  })
})
