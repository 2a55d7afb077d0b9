/** Sign-in with another provider, by a program (docs/design.md, "Other providers"; CASES O and L). */
import { createHmac, generateKeyPairSync } from 'node:crypto'
import type { LightMyRequestResponse } from 'fastify'
import { SignJWT } from 'jose'
import t, { type Test } from 'tap'
import { call } from '../support/account-routes.ts'
import { allEvents } from '../support/admin-routes.ts'
import { addTotp, STEP } from '../support/authenticator-apps.ts'
import {
  accountStatus,
  asAdmin,
  bearer,
  freshEmail,
  manualClock,
  signIn,
  signUp,
  updateUser,
} from '../support/build.ts'
import { onEveryEngine } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import {
  CLIENT_ID,
  freshAccount,
  type ProxiedResponse,
  programOf,
  providersEnv,
  startProvider,
} from '../support/identity-provider.ts'
import { readMetrics } from '../support/metrics.ts'

const MINUTE = 60_000

type Claims = Record<string, unknown>

const payloadOf = (token: string): Claims =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())

await onEveryEngine(t, async (t, { build, newDatabase }) => {
  const provider = await startProvider(t, { ids: ['test', 'other', 'closed', 'trusted', 'strong'] })
  const other = await startProvider(t, { ids: ['other'] })
  const env = {
    ...providersEnv(
      [
        provider.entry(),
        other.entry({ id: 'other', name: 'Other' }),
        provider.entry({ id: 'closed', signUp: false }),
        provider.entry({ id: 'strong', isMultiFactor: { amr: ['hwk'], acr: ['urn:two'] } }),
      ],
      [provider.issuer, other.issuer],
    ),
    DATABASE_URL: await newDatabase(t),
  }
  const clock = manualClock(Date.now())
  const app = await build(t, { env, clock: clock.now })
  const program = programOf(app, provider)
  t.afterEach(() => {
    provider.change = null
  })

  const tokenRequests = () => provider.requests.filter(each => each === 'POST /token').length
  const usersWith = async (email: unknown): Promise<number> => {
    const url = `/admin/users?search=${encodeURIComponent(String(email))}`
    return (await app.inject({ url, headers: asAdmin })).json().results.length
  }
  /** Changes the ID token before the service gets it. */
  const changeToken = (change: (claims: Claims) => Claims | Promise<string> | string) => {
    provider.changeToken = async token => {
      const changed = await change(payloadOf(token))
      return typeof changed === 'string' ? changed : provider.sign(changed)
    }
  }
  t.afterEach(() => {
    provider.changeToken = null
  })

  t.test('an unknown identity opens an account, a known one signs in', async t => {
    provider.account = freshAccount({ given_name: 'Ann', family_name: 'Lee', locale: 'de-AT' })
    const first = await program.signIn()
    t.equal(first.statusCode, 200, first.body)
    const { user, accessToken } = first.json()
    t.match(user, {
      email: provider.account.email,
      emailVerified: true,
      firstName: 'Ann',
      lastName: 'Lee',
      locale: 'de-AT',
    })
    t.equal(await accountStatus(app, accessToken), 200)
    clock.advance(MINUTE)
    const second = await program.signIn()
    t.equal(second.json().user?.id, user.id, second.body)
    const methods = await call(app, 'GET', '/account/methods', undefined, bearer(accessToken))
    t.match(methods.json().results, [
      { method: 'identity', label: `test ${provider.account.email}`, isFactor: false },
    ])
    const sessions = await call(app, 'GET', '/account/sessions', undefined, bearer(accessToken))
    t.match(sessions.json().results, [{ method: 'identity', amr: ['fed'] }, { method: 'identity' }])
    const events = await allEvents(app, { userId: user.id })
    t.strictSame(events.map(({ type }) => type).toReversed(), [
      'user.signed-up',
      'identity.linked',
      'user.signed-in',
    ])
    t.match(events[0]?.details, { method: 'identity', identity: events[1]?.details?.identity })
    const metrics = await readMetrics(app)
    t.ok(metrics.sum('gatehouse_sign_ins_total', { method: 'identity', outcome: 'succeeded' }) >= 2)
  })

  t.test('the providers are listed in the order of the settings; an unknown one is 404', async t => {
    const { results } = (await app.inject('/account/sign-in/providers')).json()
    t.strictSame(
      results.map(({ id }: { id: string }) => id),
      ['test', 'other', 'closed', 'strong'],
    )
    globalErrorOf(t, await call(app, 'POST', '/account/sign-in/providers/nothing', {}), 404)
    globalErrorOf(t, await programOf(app, provider, 'nothing').finish({ flow: 'x' }), 404)
  })

  t.test('the e-mail at the provider may change: the identity stays', async t => {
    provider.account = freshAccount()
    const { user } = (await program.signIn()).json()
    provider.account = { ...provider.account, email: freshEmail() }
    const again = await program.signIn()
    t.match(again.json().user, { id: user.id, email: user.email })
    const { results } = (
      await call(app, 'GET', '/account/identities', undefined, bearer(again.json().accessToken))
    ).json()
    t.match(results, [{ subject: provider.account.sub, email: provider.account.email }])
  })

  t.test('a disabled account is 403', async t => {
    provider.account = freshAccount()
    const { user } = (await program.signIn()).json()
    const callback = await program.callback()
    await updateUser(app, user.id, { disabled: true })
    globalErrorOf(t, await program.finish(callback), 403)
  })

  t.test('a flow ends after ten minutes', async t => {
    provider.account = freshAccount()
    const callback = await program.callback()
    clock.advance(10 * MINUTE)
    globalErrorOf(t, await program.finish(callback), 400)
  })

  t.test('O1 a callback without state, or with a wrong one, is 400 without a token request', async t => {
    provider.account = freshAccount()
    const { url, flow } = await program.callback()
    const before = tokenRequests()
    const changed = (change: (query: URLSearchParams) => void) => {
      const copy = new URL(url)
      change(copy.searchParams)
      return copy.href
    }
    for (const wrong of [
      changed(query => query.delete('state')),
      changed(query => query.set('state', 'wrong')),
      changed(query => query.set('state', '')),
      'nonsense',
      'https://elsewhere.example/',
      url.replace('https://', 'http://'),
    ])
      globalErrorOf(t, await program.finish({ url: wrong, flow }), 400)
    globalErrorOf(t, await program.finish({ url, flow: 'wrong' }), 400)
    globalErrorOf(t, await program.finish({ flow }), 400)
    t.equal(tokenRequests(), before)
    t.equal((await program.finish({ url, flow })).statusCode, 200, 'the flow of the owner still works')
  })

  t.test('O3 one callback, sent 50 times at once on two instances, opens one session', async t => {
    const second = await build(t, { env, clock: clock.now })
    const instances = [program, programOf(second, provider)]
    provider.account = freshAccount()
    const callback = await program.callback()
    const before = tokenRequests()
    const responses = await Promise.all(
      Array.from({ length: 50 }, (_, index) => instances[index % 2]?.finish(callback)),
    )
    const statuses = responses.map(response => response?.statusCode).toSorted()
    t.strictSame(statuses, [200, ...Array(49).fill(400)])
    t.equal(tokenRequests() - before, 1)
  })

  t.test('O4 the response of another provider, or at its callback, is 400', async t => {
    provider.account = freshAccount()
    const { url, flow } = await program.callback()
    const before = tokenRequests()
    const otherProgram = programOf(app, other, 'other')
    globalErrorOf(t, await otherProgram.finish({ url, flow }), 400)
    const atOther = url.replace('/providers/test/', '/providers/other/')
    globalErrorOf(t, await otherProgram.finish({ url: atOther, flow }), 400)
    const mixedUp = new URL(url)
    mixedUp.searchParams.set('iss', other.issuer)
    globalErrorOf(t, await program.finish({ url: mixedUp.href, flow }), 400)
    const twice = await program.callback()
    globalErrorOf(t, await program.finish({ ...twice, url: `${twice.url}&iss=${other.issuer}` }), 400)
    t.equal(tokenRequests(), before)
  })

  t.test('O5 a response without iss, of a provider that announces it, is 400', async t => {
    provider.account = freshAccount()
    const { url, flow } = await program.callback()
    const before = tokenRequests()
    const without = new URL(url)
    t.equal(without.searchParams.get('iss'), provider.issuer)
    without.searchParams.delete('iss')
    globalErrorOf(t, await program.finish({ url: without.href, flow }), 400)
    t.equal(tokenRequests(), before)
  })

  const isRejected = async (t: Test, what: string, response: LightMyRequestResponse, status = 401) => {
    globalErrorOf(t, response, status)
    t.equal(await usersWith(provider.account.email), 0, `${what}: nothing is stored`)
  }

  const now = () => Math.floor(Date.now() / 1_000)
  const stranger = generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey
  const curve = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const TOKENS: Readonly<Record<string, (claims: Claims) => Claims | Promise<string> | string>> = {
    'another audience': claims => ({ ...claims, aud: 'another-client' }),
    'no audience': ({ aud: _, ...claims }) => claims,
    'two audiences without azp': claims => ({ ...claims, aud: [CLIENT_ID, 'another'] }),
    'two audiences and another azp': claims => ({ ...claims, aud: [CLIENT_ID, 'another'], azp: 'another' }),
    'no exp': ({ exp: _, ...claims }) => claims,
    'an exp in the past': claims => ({ ...claims, exp: now() - 120 }),
    'an exp that is text': claims => ({ ...claims, exp: String(now() + 600) }),
    'no iat': ({ iat: _, ...claims }) => claims,
    'an iat in the past': claims => ({ ...claims, iat: now() - 3_600 }),
    'an iat in the future': claims => ({ ...claims, iat: now() + 3_600 }),
    'an nbf in the future': claims => ({ ...claims, nbf: now() + 3_600 }),
    'another nonce': claims => ({ ...claims, nonce: 'another' }),
    'no nonce': ({ nonce: _, ...claims }) => claims,
    'alg none': claims => `${encode({ alg: 'none' })}.${encode(claims)}.`,
    'alg none with a signature': claims => `${encode({ alg: 'none', kid: 'key-1' })}.${encode(claims)}.c2ln`,
    'HS256 with the client secret': claims => {
      const text = `${encode({ alg: 'HS256' })}.${encode(claims)}`
      return `${text}.${createHmac('sha256', provider.secret).update(text).digest('base64url')}`
    },
    'HS256 with the public key': claims => {
      const text = `${encode({ alg: 'HS256', kid: 'key-1' })}.${encode(claims)}`
      return `${text}.${createHmac('sha256', provider.publicPem).update(text).digest('base64url')}`
    },
    'an unknown kid': claims => provider.sign(claims, { kid: 'unknown' }),
    'the kid with the key of a stranger': claims =>
      new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'key-1' }).sign(stranger),
    'another type of key': claims =>
      new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: 'key-1' }).sign(curve),
    'an unknown critical header': claims =>
      new SignJWT(claims)
        .setProtectedHeader({ alg: 'RS256', kid: 'key-1', crit: ['x'], x: 1 })
        .sign(provider.privateKey, { crit: { x: true } }),
    'another signature': async claims => `${(await provider.sign(claims)).slice(0, -8)}AAAAAAAA`,
    'no JWT': () => 'nonsense',
    'no JSON': () => `${encode({ alg: 'RS256' })}.bm9uc2Vuc2U.c2ln`,
  }
  for (const [what, change] of Object.entries(TOKENS))
    t.test(`O6 an ID token with ${what} is 401`, async t => {
      provider.account = freshAccount()
      changeToken(change)
      await isRejected(t, what, await program.signIn())
    })

  t.test('O6 a response without an ID token is 401', async t => {
    provider.account = freshAccount()
    provider.change = (path, response) => {
      if (path === '/token')
        response.body = JSON.stringify({ ...JSON.parse(response.body), id_token: undefined })
    }
    await isRejected(t, 'no token', await program.signIn())
  })

  t.test('O6 an unchanged token signs in: the changes above are what is refused', async t => {
    provider.account = freshAccount()
    changeToken(claims => claims)
    t.equal((await program.signIn()).statusCode, 200)
  })

  t.test('O7 user info of another subject, or of none, is 401', async t => {
    for (const sub of ['another', undefined, 7, '']) {
      provider.account = freshAccount()
      provider.change = (path, response) => {
        if (path === '/me') response.body = JSON.stringify({ ...JSON.parse(response.body), sub })
      }
      await isRejected(t, 'user info', await program.signIn())
    }
  })

  t.test('O8 a provider whose metadata name another issuer is 503, everything else works', async t => {
    const wrong = await startProvider(t)
    wrong.change = (path, response) => {
      if (path.startsWith('/.well-known/'))
        response.body = response.body.replaceAll(wrong.issuer, provider.issuer)
    }
    const providers = [wrong.entry(), provider.entry({ id: 'other' })]
    const app = await build(t, {
      env: providersEnv(providers, [wrong.issuer, provider.issuer]),
      clock: clock.now,
    })
    const start = (id: string) => call(app, 'POST', `/account/sign-in/providers/${id}`, {})
    const response = await start('test')
    globalErrorOf(t, response, 503)
    t.ok(response.headers['retry-after'])
    t.equal((await start('other')).statusCode, 201)
    const asked = wrong.requests.length
    globalErrorOf(t, await start('test'), 503)
    t.equal(wrong.requests.length, asked, 'not asked again at once')
    wrong.change = null
    clock.advance(MINUTE)
    t.equal((await start('test')).statusCode, 201, 'later it works')
  })

  t.test('O9 PKCE: a code of another flow is refused by the provider', async t => {
    provider.account = freshAccount()
    const { authorizationUrl } = await program.start()
    const query = new URL(authorizationUrl).searchParams
    t.match(query.get('code_challenge'), /^[\w-]{43}$/)
    t.equal(query.get('code_challenge_method'), 'S256')
    for (const name of ['state', 'nonce']) t.match(query.get(name), /^[\w-]{43}$/)
    const [victim, attacker] = [await program.callback(), await program.callback()]
    const injected = new URL(attacker.url)
    injected.searchParams.set('code', new URL(victim.url).searchParams.get('code') ?? '')
    const before = tokenRequests()
    await isRejected(t, 'injected', await program.finish({ url: injected.href, flow: attacker.flow }))
    t.equal(tokenRequests() - before, 1, 'the provider has refused it')
  })

  t.test('O9 PKCE is used with a provider that does not announce it', async t => {
    const silent = await startProvider(t, { discovery: { code_challenge_methods_supported: undefined } })
    const app = await build(t, { env: providersEnv([silent.entry()], [silent.issuer]) })
    const { authorizationUrl } = await programOf(app, silent).start()
    t.ok(new URL(authorizationUrl).searchParams.has('code_challenge'))
  })

  t.test('O12 nothing can be added to the start', async t => {
    for (const name of [
      'login_hint',
      'client_id',
      'redirect_uri',
      'scope',
      'nonce',
      'state',
      'return_to',
      'flow',
    ]) {
      const body = { [name]: 'https://elsewhere.example' }
      errorsAt(t, await call(app, 'POST', '/account/sign-in/providers/test', body), 400, [name])
      const query = await call(app, 'POST', `/account/sign-in/providers/test?${name}=x`, {})
      t.notMatch(query.body, /elsewhere/)
    }
    const { authorizationUrl } = await program.start()
    const parameters = [...new URL(authorizationUrl).searchParams.keys()].toSorted()
    t.strictSame(parameters, [
      ...['client_id', 'code_challenge', 'code_challenge_method', 'nonce'],
      ...['redirect_uri', 'response_type', 'scope', 'state'],
    ])
  })

  t.test('O13 a user with an authenticator app is asked for a code', async t => {
    provider.account = freshAccount()
    const { accessToken, user } = (await program.signIn()).json()
    const app1 = await addTotp(app, accessToken)
    clock.advance(STEP)
    const callback = await program.callback()
    const before = tokenRequests()
    errorsAt(t, await program.finish(callback), 401, ['code'])
    errorsAt(t, await program.finish({ ...callback, code: '000000' }), 401, ['code'])
    errorsAt(t, await program.finish(callback), 401, ['code'])
    t.equal(tokenRequests() - before, 1, 'the provider is asked once')
    const [right, wrongUrl] = [app1.code(), callback.url.replace('state=', 'state=x')]
    globalErrorOf(t, await program.finish({ ...callback, url: wrongUrl, code: right }), 400)
    const [one, another] = await Promise.all([
      program.finish({ ...callback, code: right }),
      program.finish({ flow: callback.flow, code: right }),
    ])
    t.strictSame(
      [one, another].map(({ statusCode }) => statusCode === 200).toSorted(),
      [false, true],
      one.body,
    )
    const signedIn = one.statusCode === 200 ? one : another
    t.equal(signedIn.json().user.id, user.id)
    const sessions = await call(
      app,
      'GET',
      '/account/sessions',
      undefined,
      bearer(signedIn.json().accessToken),
    )
    t.match(sessions.json().results[0], { amr: ['fed', 'otp', 'mfa'], current: true })
    globalErrorOf(t, await program.finish({ ...callback, code: right }), 400)
    clock.advance(STEP)
    const together = await program.callback()
    t.equal((await program.finish({ ...together, code: app1.code() })).statusCode, 200, 'in one request')
  })

  t.test('O13 isMultiFactor: two factors that the provider has verified count', async t => {
    const strong = programOf(app, provider, 'strong')
    provider.account = freshAccount()
    const { accessToken } = (await program.signIn()).json()
    await addTotp(app, accessToken)
    errorsAt(t, await strong.signIn(), 401, ['code'])
    for (const claims of [{ amr: ['pwd'] }, { amr: 'hwk' }, { acr: 'urn:one' }]) {
      changeToken(token => ({ ...token, ...claims }))
      errorsAt(t, await strong.signIn(), 401, ['code'])
    }
    for (const claims of [{ amr: ['pwd', 'hwk'] }, { acr: 'urn:two' }]) {
      changeToken(token => ({ ...token, ...claims }))
      const signedIn = await strong.signIn()
      t.equal(signedIn.statusCode, 200, signedIn.body)
      const headers = bearer(signedIn.json().accessToken)
      const { results } = (await call(app, 'GET', '/account/sessions', undefined, headers)).json()
      t.match(results[0], { amr: ['fed', 'mfa'] })
      errorsAt(t, await program.signIn(), 401, ['code'])
    }
  })

  t.test('L6 an e-mail that is not verified exactly links and confirms nothing', async t => {
    const user = await signUp(app)
    await updateUser(app, user.id, { emailVerified: true })
    for (const email_verified of [false, undefined, 'true', 1, null, 'yes', [true]]) {
      provider.account = freshAccount({ email: user.email, email_verified })
      globalErrorOf(t, await program.signIn(), 409)
      provider.account = freshAccount({ email_verified })
      t.match((await program.signIn()).json().user, { emailVerified: false }, String(email_verified))
    }
  })

  t.test('L7 a token of an issuer that is not the provider’s is 401', async t => {
    for (const iss of [other.issuer, `${provider.issuer}/`, '', undefined, 7]) {
      provider.account = freshAccount()
      changeToken(claims => ({ ...claims, iss }))
      await isRejected(t, String(iss), await program.signIn())
    }
    provider.account = freshAccount()
    changeToken(claims => other.sign({ ...claims, iss: other.issuer }))
    await isRejected(t, 'signed by the other', await program.signIn())
  })

  t.test('L8 the same subject of another issuer is another identity', async t => {
    provider.account = freshAccount()
    other.account = freshAccount({ sub: provider.account.sub })
    const [one, two] = [await program.signIn(), await programOf(app, other, 'other').signIn()]
    t.equal(one.statusCode, 200)
    t.equal(two.statusCode, 200, two.body)
    t.not(one.json().user.id, two.json().user.id)
    const known = await programOf(app, provider, 'strong').signIn()
    t.equal(known.json().user.id, one.json().user.id, 'the name of the provider is not part of it')
  })

  t.test('L9 a subject that is missing, empty or no text is 401', async t => {
    for (const sub of [
      undefined,
      '',
      ' ',
      null,
      7,
      true,
      ['x'],
      { x: 1 },
      'x'.repeat(256),
      'a\u0000b',
      'ü',
    ]) {
      provider.account = freshAccount()
      changeToken(claims => ({ ...claims, sub }))
      provider.change = (path, response: ProxiedResponse) => {
        if (path === '/me') response.body = JSON.stringify({ ...JSON.parse(response.body), sub })
      }
      await isRejected(t, String(sub), await program.signIn())
    }
  })

  t.test('L17 claims never become roles, metadata, status, id or confirmation', async t => {
    provider.account = freshAccount({
      email_verified: false,
      roles: ['admin'],
      appMetadata: { plan: 'gold' },
      userMetadata: { x: 1 },
      emailVerified: true,
      disabled: true,
      id: '01936b7e-4a5c-7d3e-9f10-2b3c4d5e6f70',
      createdAt: '2001-01-01T00:00:00Z',
    })
    const { user } = (await program.signIn()).json()
    t.match(user, { roles: [], appMetadata: {}, userMetadata: {}, emailVerified: false })
    t.not(user.id, provider.account.id)
    const { disabled, createdAt } = (
      await app.inject({ url: `/admin/users/${user.id}`, headers: asAdmin })
    ).json()
    t.equal(disabled, false)
    t.not(createdAt.slice(0, 4), '2001')
  })

  t.test(
    'K7 names that no store could keep are left out, addresses that none may have are refused',
    async t => {
      for (const name of ['a\u0000b', '\ud800', 'x'.repeat(129), 7, { a: 1 }, ' ', '\u202egnp.exe', 'a\nb']) {
        provider.account = freshAccount({ given_name: name, family_name: 'Lee' })
        t.match((await program.signIn()).json().user, { firstName: null, lastName: 'Lee' })
      }
      for (const email of [
        undefined,
        '',
        'x',
        7,
        'a@b@example.com',
        'ａ＠example.com',
        '"a"@example.com',
        'a@[127.0.0.1]',
      ]) {
        provider.account = freshAccount({ email })
        globalErrorOf(t, await program.signIn(), 403)
      }
    },
  )

  t.test('L19 with signUp: false an unknown identity creates no user', async t => {
    const closed = programOf(app, provider, 'closed')
    provider.account = freshAccount()
    await isRejected(t, 'closed', await closed.signIn(), 403)
    const callback = await closed.callback()
    globalErrorOf(t, await closed.finish(callback), 403)
    globalErrorOf(t, await closed.finish({ flow: callback.flow }), 400)
    t.equal(await usersWith(provider.account.email), 0)
    const { user } = (await program.signIn()).json()
    t.equal((await closed.signIn()).json().user.id, user.id, 'a known one signs in')
  })

  t.test(
    'with REQUIRE_EMAIL_VERIFICATION only confirmed addresses open accounts, and nothing tells which exist',
    async t => {
      const providers = [provider.entry({ authoritativeFor: ['example.com'] })]
      const app = await build(t, {
        env: { ...providersEnv(providers, [provider.issuer]), REQUIRE_EMAIL_VERIFICATION: 'true' },
      })
      const program = programOf(app, provider)
      provider.account = freshAccount()
      const opened = await program.signIn()
      t.match(opened.json().user, { emailVerified: true }, opened.body)
      const responses = []
      for (const email of [opened.json().user.email, freshEmail()]) {
        provider.account = freshAccount({ email, email_verified: false })
        responses.push((await program.signIn()).body)
      }
      t.equal(responses[0], responses[1])
      provider.account = freshAccount({ email: 'ann@elsewhere.example' })
      globalErrorOf(t, await program.signIn(), 403)
    },
  )

  t.test('an account of a provider has no password, and signs in with none', async t => {
    provider.account = freshAccount()
    const { user } = (await program.signIn()).json()
    t.equal((await signIn(app, user.email)).statusCode, 401)
  })
})
