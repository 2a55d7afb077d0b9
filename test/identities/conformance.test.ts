/**
 * What the client of a provider verifies, whatever the store (CASES O and L). A name in parentheses is that of a module of the OpenID
 * Foundation's conformance suite in https://github.com/panva/openid-client/tree/main/conformance/modules. Not here, because the service does
 * not use them: DPoP, JARM (`ensure-jarm-…`), FAPI (`fapi1-advanced-final-client-test`), hybrid flows (`…-chash`, `…-shash`,
 * `nonce-unless-code-flow`). Others are in `sign-in.test.ts` and `presets.test.ts`.
 */
import { createHmac, generateKeyPairSync } from 'node:crypto'
import type { LightMyRequestResponse } from 'fastify'
import { SignJWT } from 'jose'
import t, { type Test } from 'tap'
import { call } from '../support/account-routes.ts'
import { asAdmin, build, manualClock } from '../support/build.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import {
  CLIENT_ID,
  type Claims,
  freshAccount,
  type ProxiedResponse,
  programOf,
  providersEnv,
  startProvider,
  type TestProvider,
} from '../support/identity-provider.ts'

const MINUTE = 60_000

const provider = await startProvider(t)
const other = await startProvider(t, { ids: ['other'] })
const app = await build(t, {
  env: providersEnv(
    [provider.entry(), other.entry({ id: 'other', name: 'Other' })],
    [provider.issuer, other.issuer],
  ),
})
const program = programOf(app, provider)

t.afterEach(() => {
  provider.change = null
  provider.changeToken = null
})

const requestsOf = (what: string): number => provider.requests.filter(each => each === what).length
const tokenRequests = () => requestsOf('POST /token')

const isRejected = async (t: Test, what: string, response: LightMyRequestResponse) => {
  globalErrorOf(t, response, 401)
  const url = `/admin/users?search=${encodeURIComponent(String(provider.account.email))}`
  const { results } = (await app.inject({ url, headers: asAdmin })).json()
  t.strictSame(results, [], `${what}: nothing is stored`)
}

/** Changes the document that the provider sends for a path. */
const changing =
  (changed: string, change: (document: Claims) => object) =>
  (path: string, response: ProxiedResponse): void => {
    if (path === changed) response.body = JSON.stringify(change(JSON.parse(response.body)))
  }

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
  globalErrorOf(
    t,
    await program.finish({ url: mixedUp.href, flow }),
    400,
    'invalid-authorization-response-iss',
  )
  const twice = await program.callback()
  globalErrorOf(t, await program.finish({ ...twice, url: `${twice.url}&iss=${other.issuer}` }), 400)
  t.equal(tokenRequests(), before)
})

t.test('O5 a response without the announced iss is 400 (remove-authorization-response-iss)', async t => {
  provider.account = freshAccount()
  const { url, flow } = await program.callback()
  const before = tokenRequests()
  const without = new URL(url)
  t.equal(without.searchParams.get('iss'), provider.issuer)
  without.searchParams.delete('iss')
  globalErrorOf(t, await program.finish({ url: without.href, flow }), 400)
  t.equal(tokenRequests(), before)
})

t.test('a response with more than a code, or with neither a code nor an error, is 400', async t => {
  const before = tokenRequests()
  for (const changed of ['&id_token=a.b.c&id_token=x', '&error=x', '&code=x', '&response=x&response=y']) {
    const { url, flow } = await program.callback()
    globalErrorOf(t, await program.finish({ url: url + changed, flow }), 400, changed)
  }
  const { url, flow } = await program.callback()
  globalErrorOf(t, await program.finish({ url: url.replace('code=', 'cod='), flow }), 400)
  t.equal(tokenRequests(), before)
})

t.test('an error in the URL is 401, and never counts as a failure of the provider', async t => {
  provider.account = freshAccount()
  for (const code of ['', 'code=&']) {
    const { url, flow } = await program.callback()
    const refused = url.replace(/code=[^&]*&/, `${code}error=invalid_client&`)
    await isRejected(t, refused, await program.finish({ url: refused, flow }))
  }
})

