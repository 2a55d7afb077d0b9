/** The authorization server over HTTP. */
import { generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import type { Test } from 'tap'
import { asAdmin, type Context } from './build.ts'
import type { Engine } from './engines.ts'
import { newPem } from './token-signers.ts'

export const ISSUER = 'https://id.example.test'

const PRIVATE_KEY = newPem('EdDSA')

/** An RSA key as PKCS#8 PEM. */
export const newRsaPem = (modulusLength = 2_048): string =>
  generateKeyPairSync('rsa', { modulusLength }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

/** Settings of a service that is an authorization server. Instances on one database share them. */
export const OAUTH_ENV = {
  OAUTH: 'on',
  JWT_ALGORITHM: 'EdDSA',
  JWT_PRIVATE_KEY: PRIVATE_KEY,
  PUBLIC_URL: ISSUER,
  OAUTH_RSA_KEY: newRsaPem(),
  ENCRYPTION_KEY: 'test-encryption-key-0123456789abcdef0123456789',
}

export const buildOAuth = (
  engine: Engine,
  t: Context,
  { env = {}, ...options }: Parameters<Engine['build']>[1] = {},
): Promise<FastifyInstance> => engine.build(t, { ...options, env: { ...OAUTH_ENV, ...env } })

export const postClient = (
  app: FastifyInstance,
  payload: object,
  headers: Record<string, string> = asAdmin,
): Promise<LightMyRequestResponse> => app.inject({ method: 'POST', url: '/admin/clients', headers, payload })

export interface RegisteredClient {
  readonly id: string
  /** `null` for a client without one. */
  readonly secret: string | null
}

/** Registers a client. @throws {Error} if it is refused. */
export const registerClient = async (
  app: FastifyInstance,
  metadata: object = {},
): Promise<RegisteredClient> => {
  const response = await postClient(app, { name: 'A client', ...metadata })
  if (response.statusCode !== 201) throw new Error(`${response.statusCode}: ${response.body}`)
  const { id, secret } = response.json()
  return { id, secret }
}

/** A program with a token of its own. */
export const registerMachine = (
  app: FastifyInstance,
  metadata: object = { adminScopes: ['users:read'] },
): Promise<RegisteredClient> => registerClient(app, { grantTypes: ['client_credentials'], ...metadata })

export const basic = ({ id, secret }: RegisteredClient): { authorization: string } => ({
  authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
})

type FormParameters = Readonly<Record<string, string>> | readonly (readonly [string, string])[]

/** Sends a form to an endpoint. */
export const postForm = (
  app: FastifyInstance,
  path: string,
  parameters: FormParameters,
  headers: Record<string, string> = {},
): Promise<LightMyRequestResponse> =>
  app.inject({
    method: 'POST',
    url: `/oauth/${path}`,
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    payload: new URLSearchParams(parameters as Record<string, string>).toString(),
  })

export const requestToken = (
  app: FastifyInstance,
  parameters: FormParameters,
  headers: Record<string, string> = {},
): Promise<LightMyRequestResponse> => postForm(app, 'token', parameters, headers)

/** The response to a client that asks for a token of its own. */
export const requestOwnToken = (
  app: FastifyInstance,
  client: RegisteredClient,
  parameters: Readonly<Record<string, string>> = {},
): Promise<LightMyRequestResponse> =>
  requestToken(app, { grant_type: 'client_credentials', ...parameters }, basic(client))

/** A token of a client's own. @throws {Error} if it is refused. */
export const ownToken = async (
  app: FastifyInstance,
  client: RegisteredClient,
  parameters: Readonly<Record<string, string>> = {},
): Promise<string> => {
  const response = await requestOwnToken(app, client, parameters)
  if (response.statusCode !== 200) throw new Error(`${response.statusCode}: ${response.body}`)
  return response.json().access_token
}

export const claimsOf = (token: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())

/** The status of `GET /admin/users` with a token as admin key. */
export const adminStatus = async (app: FastifyInstance, token: string): Promise<number> =>
  (await app.inject({ url: '/admin/users', headers: { 'x-admin-key': token } })).statusCode

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** The key of a client that authenticates with `private_key_jwt`. */
export const clientKey = () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: randomUUID() }
  return { jwk, privateKey, assert: (claims: object) => signedWith(privateKey, jwk.kid, claims) }
}

const signedWith = (key: KeyObject, kid: string, claims: object): string => {
  const text = `${encoded({ alg: 'EdDSA', kid })}.${encoded(claims)}`
  return `${text}.${sign(null, Buffer.from(text), key).toString('base64url')}`
}

export const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

/** Claims of a valid assertion. */
export const assertionClaims = (clientId: string, now = Date.now()) => ({
  ...{ iss: clientId, sub: clientId, aud: ISSUER, jti: randomUUID() },
  exp: Math.floor(now / 1_000) + 60,
})

/** Checks an error in both shapes: the name of the RFC, and messages for exactly these fields. */
export const oauthErrorAt = (
  t: Pick<Test, 'equal' | 'match' | 'strictSame'>,
  response: LightMyRequestResponse,
  status: number,
  error: string,
  fields: readonly string[],
  title = fields.join(', '),
): void => {
  t.equal(response.statusCode, status, title)
  const { errors, ...members } = response.json()
  t.match(members, { error, error_description: /^[ !#-[\]-~]+$/ }, title)
  t.strictSame(Object.keys(errors).sort(), [...fields].sort(), title)
}
