/** A real OpenID Connect provider in the process of the test, behind a proxy that can change each of its responses. */
/// <reference path="./oidc-provider.d.ts" />
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import { SignJWT } from 'jose'
import { Provider } from 'oidc-provider'
import { call } from './account-routes.ts'
import { bearer, type Context } from './build.ts'

export const PUBLIC_URL = 'https://gatehouse.test'
export const CLIENT_ID = 'gatehouse'
export const CLIENT_SECRET = 'the secret of the client, which no log may have'

const KEY_ID = 'key-1'

/** Of all providers of a process: making one takes a tenth of a second. */
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })

export type Claims = Readonly<Record<string, unknown>>

/** The claims in a token. */
export const payloadOf = (token: string): Claims =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())

/** A response of the provider, on its way to the service. */
export interface ProxiedResponse {
  status: number
  headers: Record<string, string>
  body: string
}

/** @param path without query. */
type Change = (path: string, response: ProxiedResponse) => void

/** The claims of the user who signs in at the provider. */
export type Account = Claims & { readonly sub: string }

/** Serves HTTP until the test ends. @returns the origin. */
export const serve = async (t: Context, listener: RequestListener): Promise<string> => {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(async () => {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const bodyOf = async (message: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = []
  for await (const chunk of message) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** Sends a request on, with its `Host`. */
const forward = async (target: string, message: IncomingMessage): Promise<ProxiedResponse> => {
  const body = await bodyOf(message)
  const { method = 'GET', headers } = message
  const outgoing = request(new URL(message.url ?? '/', target), {
    method,
    headers: { ...headers, 'accept-encoding': 'identity' },
    agent: false,
  })
  const responded = once(outgoing, 'response')
  outgoing.end(body)
  const [response] = (await responded) as [IncomingMessage]
  const text = (await bodyOf(response)).toString()
  const copied = Object.entries(response.headers).filter(
    ([name]) => !['content-length', 'transfer-encoding', 'connection', 'set-cookie'].includes(name),
  )
  const cookies = response.headers['set-cookie'] ?? []
  return {
    status: response.statusCode ?? 0,
    headers: {
      ...Object.fromEntries(copied.map(([name, value]) => [name, String(value)])),
      'set-cookie': cookies.join('\n'),
    },
    body: text,
  }
}

const cookiesIn = (text: string): readonly string[] => (text === '' ? [] : text.split('\n'))

export interface TestProvider {
  readonly issuer: string
  readonly privateKey: KeyObject
  /** Who signs in from now on. */
  account: Account
  /** Changes responses until it is `null` again. */
  change: Change | null
  /** Changes ID tokens of the token endpoint, likewise. @returns a token, or the claims of one with the key of the provider. */
  changeToken: ((claims: Claims, token: string) => Claims | string | Promise<Claims | string>) | null
  /** The public key, as a forger may use it. */
  readonly publicPem: string
  readonly secret: string
  /** `POST /token` and so on, of all requests so far. */
  readonly requests: string[]
  /** An entry of OIDC_PROVIDERS. */
  entry(further?: object): object
  /** A browser signs in at the provider. @returns the URL of the callback. */
  authorize(authorizationUrl: string): Promise<string>
  /** An ID token, by default with the key of the provider. @param signer `kid`: `null` for a token that names no key. */
  sign(claims: Claims, signer?: { alg?: string; kid?: string | null; key?: KeyObject }): Promise<string>
}

let counter = 0

/** A user at a provider whom no other test uses. */
export const freshAccount = (further: object = {}): Account => {
  counter += 1
  const sub = `subject-${process.pid}-${counter}`
  return { sub, email: `${sub}@example.com`, email_verified: true, ...further }
}

/** @param ids in the settings of the service under which the provider is known. @param discovery changes of its metadata. */
export const startProvider = async (
  t: Context,
  {
    ids = ['test'],
    publicUrl = PUBLIC_URL,
    discovery = {},
  }: { ids?: readonly string[]; publicUrl?: string; discovery?: object } = {},
): Promise<TestProvider> => {
  let handle: RequestListener = (_request, response) => void response.writeHead(503).end()
  const inner = await serve(t, (incoming, response) => handle(incoming, response))
  const issuer = await serve(t, async (incoming, response) => {
    const path = (incoming.url ?? '').split('?', 1)[0] ?? ''
    testProvider.requests.push(`${incoming.method} ${path}`)
    try {
      const forwarded = await forward(inner, incoming)
      testProvider.change?.(path, forwarded)
      const { changeToken } = testProvider
      if (changeToken !== null && path === '/token') {
        const { id_token: token, ...body } = JSON.parse(forwarded.body)
        const changed = token && (await changeToken(payloadOf(token), token))
        const id_token = typeof changed === 'object' ? await testProvider.sign(changed) : changed
        forwarded.body = JSON.stringify({ ...body, id_token })
      }
      const { 'set-cookie': cookies = '', ...headers } = forwarded.headers
      response.writeHead(forwarded.status, {
        ...headers,
        ...(cookies !== '' && { 'set-cookie': [...cookiesIn(cookies)] }),
      })
      response.end(forwarded.body)
    } catch {
      response.destroy()
    }
  })
  const provider: Provider = new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT_ID,
        client_secret: CLIENT_SECRET,
        redirect_uris: ids.map(id => `${publicUrl}/account/sign-in/providers/${id}/callback`),
        application_type: 'web',
      },
    ],
    cookies: { keys: ['a key of the test provider'] },
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid: KEY_ID, use: 'sig', alg: 'RS256' }] },
    claims: {
      openid: ['sub'],
      email: ['email', 'email_verified'],
      profile: [
        'name',
        'given_name',
        'family_name',
        'locale',
        'roles',
        'appMetadata',
        'emailVerified',
        'disabled',
        'id',
      ],
    },
    conformIdTokenClaims: false,
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_context: object, { uid }: { uid: string }) => `/interaction/${uid}` },
    pkce: { required: () => true },
    ttl: {
      AccessToken: 600,
      AuthorizationCode: 60,
      Grant: 600,
      IdToken: 600,
      Interaction: 600,
      Session: 600,
    },
    findAccount: (_context: object, sub: string) => ({
      accountId: sub,
      claims: () => (testProvider.account.sub === sub ? testProvider.account : { sub }),
    }),
    async loadExistingGrant({
      oidc,
    }: {
      oidc: { client: { clientId: string }; session: { accountId: string }; provider: Provider }
    }) {
      const grant = new oidc.provider.Grant({
        clientId: oidc.client.clientId,
        accountId: oidc.session.accountId,
      })
      grant.addOIDCScope('openid email profile')
      await grant.save()
      return grant
    },
    discovery,
  })
  const callback = provider.callback()
  handle = (incoming, response) => {
    const isInteraction = incoming.url?.startsWith('/interaction/')
    void (isInteraction
      ? provider.interactionFinished(incoming, response, { login: { accountId: testProvider.account.sub } })
      : callback(incoming, response))
  }
  const testProvider: TestProvider = {
    issuer,
    privateKey,
    account: freshAccount(),
    change: null,
    changeToken: null,
    publicPem: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    secret: CLIENT_SECRET,
    requests: [],
    entry: (further = {}) => ({
      id: 'test',
      name: 'Test Provider',
      issuer,
      clientId: CLIENT_ID,
      clientSecret: CLIENT_SECRET,
      authoritativeFor: '*',
      ...further,
    }),
    async authorize(authorizationUrl) {
      const cookies = new Map<string, string>()
      let url = authorizationUrl
      for (let step = 0; step < 10; step += 1) {
        const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
        const response = await fetch(url, { redirect: 'manual', headers: { cookie } })
        for (const set of response.headers.getSetCookie()) {
          const [name = '', value = ''] = (set.split(';', 1)[0] ?? '').split('=')
          cookies.set(name, value)
        }
        const location = response.headers.get('location')
        if (location === null)
          throw new Error(`the provider responded with ${response.status}: ${await response.text()}`)
        url = new URL(location, url).href
        if (!url.startsWith(issuer)) return url
      }
      throw new Error('the provider redirects without end')
    },
    sign: (claims, { alg = 'RS256', kid = KEY_ID, key = privateKey } = {}) =>
      new SignJWT(claims).setProtectedHeader({ alg, ...(kid !== null && { kid }) }).sign(key),
  }
  return testProvider
}