const now = () => Math.floor(Date.now() / 1_000)
const stranger = generateKeyPairSync('rsa', { modulusLength: 2_048 })
const curve = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const withHmac = (claims: Claims, header: object, key: string): string => {
  const text = `${encode(header)}.${encode(claims)}`
  return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`
}

const TOKENS: Readonly<Record<string, NonNullable<TestProvider['changeToken']>>> = {
  'another audience (invalid-aud)': claims => ({ ...claims, aud: 'another-client' }),
  'no audience (missing-aud, invalid-missing-aud)': ({ aud: _, ...claims }) => claims,
  'two audiences without azp (invalid-secondary-aud)': claims => ({ ...claims, aud: [CLIENT_ID, 'another'] }),
  'two audiences and another azp': claims => ({ ...claims, aud: [CLIENT_ID, 'another'], azp: 'another' }),
  'one audience and another azp': claims => ({ ...claims, azp: 'another' }),
  'no exp (invalid-missing-exp)': ({ exp: _, ...claims }) => claims,
  'an exp in the past (invalid-expired-exp)': claims => ({ ...claims, exp: now() - 120 }),
  'an exp that is text': claims => ({ ...claims, exp: String(now() + 600) }),
  'no iat (missing-iat)': ({ iat: _, ...claims }) => claims,
  'an iat in the past (iat-is-week-in-past)': claims => ({ ...claims, iat: now() - 7 * 86_400 }),
  'an iat some minutes ago': claims => ({ ...claims, iat: now() - 400 }),
  'an iat in the future': claims => ({ ...claims, iat: now() + 3_600 }),
  'an nbf in the future': claims => ({ ...claims, nbf: now() + 3_600 }),
  'another nonce (invalid-nonce, nonce-invalid)': claims => ({ ...claims, nonce: 'another' }),
  'no nonce (invalid-missing-nonce)': ({ nonce: _, ...claims }) => claims,
  'alg none (invalid-null-alg, idtoken-sig-none)': claims => `${encode({ alg: 'none' })}.${encode(claims)}.`,
  'alg none with a signature': claims => `${encode({ alg: 'none', kid: 'key-1' })}.${encode(claims)}.c2ln`,
  'HS256 with the client secret (invalid-alternate-alg)': claims =>
    withHmac(claims, { alg: 'HS256' }, provider.secret),
  'HS256 with the public key': claims => withHmac(claims, { alg: 'HS256', kid: 'key-1' }, provider.publicPem),
  'HS256 with another key (invalid-sig-hs256)': claims => withHmac(claims, { alg: 'HS256' }, 'another'),
  'an unknown kid': claims => provider.sign(claims, { kid: 'unknown' }),
  'the kid with the key of a stranger': claims => provider.sign(claims, { key: stranger.privateKey }),
  'another type of key (invalid-sig-es256)': claims => provider.sign(claims, { alg: 'ES256', key: curve }),
  'an unknown critical header': claims =>
    new SignJWT(claims)
      .setProtectedHeader({ alg: 'RS256', kid: 'key-1', crit: ['x'], x: 1 })
      .sign(provider.privateKey, { crit: { x: true } }),
  'another signature (invalid-sig-rs256, invalid-signature)': async claims =>
    `${(await provider.sign(claims)).slice(0, -8)}AAAAAAAA`,
  'encryption that nobody has asked for (encrypted-idtoken)': () => 'a.b.c.d.e',
  'no JWT': () => 'nonsense',
  'no JSON': () => `${encode({ alg: 'RS256' })}.bm9uc2Vuc2U.c2ln`,
}
for (const [what, change] of Object.entries(TOKENS))
  t.test(`O6 an ID token with ${what} is 401`, async t => {
    provider.account = freshAccount()
    provider.changeToken = change
    await isRejected(t, what, await program.signIn())
  })

t.test('O6 a response without an ID token is 401', async t => {
  provider.account = freshAccount()
  provider.change = changing('/token', ({ id_token: _, ...body }) => body)
  await isRejected(t, 'no token', await program.signIn())
})

/** What differs from the usual, and is right all the same. */
const ACCEPTED: Readonly<Record<string, Partial<Pick<TestProvider, 'change' | 'changeToken'>>>> = {
  'a token that is signed again (oidcc-client-test, idtoken-sig-rs256, missing-athash)': {
    changeToken: ({ at_hash: _, ...claims }) => claims,
  },
  'the audience in a list (valid-aud-as-array)': {
    changeToken: claims => ({ ...claims, aud: [CLIENT_ID] }),
  },
  'a token without kid, if there is one key (kid-absent-single-jwks)': {
    changeToken: claims => provider.sign(claims, { kid: null }),
  },
  'no scope in the response (no-scope-in-token-endpoint-response)': {
    change: changing('/token', ({ scope: _, ...body }) => body),
  },
  'no expires_in in the response (token-endpoint-response-without-expires_in)': {
    change: changing('/token', ({ expires_in: _, ...body }) => body),
  },
  'the type of the token in capitals (token-type-case-insensitivity)': {
    change: changing('/token', body => ({ ...body, token_type: 'BEARER' })),
  },
}
for (const [what, change] of Object.entries(ACCEPTED))
  t.test(`O6 ${what} signs in`, async t => {
    Object.assign(provider, change)
    provider.account = freshAccount()
    const response = await program.signIn()
    // No ID token has the e-mail: the names and it are from the user info (scope-userinfo-claims).
    t.match(response.json().user, { email: provider.account.email }, response.body)
  })

t.test('O6 a token without kid is 401 if there are several keys (kid-absent-multiple-jwks)', async t => {
  const app = await build(t, { env: providersEnv([provider.entry()], [provider.issuer]) })
  const key = { ...stranger.publicKey.export({ format: 'jwk' }), kid: 'another', use: 'sig' }
  provider.change = changing('/jwks', ({ keys }) => ({ keys: [...(keys as object[]), key] }))
  provider.account = freshAccount()
  provider.changeToken = claims => provider.sign(claims, { kid: null })
  await isRejected(t, 'no kid', await programOf(app, provider).signIn())
  provider.changeToken = null
  t.equal((await programOf(app, provider).signIn()).statusCode, 200)
})

t.test(
  'keys are fetched once, and again for an unknown key at most once a minute (signing-key-rotation)',
  async t => {
    const { now } = Date
    t.teardown(() => {
      Date.now = now
    })
    const app = await build(t, { env: providersEnv([provider.entry()], [provider.issuer]) })
    const program = programOf(app, provider)
    const [keys, metadata] = ['GET /jwks', 'GET /.well-known/openid-configuration'] as const
    const before = [requestsOf(keys), requestsOf(metadata)] as const
    const fetched = () => [requestsOf(keys) - before[0], requestsOf(metadata) - before[1]]
    t.equal((await program.signIn()).statusCode, 200)
    provider.changeToken = claims => provider.sign(claims, { kid: 'next', key: stranger.privateKey })
    const next = { ...stranger.publicKey.export({ format: 'jwk' }), kid: 'next', use: 'sig' }
    provider.change = changing('/jwks', () => ({ keys: [next] }))
    for (let count = 0; count < 5; count += 1) globalErrorOf(t, await program.signIn(), 401)
    t.strictSame(fetched(), [1, 1])
    // The age of keys is that of the library, which has no other clock.
    Date.now = () => now() + MINUTE + 1_000
    t.equal((await program.signIn()).statusCode, 200)
    t.strictSame(fetched(), [2, 1])
  },
)

t.test('O7 user info of another subject, or of none, is 401 (userinfo-invalid-sub)', async t => {
  for (const sub of ['another', undefined, 7, '']) {
    provider.account = freshAccount()
    provider.change = changing('/me', info => ({ ...info, sub }))
    await isRejected(t, 'user info', await program.signIn())
  }
})

t.test('O7 signed user info counts with the signature of the provider (userinfo-signed)', async t => {
  const signed = await startProvider(t, { discovery: { userinfo_signing_alg_values_supported: ['RS256'] } })
  const app = await build(t, { env: providersEnv([signed.entry()], [signed.issuer]) })
  signed.account = freshAccount()
  const token = await signed.sign({ ...signed.account, iss: signed.issuer, aud: CLIENT_ID })
  const respond = (body: string) => {
    signed.change = (path, response) => {
      if (path === '/me') Object.assign(response, { body, headers: { 'content-type': 'application/jwt' } })
    }
    return programOf(app, signed).signIn()
  }
  globalErrorOf(t, await respond(`${token.slice(0, -8)}AAAAAAAA`), 401)
  t.equal((await respond(token)).json().user?.email, signed.account.email)
})

t.test(
  'O8 a provider whose metadata name another issuer is 503, everything else works (discovery-issuer-mismatch)',
  async t => {
    const clock = manualClock(Date.now())
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
  },
)

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
    const path = '/account/sign-in/providers/test'
    errorsAt(t, await call(app, 'POST', path, { [name]: 'elsewhere' }), 400, [name])
    t.notMatch((await call(app, 'POST', `${path}?${name}=elsewhere`, {})).body, /elsewhere/)
  }
  const { authorizationUrl } = await program.start()
  const parameters = [...new URL(authorizationUrl).searchParams.keys()].toSorted()
  t.strictSame(parameters, [
    ...['client_id', 'code_challenge', 'code_challenge_method', 'nonce'],
    ...['redirect_uri', 'response_type', 'scope', 'state'],
  ])
})

t.test(
  'L7 a token of an issuer that is not the provider’s is 401 (invalid-iss, invalid-missing-iss)',
  async t => {
    for (const iss of [other.issuer, `${provider.issuer}/`, '', undefined, 7]) {
      provider.account = freshAccount()
      provider.changeToken = claims => ({ ...claims, iss })
      await isRejected(t, String(iss), await program.signIn())
    }
    provider.account = freshAccount()
    provider.changeToken = claims => other.sign({ ...claims, iss: other.issuer })
    await isRejected(t, 'valid at the other', await program.signIn())
  },
)

t.test('L9 a subject that is missing, empty or no text is 401 (missing-sub)', async t => {
  for (const sub of [undefined, '', ' ', null, 7, true, ['x'], { x: 1 }, 'x'.repeat(256), 'a\u0000b', 'ü']) {
    provider.account = freshAccount()
    provider.changeToken = claims => ({ ...claims, sub })
    provider.change = changing('/me', info => ({ ...info, sub }))
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
