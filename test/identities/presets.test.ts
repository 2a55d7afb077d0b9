/** Providers with presets, against imitations of their documented responses (docs/configuration.md, "Other providers"). */
import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import { SignJWT } from 'jose'
import t from 'tap'
import { call } from '../support/account-routes.ts'
import { build, type Context, freshEmail } from '../support/build.ts'
import { errorsOf, globalErrorOf } from '../support/error-response.ts'
import { PUBLIC_URL, providersEnv, serve } from '../support/identity-provider.ts'

const TENANT = '01936b7e-4a5c-7d3e-9f10-2b3c4d5e6f70'
const ELSEWHERE = '01936b7e-4a5c-7d3e-9f10-2b3c4d5e6f71'
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
const ofClient = generateKeyPairSync('ec', { namedCurve: 'P-256' })

interface Imitation {
  readonly issuer: string
  claims: Record<string, unknown>
  /** The responses of GitHub. */
  github: { user: object; emails: unknown; token: object }
  readonly tokenRequests: { readonly body: URLSearchParams; readonly authorization: string | undefined }[]
}

/** A provider whose authorization endpoint nobody opens: the test makes the callback. */
const imitate = async (t: Context): Promise<Imitation> => {
  const issuer = await serve(t, async (request, response) => {
    const { pathname } = new URL(request.url ?? '', issuer)
    const send = (body: unknown) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify(body))
    }
    if (pathname === '/.well-known/openid-configuration')
      return send({
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/keys`,
      })
    if (pathname === '/keys')
      return send({
        keys: [{ ...createPublicKey(privateKey).export({ format: 'jwk' }), kid: 'k', use: 'sig' }],
      })
    if (pathname === '/user' || pathname === '/user/emails') {
      const { authorization, 'user-agent': agent } = request.headers
      if (authorization !== 'Bearer gho_token') return void response.writeHead(401).end()
      // GitHub does not respond to programs without a name.
      if (agent === undefined) return void response.writeHead(403).end()
      return send(pathname === '/user' ? imitation.github.user : imitation.github.emails)
    }
    let text = ''
    for await (const chunk of request) text += chunk
    imitation.tokenRequests.push({
      body: new URLSearchParams(text),
      authorization: request.headers.authorization,
    })
    if (pathname === '/access_token') return send(imitation.github.token)
    const now = Math.floor(Date.now() / 1_000)
    const claims = { iss: issuer, aud: 'gatehouse', iat: now, exp: now + 60, ...imitation.claims }
    const idToken = await new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'k' }).sign(privateKey)
    return send({ access_token: 'a', token_type: 'Bearer', expires_in: 60, id_token: idToken })
  })
  const imitation: Imitation = {
    issuer,
    claims: {},
    github: {
      user: {},
      emails: [],
      token: { access_token: 'gho_token', token_type: 'bearer', scope: 'user:email' },
    },
    tokenRequests: [],
  }
  return imitation
}

const imitation = await imitate(t)
const common = { clientId: 'gatehouse', issuer: imitation.issuer }
const secret = { clientSecret: 'the secret of the client' }
const pem = ofClient.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const endpoints = {
  authorization: `${imitation.issuer}/login`,
  token: `${imitation.issuer}/access_token`,
  userInfo: `${imitation.issuer}/user`,
  emails: `${imitation.issuer}/user/emails`,
}
const github = { id: 'github', preset: 'github', ...common, ...secret, endpoints }
const app = await build(t, {
  env: providersEnv(
    [
      { id: 'google', preset: 'google', ...common, ...secret },
      // With the issuer of the imitation in place of the tenant's.
      { id: 'microsoft', name: 'Microsoft', tenant: TENANT, ...common, ...secret },
      { id: 'apple', preset: 'apple', ...common, privateKey: pem, keyId: 'key', teamId: 'team' },
      { id: 'jwt', name: 'With a key', ...common, privateKey: pem, keyId: 'key' },
      github,
      {
        ...github,
        id: 'trusted-github',
        authoritativeFor: '*',
        endpoints: { ...endpoints, emails: `${imitation.issuer}/user/./emails` },
      },
      {
        ...github,
        id: 'plain',
        issuer: 'https://plain.example',
        endpoints: { ...endpoints, emails: undefined },
        claims: { subject: 'login', email: 'mail', emailVerified: 'mail_ok' },
        authoritativeFor: '*',
      },
    ],
    [imitation.issuer],
  ),
})

let counter = 0

const signIn = async (id: string, claims: Record<string, unknown> = {}) => {
  const { authorizationUrl, flow } = (await call(app, 'POST', `/account/sign-in/providers/${id}`, {})).json()
  const query = new URL(authorizationUrl).searchParams
  counter += 1
  const email = freshEmail()
  imitation.claims = { sub: `s${counter}`, nonce: query.get('nonce'), email, email_verified: true, ...claims }
  const url = `${query.get('redirect_uri')}?code=c&state=${query.get('state')}`
  return {
    query,
    response: await call(app, 'POST', `/account/sign-in/providers/${id}/callback`, { url, flow }),
  }
}

t.test('google confirms addresses of Gmail, and of the organization in hd', async t => {
  const confirmed = async (claims: object) =>
    (await signIn('google', { ...claims })).response.json().user.emailVerified
  t.equal(await confirmed({ email: `a${Date.now()}@gmail.com` }), true)
  t.equal(await confirmed({ email: 'ann@acme.example', hd: 'acme.example' }), true)
  t.equal(await confirmed({ email: 'bob@acme.example', hd: 'other.example' }), false)
  t.equal(await confirmed({ email: 'cid@acme.example' }), false)
  t.equal(await confirmed({ email: `b${Date.now()}@gmail.com`, email_verified: 'true' }), false)
})

t.test('L10 microsoft: a token of another tenant is 401', async t => {
  for (const tid of [ELSEWHERE, undefined, '', [TENANT], TENANT.toUpperCase()])
    globalErrorOf(t, (await signIn('microsoft', { tid })).response, 401)
  const { response } = await signIn('microsoft', { tid: TENANT, iss: imitation.issuer })
  t.equal(response.json().user.emailVerified, false, 'it confirms no address')
})

t.test('apple has a signed client secret, and responds with a form', async t => {
  const { query, response } = await signIn('apple', { email: 'x@privaterelay.appleid.com' })
  t.equal(response.json().user?.emailVerified, true, response.body)
  t.equal(query.get('response_mode'), 'form_post')
  t.equal(query.get('redirect_uri'), `${PUBLIC_URL}/account/sign-in/providers/apple/callback/form`)
  const request = imitation.tokenRequests.at(-1)
  t.equal(request?.body.get('client_id'), 'gatehouse')
  t.equal(request?.body.get('redirect_uri'), query.get('redirect_uri'))
  const [header = '', claims = '', signature = ''] = (request?.body.get('client_secret') ?? '').split('.')
  const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString())
  t.strictSame(read(header), { alg: 'ES256', kid: 'key' })
  const { iat, exp, ...others } = read(claims)
  t.strictSame(others, { iss: 'team', aud: imitation.issuer, sub: 'gatehouse' })
  t.ok(exp > iat && exp - iat <= 600)
  const key = { key: ofClient.publicKey, dsaEncoding: 'ieee-p1363' } as const
  t.ok(verify('sha256', Buffer.from(`${header}.${claims}`), key, Buffer.from(signature, 'base64url')))
})

t.test('apple: the form of the provider signs the browser in', async t => {
  const started = await call(app, 'POST', '/account/sign-in/providers/apple', {})
  const { authorizationUrl, flow } = started.json()
  const query = new URL(authorizationUrl).searchParams
  imitation.claims = {
    sub: 'of a form',
    nonce: query.get('nonce'),
    email: freshEmail(),
    email_verified: true,
  }
  const form = await app.inject({
    method: 'POST',
    url: '/account/sign-in/providers/apple/callback/form',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      origin: 'https://appleid.apple.com',
      'sec-fetch-site': 'cross-site',
    },
    payload: new URLSearchParams({
      code: 'c',
      state: query.get('state') ?? '',
      user: '{"name":{}}',
    }).toString(),
  })
  t.equal(form.statusCode, 303)
  const next = new URL(
    String(form.headers.location),
    `${PUBLIC_URL}/account/sign-in/providers/apple/callback/form`,
  )
  const response = await app.inject({
    url: next.pathname + next.search,
    headers: { cookie: `OIDC_FLOW_apple=${flow}` },
  })
  t.equal(response.statusCode, 303)
  t.match(String(response.headers['set-cookie']), /ACCESS_TOKEN=/)
})

t.test('a code comes to the provider as it is, in a browser too', async t => {
  const { authorizationUrl, flow } = (await call(app, 'POST', '/account/sign-in/providers/google', {})).json()
  const query = new URL(authorizationUrl).searchParams
  imitation.claims = { sub: 'of a code', nonce: query.get('nonce'), email: freshEmail() }
  const response = await app.inject({
    url: `/account/sign-in/providers/google/callback?state=${query.get('state')}&code=4/0A?b%26c+d`,
    headers: { cookie: `OIDC_FLOW_google=${flow}` },
  })
  t.equal(response.statusCode, 303)
  t.equal(imitation.tokenRequests.at(-1)?.body.get('code'), '4/0A?b&c d')
})

t.test('private_key_jwt: the client proves itself with a signed assertion', async t => {
  t.equal((await signIn('jwt')).response.statusCode, 200)
  const request = imitation.tokenRequests.at(-1)
  t.equal(
    request?.body.get('client_assertion_type'),
    'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
  )
  const [header = '', claims = '', signature = ''] = (request?.body.get('client_assertion') ?? '').split('.')
  t.match(JSON.parse(Buffer.from(header, 'base64url').toString()), { alg: 'ES256', kid: 'key' })
  const key = { key: ofClient.publicKey, dsaEncoding: 'ieee-p1363' } as const
  t.ok(verify('sha256', Buffer.from(`${header}.${claims}`), key, Buffer.from(signature, 'base64url')))
})

t.test('the secret goes into the Authorization header by default (client-secret-basic)', async t => {
  await signIn('google')
  t.match(imitation.tokenRequests.at(-1)?.authorization, /^Basic /)
  t.notOk(imitation.tokenRequests.at(-1)?.body.has('client_secret'))
})

t.test(
  'github signs in by the number of the account, with the primary e-mail (userinfo-bearer-header)',
  async t => {
    const email = freshEmail()
    imitation.github.user = { id: 583231, login: 'octocat', name: 'Mona Cat', email: 'public@example.com' }
    imitation.github.emails = [
      { email: 'other@example.com', primary: false, verified: true },
      { email, primary: true, verified: true },
    ]
    const { query, response } = await signIn('trusted-github')
    t.match(response.json().user, { email, emailVerified: true, firstName: 'Mona Cat' }, response.body)
    t.notOk(query.has('nonce'))
    t.ok(query.has('code_challenge'))
    const { body, authorization } = imitation.tokenRequests.at(-1) ?? {}
    t.equal(body?.get('client_secret'), secret.clientSecret, 'the secret is in the body')
    t.notOk(authorization)
    imitation.github.user = { id: 583231, login: 'renamed' }
    t.equal((await signIn('github')).response.json().user.id, response.json().user.id)
  },
)

t.test('github is not authoritative for addresses, and an unverified one counts for nothing', async t => {
  imitation.github.user = { id: 1, login: 'one' }
  imitation.github.emails = [{ email: freshEmail(), primary: true, verified: true }]
  t.equal((await signIn('github')).response.json().user.emailVerified, false)
  imitation.github.user = { id: 2, login: 'two' }
  imitation.github.emails = [{ email: freshEmail(), primary: true, verified: false }]
  t.equal((await signIn('trusted-github')).response.json().user.emailVerified, false)
  imitation.github.user = { id: 3, login: 'three' }
  for (const emails of [[], {}, null, [null], [{ primary: true }]]) {
    imitation.github.emails = emails
    globalErrorOf(t, (await signIn('trusted-github')).response, 403)
  }
})

t.test('github: accounts without a number, and errors of the token endpoint, are 401', async t => {
  for (const id of [undefined, '', null, {}, 1.5, true]) {
    imitation.github.user = { id, login: 'x' }
    globalErrorOf(t, (await signIn('github')).response, 401)
  }
  imitation.github.user = { id: 9 }
  const { token } = imitation.github
  // GitHub responds with 200.
  imitation.github.token = { error: 'bad_verification_code', error_description: 'The code is incorrect' }
  globalErrorOf(t, (await signIn('github')).response, 401)
  imitation.github.token = { ...token, access_token: 'wrong' }
  errorsOf(t, (await signIn('github')).response, 503)
  imitation.github.token = token
})

t.test('oauth2 with names of claims of its own', async t => {
  const email = freshEmail()
  imitation.github.user = { login: 'ann', mail: email, mail_ok: true }
  t.match((await signIn('plain')).response.json().user, { email, emailVerified: true })
})