/** The environment of a service with these providers. */
export const providersEnv = (
  providers: readonly object[],
  issuers: readonly string[],
): Record<string, string> => ({
  PUBLIC_URL,
  OIDC_PROVIDERS: JSON.stringify(providers),
  OIDC_ALLOWED_HOSTS: issuers.map(issuer => new URL(issuer).host).join(','),
  ENCRYPTION_KEY: 'test-encryption-key-0123456789abcdef0123456789',
})

/** A program that signs in by a provider. */
export const programOf = (app: FastifyInstance, provider: TestProvider, id = 'test') => {
  const start = async () => {
    const response = await call(app, 'POST', `/account/sign-in/providers/${id}`, {})
    if (response.statusCode !== 201)
      throw new Error(`the start returned ${response.statusCode}: ${response.body}`)
    return response.json() as { authorizationUrl: string; flow: string }
  }
  const finish = (payload: object, headers: Record<string, string> = {}): Promise<LightMyRequestResponse> =>
    call(app, 'POST', `/account/sign-in/providers/${id}/callback`, payload, headers)
  /** @returns a callback that has arrived at the program. */
  const callback = async () => {
    const { authorizationUrl, flow } = await start()
    return { url: await provider.authorize(authorizationUrl), flow }
  }
  return {
    start,
    finish,
    callback,
    signIn: async (further: object = {}) => finish({ ...(await callback()), ...further }),
    /** Links the account of the provider in a session. */
    async link(token: string) {
      const started = await call(app, 'POST', '/account/identities', { provider: id }, bearer(token))
      if (started.statusCode !== 201) return started
      const { authorizationUrl, flow } = started.json()
      return finish({ url: await provider.authorize(authorizationUrl), flow }, bearer(token))
    },
  }
}
