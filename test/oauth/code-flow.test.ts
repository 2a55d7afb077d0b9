/** The code flow: authorization requests, consent, codes, and what the tokens open (docs/oauth.md). */
import t from 'tap'
import { allEvents } from '../support/admin-routes.ts'
import { addTotp, signInWith } from '../support/authenticator-apps.ts'
import {
  accountStatus,
  asAdmin,
  bearer,
  cookie,
  manualClock,
  PASSWORD,
  signIn,
  signUp,
  updateUser,
} from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { FormClient } from '../support/form-client.ts'
import {
  basic,
  buildOAuth,
  claimsOf,
  ISSUER,
  postForm,
  registerClient,
  requestToken,
} from '../support/oauth.ts'
import {
  authorize,
  CALLBACK,
  challengeOf,
  decide,
  newCode,
  newTokens,
  newVerifier,
  openConsent,
  PUBLIC,
  type Query,
  redeem,
  refresh,
  requestIn,
  targetOf,
  tokensIn,
} from '../support/oauth-flow.ts'

const MINUTE = 60_000
const WEB = {
  redirectUris: [CALLBACK],
  scopes: ['openid', 'account:read', 'account:write', 'offline_access'],
}

await onEnginesOfRun(t, async (t, engine) => {
  t.test('P14: a user is asked, and the token opens what its scopes allow', async t => {
    const app = await buildOAuth(engine, t)
    const client = await registerClient(app, { name: 'Planner <b>', ...WEB })
    const user = await signUp(app)
    const verifier = newVerifier()
    const query = {
      ...{ client_id: client.id, response_type: 'code', redirect_uri: CALLBACK, state: 'a & b' },
      ...{
        scope: 'account:read unknown',
        code_challenge: challengeOf(verifier),
        code_challenge_method: 'S256',
      },
    }
    const begun = await authorize(app, query, user.token)
    t.equal(begun.statusCode, 303)
    t.match(begun.headers.location, /^\.\.\/oauth\/consent\?request=/)
    const request = requestIn(begun)
    for (const _ of ['P18', 'again']) {
      const page = await openConsent(app, request, user.token)
      t.equal(page.statusCode, 200)
      t.match(page.body, 'Planner &lt;b&gt; wants to use')
      t.match(page.body, 'app.example.test')
      t.match(page.body, 'Read your account')
      t.notMatch(page.body, 'unknown')
      t.match(page.headers['content-security-policy'], "form-action 'self'")
    }
    const allowed = await decide(app, request, 'allow', user.token)
    t.equal(allowed.statusCode, 200)
    const target = targetOf(allowed)
    t.equal(target.origin + target.pathname, CALLBACK)
    t.equal(target.searchParams.get('state'), 'a & b')
    t.equal(target.searchParams.get('iss'), ISSUER, 'P13')
    const code = target.searchParams.get('code') ?? ''
    const response = await redeem(app, client, { code, verifier })
    t.match(response.json(), { token_type: 'Bearer', expires_in: 3_600, scope: 'account:read' })
    const { accessToken } = tokensIn(response)
    t.match(claimsOf(accessToken), {
      sub: user.id,
      client_id: client.id,
      aud: 'gatehouse',
      auth_time: Number,
    })
    t.equal(await accountStatus(app, accessToken), 200)
    t.equal(await accountStatus(app, accessToken), 200, 'from memory')
    const put = { method: 'PUT', url: '/account', payload: { firstName: 'Ann' } } as const
    t.equal((await app.inject({ ...put, headers: bearer(accessToken) })).statusCode, 403)
    const sessions = await app.inject({ url: '/account/sessions', headers: bearer(accessToken) })
    t.equal(sessions.statusCode, 403, 'a route without a scope needs a session')
    const admin = await app.inject({ url: '/admin/users', headers: { 'x-admin-key': accessToken } })
    t.equal(admin.statusCode, 401)
    const types = (await allEvents(app, { userId: user.id })).map(({ type, actor }) => [type, actor.type])
    t.match(types[0], ['grant.created', 'client'])
  })

  t.test('the page of consent leads to the page to sign in, and back', async t => {
    const app = await buildOAuth(engine, t)
    const client = await registerClient(app, WEB)
    const { email } = await signUp(app)
    const verifier = newVerifier()
    const begun = await authorize(app, {
      ...{ client_id: client.id, response_type: 'code' },
      ...{ code_challenge: challengeOf(verifier), code_challenge_method: 'S256' },
    })
    const request = requestIn(begun)
    const browser = await new FormClient(app).open(`/oauth/consent?request=${request}`)
    t.equal(browser.path, '/sign-in')
    await browser.submit('', { email, password: PASSWORD })
    t.equal(browser.path, '/oauth/consent')
    t.match(browser.page, email)
    const other = await signUp(app)
    const notYou = /href="([^"]+)">Not you\?/.exec(browser.page)?.[1] ?? ''
    await browser.open(notYou.replaceAll('&amp;', '&'))
    await browser.submit('', { email: other.email, password: PASSWORD })
    t.equal(browser.path, '/oauth/consent')
    t.match(browser.page, other.email)
    const { accessToken } = (await signIn(app, email, PASSWORD)).json()
    const denied = targetOf(await decide(app, request, 'deny', accessToken))
    t.equal(denied.searchParams.get('error'), 'access_denied')
    t.equal(denied.searchParams.get('iss'), ISSUER)
    t.equal((await decide(app, request, 'allow', accessToken)).statusCode, 404)
  })

  t.test('P8, P9, P11, P12, P34: the browser is not sent to what is not registered', async t => {
    const app = await buildOAuth(engine, t)
    const client = await registerClient(app, WEB)
    const native = await registerClient(app, {
      authMethod: 'none',
      redirectUris: ['http://127.0.0.1/cb', 'com.example.app:/cb'],
      scopes: ['account:read'],
    })
    const query = {
      ...{ response_type: 'code', code_challenge: challengeOf(newVerifier()) },
      code_challenge_method: 'S256',
    }
    const refused = [
      ...['https://app.example.test/callback/', `${CALLBACK}/..;/x`, `${CALLBACK}?x=1`, 'https://evil.test/'],
      ...[
        'https://app.example.test@evil.test/callback',
        'https://a@b@app.example.test/callback',
        'javascript:1',
      ],
      ...['https://app.example.test:444/callback', 'https://APP.example.test/callback', ''],
    ]
    for (const uri of refused) {
      const response = await authorize(app, { ...query, client_id: client.id, redirect_uri: uri })
      t.equal(response.statusCode, 400, uri)
      t.equal(response.headers.location, undefined, uri)
      t.match(response.headers['content-type'], 'text/html')
    }
    for (const id of ['unknown', '', '00000000-0000-7000-8000-000000000000']) {
      const response = await authorize(app, { ...query, client_id: id, redirect_uri: CALLBACK })
      t.equal(response.statusCode, 400)
      t.equal(response.headers.location, undefined)
    }
    const ofNative = async (uri: string) =>
      (await authorize(app, { ...query, client_id: native.id, redirect_uri: uri })).statusCode
    for (const uri of ['http://127.0.0.1/cb', 'http://127.0.0.1:49152/cb', 'com.example.app:/cb'])
      t.equal(await ofNative(uri), 303, uri)
    for (const uri of ['http://127.0.0.1:1/other', 'http://localhost:1/cb', 'http://127.0.0.1.evil.test/cb'])
      t.equal(await ofNative(uri), 400, uri)
    t.equal(await ofNative('http://localhost.evil.test/cb'), 400)
    t.equal(await ofNative('http://127.0.0.1:1@evil.test/cb'), 400)
  })

  t.test('P5: other mistakes are told to the client', async t => {
    const app = await buildOAuth(engine, t)
    const client = await registerClient(app, WEB)
    const challenge = challengeOf(newVerifier())
    const valid = {
      ...{ client_id: client.id, redirect_uri: CALLBACK, response_type: 'code', state: 's' },
      ...{ code_challenge: challenge, code_challenge_method: 'S256' },
    }
    const wrong: [string, object][] = [
      ['invalid_request', { code_challenge: undefined, code_challenge_method: undefined }],
      ['invalid_request', { code_challenge_method: undefined }],
      ['invalid_request', { code_challenge_method: 'plain' }],
      ['invalid_request', { code_challenge: 'short' }],
      ['invalid_request', { response_type: undefined }],
      ['unsupported_response_type', { response_type: 'token' }],
      ['unsupported_response_type', { response_type: 'code id_token' }],
      ['invalid_scope', { scope: 'users:read' }],
      ['invalid_target', { resource: 'https://unknown.example.test' }],
      ['invalid_request', { prompt: 'none login' }],
      ['invalid_request', { max_age: '-1' }],
      ['request_not_supported', { request: 'x' }],
      ['request_uri_not_supported', { request_uri: 'https://client.example.test/r' }],
    ]
    for (const [error, change] of wrong) {
      const query = Object.entries({ ...valid, ...change }).filter(([, value]) => value !== undefined)
      const response = await authorize(app, new URLSearchParams(query as [string, string][]))
      t.equal(response.statusCode, 303, error)
      const { searchParams } = targetOf(response)
      t.strictSame(
        [searchParams.get('error'), searchParams.get('state'), searchParams.get('iss')],
        [error, 's', ISSUER],
      )
    }
    const silent = await authorize(app, { ...valid, prompt: 'none' })
    const { searchParams } = targetOf(await openConsent(app, requestIn(silent)))
    t.strictSame(
      [searchParams.get('error'), searchParams.get('state'), searchParams.get('iss')],
      ['login_required', 's', ISSUER],
    )
    const twice = await app.inject({
      url: `/oauth/authorize?${new URLSearchParams(valid)}&client_id=x`,
      headers: { accept: 'text/html' },
    })
    t.equal(twice.statusCode, 400)
    t.equal((await authorize(app, { ...valid, utm_source: 'is ignored' })).statusCode, 303)
  })

  t.test('P1, P3, P4, P6: a code is for one client, one redirect URI, one verifier, and one use', async t => {
    const app = await buildOAuth(engine, t)
    const [client, other] = [await registerClient(app, WEB), await registerClient(app, WEB)]
    const { token } = await signUp(app)
    const code = await newCode(app, client, token)
    const invalid = async (response: Promise<Awaited<ReturnType<typeof redeem>>>, title: string) => {
      const { statusCode, body } = await response
      t.equal(statusCode, 400, title)
      t.match(JSON.parse(body), { error: 'invalid_grant' }, title)
    }
    await invalid(redeem(app, other, code), 'P1')
    await invalid(redeem(app, client, code, { redirect_uri: `${CALLBACK}2` }), 'P6')
    await invalid(redeem(app, client, { ...code, verifier: newVerifier() }), 'another verifier')
    await invalid(redeem(app, client, { ...code, verifier: 'x' }), 'a short verifier')
    await invalid(redeem(app, client, { ...code, code: 'x' }), 'another code')
    const { accessToken, refreshToken } = tokensIn(await redeem(app, client, code))
    t.equal(await accountStatus(app, accessToken), 200)
    await invalid(refresh(app, other, refreshToken), 'P1')
    await invalid(redeem(app, client, code), 'P3')
    t.equal(await accountStatus(app, accessToken), 401, 'P3')
    await invalid(refresh(app, client, refreshToken), 'P3')
    const exempt = await registerClient(app, { ...WEB, requirePkce: false })
    const begun = await authorize(app, { client_id: exempt.id, response_type: 'code' }, token)
    const allowed = await decide(app, requestIn(begun), 'allow', token)
    const plain = targetOf(allowed).searchParams.get('code') ?? ''
    const parameters = { grant_type: 'authorization_code', code: plain, client_id: exempt.id }
    const headers = { authorization: `Basic ${btoa(`${exempt.id}:${exempt.secret}`)}` }
    const verified = await requestToken(app, { ...parameters, code_verifier: newVerifier() }, headers)
    t.match(verified.json(), { error: 'invalid_grant' }, 'P4: a verifier without a challenge')
    t.equal((await requestToken(app, parameters, headers)).statusCode, 200)
  })

  t.test('P2: of many redemptions at once, one succeeds', async t => {
    const env = { DATABASE_URL: await engine.newDatabase(t) }
    const app = await buildOAuth(engine, t, { env })
    const instances = engine.name === 'postgres' ? [app, await buildOAuth(engine, t, { env })] : [app]
    const client = await registerClient(app, WEB)
    const { token } = await signUp(app)
    const code = await newCode(app, client, token)
    const responses = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        redeem(instances[index % instances.length] ?? app, client, code),
      ),
    )
    t.equal(responses.filter(({ statusCode }) => statusCode === 200).length, 1)
    t.equal(responses.filter(({ statusCode }) => statusCode === 400).length, 49)
  })

  t.test('P17: of two decisions at once, one counts', async t => {
    const app = await buildOAuth(engine, t)
    const client = await registerClient(app, WEB)
    const { token } = await signUp(app)
    const begun = await authorize(
      app,
      {
        ...{ client_id: client.id, response_type: 'code', code_challenge: challengeOf(newVerifier()) },
        code_challenge_method: 'S256',
      },
      token,
    )
    const request = requestIn(begun)
    const decided = await Promise.all([1, 2, 3].map(() => decide(app, request, 'allow', token)))
    t.strictSame(decided.map(({ statusCode }) => statusCode).sort(), [200, 404, 404])
  })

  t.test('a code is valid for a minute, a request for ten', async t => {
    const clock = manualClock()
    const app = await buildOAuth(engine, t, { clock: clock.now })
    const client = await registerClient(app, WEB)
    const { token } = await signUp(app)
    const code = await newCode(app, client, token, { prompt: 'consent' })
    clock.advance(MINUTE)
    t.equal((await redeem(app, client, code)).statusCode, 400)
    const query = {
      ...{ client_id: client.id, response_type: 'code', code_challenge: challengeOf(newVerifier()) },
      code_challenge_method: 'S256',
    }
    const request = requestIn(await authorize(app, query, token))
    clock.advance(10 * MINUTE)
    t.equal((await openConsent(app, request, token)).statusCode, 404)
  })

  t.test('P25, P26: what ends the session or the user ends the code and the grant', async t => {
    const app = await buildOAuth(engine, t)
    const client = await registerClient(app, WEB)
    const endings: Record<string, (user: Awaited<ReturnType<typeof signUp>>) => Promise<unknown>> = {
      'sign-out': ({ token }) =>
        app.inject({ method: 'POST', url: '/account/sign-out', headers: bearer(token) }),
      disabling: ({ id }) => updateUser(app, id, { disabled: true }),
      deletion: ({ id }) => app.inject({ method: 'DELETE', url: `/admin/users/${id}`, headers: asAdmin }),
      'end of all sessions': ({ id }) =>
        app.inject({ method: 'DELETE', url: `/admin/users/${id}/sessions`, headers: asAdmin }),
    }
    for (const [name, end] of Object.entries(endings)) {
      const user = await signUp(app)
      const { accessToken, refreshToken } = await newTokens(app, client, user.token, {
        scope: 'account:read',
      })
      const code = await newCode(app, client, user.token, { scope: 'account:write' })
      t.equal(await accountStatus(app, accessToken), 200)
      await end(user)
      t.equal(await accountStatus(app, accessToken), 401, name)
      t.equal((await refresh(app, client, refreshToken)).statusCode, 400, name)
      t.equal((await redeem(app, client, code)).statusCode, 400, name)
    }
  })

  t.test('offline_access outlives the sign-out, but not the end of all sessions', async t => {
    const app = await buildOAuth(engine, t)
    const client = await registerClient(app, WEB)
    const user = await signUp(app)
    const scope = 'account:read offline_access'
    const { accessToken, refreshToken } = await newTokens(app, client, user.token, { scope })
    await app.inject({ method: 'POST', url: '/account/sign-out', headers: bearer(user.token) })
    t.equal(await accountStatus(app, accessToken), 200)
    const next = tokensIn(await refresh(app, client, refreshToken))
    await app.inject({ method: 'DELETE', url: `/admin/users/${user.id}/sessions`, headers: asAdmin })
    for (const token of [accessToken, next.accessToken]) t.equal(await accountStatus(app, token), 401)
    t.equal((await refresh(app, client, next.refreshToken)).statusCode, 400)
    const types = (await allEvents(app, { userId: user.id })).map(({ type }) => type)
    t.ok(types.includes('grant.revoked'))
  })

  t.test('P15: a consent is remembered for its scopes, and not for a program on the device', async t => {
    const app = await buildOAuth(engine, t)
    const client = await registerClient(app, WEB)
    const trusted = await registerClient(app, { ...WEB, firstParty: true })
    const { token } = await signUp(app)
    await newTokens(app, client, token, { scope: 'account:read' })
    const status = async (id: string, scope: string, more = {}) => {
      const query = {
        ...{ client_id: id, response_type: 'code', scope, code_challenge: challengeOf(newVerifier()) },
        ...{ code_challenge_method: 'S256', ...more },
      }
      return (await openConsent(app, requestIn(await authorize(app, query, token)), token)).statusCode
    }
    t.equal(await status(client.id, 'account:read'), 303)
    t.equal(await status(client.id, 'account:read account:write'), 200)
    t.equal(await status(client.id, 'account:read', { prompt: 'consent' }), 200)
    t.equal(await status(trusted.id, 'account:read account:write'), 303)
    const native = await registerClient(app, { ...PUBLIC, redirectUris: ['http://127.0.0.1/cb'] })
    await newTokens(app, native, token, { redirect_uri: 'http://127.0.0.1/cb' }).catch(() => undefined)
    t.equal(await status(native.id, 'account:read', { redirect_uri: 'http://127.0.0.1/cb' }), 200)
    const silent = await authorize(
      app,
      {
        ...{ client_id: client.id, response_type: 'code', scope: 'account:read', prompt: 'none' },
        ...{ code_challenge: challengeOf(newVerifier()), code_challenge_method: 'S256' },
      },
      token,
    )
    t.ok(targetOf(await openConsent(app, requestIn(silent), token)).searchParams.has('code'))
  })

  t.test('max_age and prompt=login ask for a proof of identity', async t => {
    const clock = manualClock()
    const app = await buildOAuth(engine, t, { clock: clock.now })
    const client = await registerClient(app, WEB)
    const { token, email } = await signUp(app)
    clock.advance(MINUTE)
    const opened = async (more: Record<string, string>) => {
      const query = {
        ...{ client_id: client.id, response_type: 'code', code_challenge: challengeOf(newVerifier()) },
        ...{ code_challenge_method: 'S256', ...more },
      }
      const request = requestIn(await authorize(app, query, token))
      return { request, response: await openConsent(app, request, token) }
    }
    t.equal((await opened({ max_age: '60' })).response.statusCode, 200)
    const wrong: Record<string, string>[] = [{ max_age: '59' }, { prompt: 'login' }]
    for (const more of wrong) {
      const { request, response } = await opened(more)
      t.match(response.headers.location, 'security/proof?return_to=')
      t.equal((await decide(app, request, 'allow', token)).statusCode, 401, 'nor without the page')
    }
    const browser = await new FormClient(app).open('/sign-in')
    await browser.submit('sign-in', { email, password: PASSWORD })
    clock.advance(MINUTE)
    const { request } = await opened({ prompt: 'login' })
    await browser.open(`/oauth/consent?request=${request}`)
    t.equal(browser.heading, 'Confirm that it is you')
    await browser.submit('', { password: 'wrong wrong wrong' })
    t.equal(browser.status, 400)
    await browser.submit('', { password: PASSWORD })
    t.equal(browser.heading, 'A client wants to use your id.example.test account')
  })

  t.test('connected applications are listed, and end at once', async t => {
    const app = await buildOAuth(engine, t)
    const client = await registerClient(app, { ...WEB, name: 'Planner' })
    const { token } = await signUp(app)
    const { accessToken } = await newTokens(app, client, token, { scope: 'account:read' })
    const list = async () =>
      (await app.inject({ url: '/account/grants', headers: bearer(token) })).json().results
    const [grant] = await list()
    t.match(grant, {
      client: { id: client.id, name: 'Planner' },
      scopes: ['account:read'],
      endsWithSession: true,
    })
    const page = await app.inject({ url: '/security', headers: { accept: 'text/html', ...cookie(token) } })
    t.match(page.body, 'Planner')
    const ended = await app.inject({
      method: 'POST',
      url: '/security/grants/end',
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...cookie(token) },
      payload: `id=${grant.id}`,
    })
    t.equal(ended.statusCode, 303)
    t.equal(await accountStatus(app, accessToken), 401)
    t.strictSame(await list(), [])
    const url = `/account/grants/${grant.id}`
    t.equal((await app.inject({ method: 'DELETE', url, headers: bearer(token) })).statusCode, 404)
  })

  t.test('revocation: an access token ends alone, a refresh token with its grant', async t => {
    const app = await buildOAuth(engine, t)
    const client = await registerClient(app, WEB)
    const { token } = await signUp(app)
    const first = await newTokens(app, client, token)
    const second = tokensIn(await refresh(app, client, first.refreshToken))
    const headers = { authorization: `Basic ${btoa(`${client.id}:${client.secret}`)}` }
    t.equal(await accountStatus(app, first.accessToken), 200)
    await postForm(app, 'revoke', { token: first.accessToken }, headers)
    t.equal(await accountStatus(app, first.accessToken), 401)
    t.equal(await accountStatus(app, second.accessToken), 200)
    const active = async (presented: string) =>
      (await postForm(app, 'introspect', { token: presented }, headers)).json().active
    t.strictSame([await active(first.accessToken), await active(second.accessToken)], [false, true])
    await postForm(app, 'revoke', { token: second.refreshToken }, headers)
    t.equal(await accountStatus(app, second.accessToken), 401)
    t.equal((await refresh(app, client, second.refreshToken)).statusCode, 400)
  })

  t.test('a refresh token is introspected by its client alone, and as long as it works', async t => {
    const clock = manualClock()
    const app = await buildOAuth(engine, t, { clock: clock.now })
    const [client, other] = [await registerClient(app, WEB), await registerClient(app, WEB)]
    const user = await signUp(app)
    const introspect = async (presented: string, asking = client) =>
      (await postForm(app, 'introspect', { token: presented }, basic(asking))).json()
    const { refreshToken } = await newTokens(app, client, user.token, { scope: 'account:read' })
    const expected = { active: true, sub: user.id, client_id: client.id, scope: 'account:read', iss: ISSUER }
    for (const _ of ['once', 'twice']) t.match(await introspect(refreshToken), expected)
    t.equal((await refresh(app, client, refreshToken)).statusCode, 200, 'nothing is used up')
    t.strictSame(await introspect(refreshToken, other), { active: false })
    const forged = refreshToken.replace(/.(?=.{9}$)/, each => (each === 'A' ? 'B' : 'A'))
    t.strictSame(await introspect(forged), { active: false }, 'forged')
    const { refreshToken: offline, accessToken } = await newTokens(app, client, user.token)
    clock.advance(11 * 86_400_000)
    t.strictSame(await introspect(refreshToken), { active: false }, 'its session has ended')
    t.strictSame(await introspect(accessToken), { active: false })
    t.match(await introspect(offline), { active: true })
    await postForm(app, 'revoke', { token: offline }, basic(client))
    t.strictSame(await introspect(offline), { active: false })
  })

  t.test('P27, P28: a token for a resource, which is that of the grant', async t => {
    const app = await buildOAuth(engine, t)
    const headers = asAdmin
    for (const name of ['reports', 'other']) {
      const payload = { identifier: `https://${name}.example.test`, name, scopes: { 'reports:read': 'Read' } }
      const { statusCode } = await app.inject({ method: 'POST', url: '/admin/resources', headers, payload })
      t.equal(statusCode, 201)
    }
    const client = await registerClient(app, {
      ...PUBLIC,
      scopes: ['openid', 'reports:read', 'offline_access'],
    })
    const { token } = await signUp(app)
    const resource = 'https://reports.example.test'
    const granted = await newCode(app, client, token, { resource })
    const foreign = await redeem(app, client, granted, { resource: 'https://other.example.test' })
    t.match(foreign.json(), { error: 'invalid_target' })
    const tokens = tokensIn(
      await redeem(app, client, await newCode(app, client, token, { resource }), { resource }),
    )
    t.match(claimsOf(tokens.accessToken), { aud: resource, scope: 'openid reports:read offline_access' })
    t.equal(await accountStatus(app, tokens.accessToken), 401, 'a foreign aud')
    const userInfo = { url: '/oauth/userinfo', headers: bearer(tokens.accessToken) }
    t.equal((await app.inject(userInfo)).statusCode, 401)
    const next = await refresh(app, client, tokens.refreshToken, { resource })
    t.equal(claimsOf(tokensIn(next).accessToken).aud, resource, 'P28')
    const outside = await refresh(app, client, tokens.refreshToken, {
      resource: 'https://other.example.test',
    })
    t.match(outside.json(), { error: 'invalid_target' })
    t.equal((await refresh(app, client, tokens.refreshToken)).statusCode, 200, 'the grant is not lost')
  })

  t.test('login_hint, prompt=select_account and acr_values lead through the pages', async t => {
    const app = await buildOAuth(engine, t)
    const client = await registerClient(app, { ...WEB, firstParty: true })
    const { token, email } = await signUp(app)
    const begin = async (query: Query, session?: string) =>
      requestIn(
        await authorize(
          app,
          {
            ...{ client_id: client.id, response_type: 'code', scope: 'account:read openid' },
            ...{ code_challenge: challengeOf(newVerifier()), code_challenge_method: 'S256', ...query },
          },
          session,
        ),
      )
    const browser = await new FormClient(app).open(
      `/oauth/consent?request=${await begin({ login_hint: email })}`,
    )
    t.match(browser.page, `value="${email}"`)
    await browser.submit('', { password: PASSWORD })
    t.equal(browser.path, new URL(CALLBACK).pathname, 'redirected to the client')

    const chosen = await openConsent(app, await begin({ prompt: 'select_account' }, token), token)
    t.equal(chosen.statusCode, 200, 'also of a client that nobody is asked about')
    t.match(chosen.body, email)

    const acr_values = 'http://schemas.openid.net/pape/policies/2007/06/multi-factor'
    const unmet = await openConsent(app, await begin({ acr_values }, token), token)
    t.equal(targetOf(unmet).searchParams.get('error'), 'unmet_authentication_requirements')
    const { recoveryCodes } = await addTotp(app, token)
    const single = (await signInWith(app, email, recoveryCodes[0])).json().accessToken
    t.equal((await openConsent(app, await begin({ acr_values }, single), single)).statusCode, 303)
    const request = await begin({ acr_values }, token)
    t.match((await openConsent(app, request, token)).headers.location, 'security/proof?return_to=')
    t.equal((await decide(app, request, 'allow', token)).statusCode, 401, 'nor without the page')
    const proof = { url: '/account/reauthenticate', payload: { code: recoveryCodes[1] } }
    await app.inject({ method: 'POST', ...proof, headers: bearer(token) })
    const allowed = targetOf(await openConsent(app, request, token))
    t.ok(allowed.searchParams.has('code'))
  })
})
