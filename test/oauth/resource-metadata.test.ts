/** Metadata of protected resources, and the challenges that name them (RFC 9728). */
import t from 'tap'
import { asAdmin, bearer, build, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import {
  buildOAuth,
  claimsOf,
  ISSUER,
  OAUTH_ENV,
  registerClient,
  registerMachine,
  requestOwnToken,
} from '../support/oauth.ts'
import { CALLBACK, newTokens, refresh, tokensIn } from '../support/oauth-flow.ts'

const URL_OF_METADATA = `${ISSUER}/.well-known/oauth-protected-resource`

await onEnginesOfRun(t, async (t, engine) => {
  t.test('a 401 names the metadata of the service', async t => {
    const app = await buildOAuth(engine, t)
    const challenge = async (headers = {}) => {
      const response = await app.inject({ url: '/account', headers })
      t.equal(response.statusCode, 401)
      return response.headers['www-authenticate']
    }
    t.equal(await challenge(), `Bearer resource_metadata="${URL_OF_METADATA}"`)
    t.equal(
      await challenge(bearer('x')),
      `Bearer error="invalid_token", resource_metadata="${URL_OF_METADATA}"`,
    )
    const metadata = (await app.inject(new URL(URL_OF_METADATA).pathname)).json()
    t.match(metadata, {
      resource: ISSUER,
      authorization_servers: [ISSUER],
      bearer_methods_supported: ['header'],
      jwks_uri: `${ISSUER}/.well-known/jwks.json`,
    })
    t.ok(metadata.scopes_supported.includes('account:read'))
  })

  t.test('resources of the same origin have metadata at their path', async t => {
    const app = await buildOAuth(engine, t)
    const identifier = `${ISSUER}/apis/reports`
    const payload = { identifier, name: 'Reports', scopes: { 'reports:read': 'Read' } }
    await app.inject({ method: 'POST', url: '/admin/resources', headers: asAdmin, payload })
    const get = (path: string) => app.inject(`/.well-known/oauth-protected-resource${path}`)
    const found = await get('/apis/reports')
    t.match(found.json(), {
      resource: identifier,
      resource_name: 'Reports',
      scopes_supported: ['reports:read'],
    })
    t.equal((await get('/apis/other')).statusCode, 404)
    t.equal((await get('/apis')).statusCode, 404)
  })

  t.test('resource names the service by PUBLIC_URL, too', async t => {
    const app = await buildOAuth(engine, t)
    const client = await registerClient(app, {
      redirectUris: [CALLBACK],
      scopes: ['account:read', 'offline_access'],
    })
    const { token } = await signUp(app)
    for (const resource of [ISSUER, `${ISSUER}/`]) {
      const { accessToken, refreshToken } = await newTokens(app, client, token, { resource })
      t.equal(claimsOf(accessToken).aud, 'gatehouse')
      t.equal(
        claimsOf(tokensIn(await refresh(app, client, refreshToken, { resource })).accessToken).aud,
        'gatehouse',
      )
      const payload = { identifier: resource, name: 'The service' }
      const taken = await app.inject({ method: 'POST', url: '/admin/resources', headers: asAdmin, payload })
      t.equal(taken.statusCode, 400)
    }
    const machine = await registerMachine(app)
    t.equal((await requestOwnToken(app, machine, { resource: ISSUER })).statusCode, 200)
    const payload = {
      identifier: 'https://api.example.test',
      name: 'Api',
      scopes: { 'account:read': 'Read' },
    }
    await app.inject({ method: 'POST', url: '/admin/resources', headers: asAdmin, payload })
    const granted = await newTokens(app, client, token, { resource: payload.identifier })
    const outside = await refresh(app, client, granted.refreshToken, { resource: ISSUER })
    t.match(outside.json(), { error: 'invalid_target' }, 'not that of the grant')
  })
})

t.test('with a path in PUBLIC_URL', async t => {
  const app = await build(t, { env: { ...OAUTH_ENV, PUBLIC_URL: `${ISSUER}/auth` } })
  for (const path of ['', '/auth'])
    t.match((await app.inject(`/.well-known/oauth-protected-resource${path}`)).json(), {
      resource: `${ISSUER}/auth`,
    })
})

t.test('with OAUTH=off there are none', async t => {
  const app = await build(t, { env: { ...OAUTH_ENV, OAUTH: 'off' } })
  t.equal((await app.inject('/.well-known/oauth-protected-resource')).statusCode, 404)
  for (const [headers, expected] of [
    [{}, 'Bearer'],
    [bearer('x'), 'Bearer error="invalid_token"'],
  ] as const)
    t.equal((await app.inject({ url: '/account', headers })).headers['www-authenticate'], expected)
})
