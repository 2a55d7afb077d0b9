/** The authorization server with unmodified clients of others: openid-client and oauth4webapi. */

import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import * as oauth from 'oauth4webapi'
import * as openid from 'openid-client'
import t from 'tap'
import { signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { adminStatus, buildOAuth, clientKey, registerClient, registerMachine } from '../support/oauth.ts'
import { connectDevice, TOOL } from '../support/oauth-devices.ts'
import { CALLBACK, decide, openConsent, targetOf } from '../support/oauth-flow.ts'

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise(resolve => server.close(resolve))
  return port
}

await onEnginesOfRun(t, async (t, engine) => {
  const service = async (t: Parameters<typeof buildOAuth>[1]) => {
    const port = await freePort()
    const issuer = `http://127.0.0.1:${port}`
    const app = await buildOAuth(engine, t, { env: { PUBLIC_URL: issuer } })
    await app.listen({ host: '127.0.0.1', port })
    const discover = (
      id: string,
      authentication: openid.ClientAuth,
      metadata: Partial<openid.ClientMetadata> = {},
    ) =>
      openid.discovery(new URL(issuer), id, metadata, authentication, {
        algorithm: 'oauth2',
        execute: [openid.allowInsecureRequests],
      })
    return { app, issuer, discover }
  }

  t.test('client credentials, introspection and revocation', async t => {
    const { app, discover } = await service(t)
    const { id, secret } = await registerMachine(app)
    const config = await discover(id, openid.ClientSecretBasic(secret ?? ''))
    const { access_token: token } = await openid.clientCredentialsGrant(config)
    t.equal(await adminStatus(app, token), 200)
    t.match(await openid.tokenIntrospection(config, token), { active: true, client_id: id })
    await openid.tokenRevocation(config, token)
    t.equal(await adminStatus(app, token), 401)
    t.strictSame(await openid.tokenIntrospection(config, token), { active: false })
  })

  t.test('private_key_jwt', async t => {
    const { app, discover } = await service(t)
    const { jwk, privateKey } = clientKey()
    const metadata = { authMethod: 'private_key_jwt', jwks: { keys: [jwk] }, adminScopes: ['users:read'] }
    const { id } = await registerMachine(app, metadata)
    const pkcs8 = privateKey.export({ type: 'pkcs8', format: 'der' })
    const key = await crypto.subtle.importKey('pkcs8', new Uint8Array(pkcs8), 'Ed25519', false, ['sign'])
    const config = await discover(id, openid.PrivateKeyJwt({ key, kid: jwk.kid }))
    const { access_token: token } = await openid.clientCredentialsGrant(config)
    t.equal(await adminStatus(app, token), 200)
  })

  t.test('the code flow with PKCE, and refresh', async t => {
    const { app, discover } = await service(t)
    const scopes = ['account:read', 'offline_access']
    const { id } = await registerClient(app, { authMethod: 'none', redirectUris: [CALLBACK], scopes })
    const { token } = await signUp(app)
    const config = await discover(id, openid.None())
    const verifier = openid.randomPKCECodeVerifier()
    const state = openid.randomState()
    const url = openid.buildAuthorizationUrl(config, {
      ...{ redirect_uri: CALLBACK, scope: scopes.join(' '), state },
      ...{ code_challenge: await openid.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256' },
    })
    const begun = await app.inject({ url: url.pathname + url.search, headers: { accept: 'text/html' } })
    const request = String(begun.headers.location).split('request=')[1] ?? ''
    t.equal((await openConsent(app, request, token)).statusCode, 200)
    const callback = targetOf(await decide(app, request, 'allow', token))
    const checks = { pkceCodeVerifier: verifier, expectedState: state }
    const tokens = await openid.authorizationCodeGrant(config, callback, checks)
    t.equal(tokens.scope, scopes.join(' '))
    const account = await openid.fetchProtectedResource(
      config,
      tokens.access_token,
      new URL('/account', url),
      'GET',
    )
    t.equal(account.status, 200)
    const refreshed = await openid.refreshTokenGrant(config, tokens.refresh_token ?? '')
    t.equal(refreshed.scope, scopes.join(' '))
  })

  t.test('device authorization', async t => {
    const { app, discover, issuer } = await service(t)
    const { id } = await registerClient(app, TOOL)
    const { token, email } = await signUp(app)
    const config = await discover(id, openid.None())
    const device = await openid.initiateDeviceAuthorization(config, { scope: 'account:read offline_access' })
    t.equal(device.verification_uri, `${issuer}/device`)
    await connectDevice(app, { userCode: device.user_code }, token)
    const tokens = await openid.pollDeviceAuthorizationGrant(config, { ...device, interval: 0 })
    const url = new URL('/account', issuer)
    const account = await openid.fetchProtectedResource(config, tokens.access_token, url, 'GET')
    t.match(await account.json(), { email })
    const refreshed = await openid.refreshTokenGrant(config, tokens.refresh_token ?? '')
    t.equal(refreshed.scope, 'account:read offline_access')
  })

  for (const [kind, metadata] of Object.entries({
    confidential: { scopes: ['openid', 'account:read'] },
    public: { scopes: ['openid', 'account:read'], authMethod: 'none' },
  }))
    t.test(`a pushed request and DPoP, of a ${kind} client`, async t => {
      const { app, discover, issuer } = await service(t)
      const client = await registerClient(app, { ...metadata, redirectUris: [CALLBACK] })
      const { token, id: userId } = await signUp(app)
      const authentication = client.secret === null ? openid.None() : openid.ClientSecretBasic(client.secret)
      const config = await discover(client.id, authentication)
      const DPoP = openid.getDPoPHandle(config, await openid.randomDPoPKeyPair())
      const verifier = openid.randomPKCECodeVerifier()
      const url = await openid.buildAuthorizationUrlWithPAR(
        config,
        {
          ...{ redirect_uri: CALLBACK, scope: 'openid account:read' },
          code_challenge: await openid.calculatePKCECodeChallenge(verifier),
          code_challenge_method: 'S256',
        },
        { DPoP },
      )
      const begun = await app.inject({ url: url.pathname + url.search, headers: { accept: 'text/html' } })
      const request = String(begun.headers.location).split('request=')[1] ?? ''
      const callback = targetOf(await decide(app, request, 'allow', token))
      const checks = { pkceCodeVerifier: verifier, idTokenExpected: true }
      const tokens = await openid.authorizationCodeGrant(config, callback, checks, {}, { DPoP })
      t.equal(tokens.token_type, 'dpop')
      const account = await openid.fetchProtectedResource(
        ...([config, tokens.access_token, new URL('/account', issuer), 'GET'] as const),
        ...([null, undefined, { DPoP }] as const),
      )
      t.equal(account.status, 200)
      t.match(await openid.fetchUserInfo(config, tokens.access_token, userId, { DPoP }), { sub: userId })
      const refreshed = await openid.refreshTokenGrant(config, tokens.refresh_token ?? '', {}, { DPoP })
      t.equal(refreshed.token_type, 'dpop')
    })

  t.test('OpenID Connect: the ID token and UserInfo, with each algorithm', async t => {
    const { app, discover, issuer } = await service(t)
    const scopes = ['openid', 'profile', 'email']
    const { token, id: userId, email } = await signUp(app, { firstName: 'Ann', lastName: 'Keeper' })
    for (const idTokenAlgorithm of ['RS256', 'EdDSA'] as const) {
      const client = await registerClient(app, { redirectUris: [CALLBACK], scopes, idTokenAlgorithm })
      const config = await discover(client.id, openid.ClientSecretBasic(client.secret ?? ''), {
        id_token_signed_response_alg: idTokenAlgorithm,
      })
      openid.enableNonRepudiationChecks(config)
      const [verifier, nonce] = [openid.randomPKCECodeVerifier(), openid.randomNonce()]
      const url = openid.buildAuthorizationUrl(config, {
        ...{ redirect_uri: CALLBACK, scope: scopes.join(' '), nonce, max_age: '600' },
        ...{
          code_challenge: await openid.calculatePKCECodeChallenge(verifier),
          code_challenge_method: 'S256',
        },
      })
      const begun = await app.inject({ url: url.pathname + url.search, headers: { accept: 'text/html' } })
      const request = String(begun.headers.location).split('request=')[1] ?? ''
      const callback = targetOf(await decide(app, request, 'allow', token))
      const tokens = await openid.authorizationCodeGrant(config, callback, {
        ...{ pkceCodeVerifier: verifier, expectedNonce: nonce, maxAge: 600, idTokenExpected: true },
      })
      const claims = tokens.claims()
      const expected = { sub: userId, given_name: 'Ann', family_name: 'Keeper', name: 'Ann Keeper', email }
      t.match(claims, { ...expected, iss: issuer, aud: client.id, nonce, amr: ['pwd'], at_hash: String })
      t.match(await openid.fetchUserInfo(config, tokens.access_token, userId), expected)
    }
  })

  t.test('oauth4webapi: the code flow of a public client with OpenID Connect', async t => {
    const { app, issuer } = await service(t)
    const scopes = ['openid', 'email']
    const { id: client_id } = await registerClient(app, {
      authMethod: 'none',
      redirectUris: [CALLBACK],
      scopes,
    })
    const { token, email, id: userId } = await signUp(app)
    const insecure = { [oauth.allowInsecureRequests]: true }
    const discovered = await oauth.discoveryRequest(new URL(issuer), insecure)
    const server = await oauth.processDiscoveryResponse(new URL(issuer), discovered)
    const client: oauth.Client = { client_id }
    const verifier = oauth.generateRandomCodeVerifier()
    const nonce = oauth.generateRandomNonce()
    const query = new URLSearchParams({
      ...{ client_id, redirect_uri: CALLBACK, response_type: 'code', scope: scopes.join(' '), nonce },
      ...{ code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256' },
    })
    const begun = await app.inject({ url: `/oauth/authorize?${query}`, headers: { accept: 'text/html' } })
    const request = String(begun.headers.location).split('request=')[1] ?? ''
    const callback = targetOf(await decide(app, request, 'allow', token))
    const parameters = oauth.validateAuthResponse(server, client, callback, oauth.expectNoState)
    const response = await oauth.authorizationCodeGrantRequest(
      ...([server, client, oauth.None(), parameters, CALLBACK, verifier, insecure] as const),
    )
    const result = await oauth.processAuthorizationCodeResponse(server, client, response, {
      expectedNonce: nonce,
      requireIdToken: true,
    })
    const info = await oauth.userInfoRequest(server, client, result.access_token, insecure)
    t.match(await oauth.processUserInfoResponse(server, client, userId, info), {
      email,
      email_verified: false,
    })
  })
})
