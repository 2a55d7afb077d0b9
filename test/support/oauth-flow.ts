/** The code flow, as a browser and a client go through it. */
import { createHash, randomBytes } from 'node:crypto'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import { cookie } from './build.ts'
import { basic, type RegisteredClient, requestToken } from './oauth.ts'

export const CALLBACK = 'https://app.example.test/callback'

/** Metadata of a client without a secret. */
export const PUBLIC = {
  authMethod: 'none',
  redirectUris: [CALLBACK],
  scopes: ['account:read', 'offline_access'],
}

export const challengeOf = (verifier: string): string =>
  createHash('sha256').update(verifier).digest('base64url')

export const newVerifier = (): string => randomBytes(32).toString('base64url')

export type Query = Readonly<Record<string, string>>

export const authorize = (
  app: FastifyInstance,
  query: Query | URLSearchParams,
  token?: string,
): Promise<LightMyRequestResponse> =>
  app.inject({
    url: `/oauth/authorize?${new URLSearchParams(query as Query)}`,
    headers: { accept: 'text/html', ...(token !== undefined && cookie(token)) },
  })

/** The value of `request` that a redirect of the service names. */
export const requestIn = (response: LightMyRequestResponse): string =>
  new URL(String(response.headers.location), 'http://service.test/oauth/authorize').searchParams.get(
    'request',
  ) ?? ''

export const openConsent = (
  app: FastifyInstance,
  request: string,
  token?: string,
): Promise<LightMyRequestResponse> =>
  app.inject({
    url: `/oauth/consent?request=${request}`,
    headers: { accept: 'text/html', ...(token !== undefined && cookie(token)) },
  })

export const decide = (
  app: FastifyInstance,
  request: string,
  decision: 'allow' | 'deny',
  token?: string,
): Promise<LightMyRequestResponse> =>
  app.inject({
    method: 'POST',
    url: '/oauth/consent',
    headers: {
      ...{ accept: 'text/html', 'content-type': 'application/x-www-form-urlencoded' },
      ...(token !== undefined && cookie(token)),
    },
    payload: new URLSearchParams({ request, decision }).toString(),
  })

/** The URL that a page opens, or that a response redirects to. */
export const targetOf = ({ headers, body }: LightMyRequestResponse): URL => {
  const opened = /http-equiv="refresh" content="0; url=([^"]+)"/.exec(body)?.[1]?.replaceAll('&amp;', '&')
  return new URL(opened ?? String(headers.location))
}

export interface Authorization {
  readonly code: string
  readonly verifier: string
}

/** A code for a signed-in user, who allows what the client asks for. @throws {Error} if there is none. */
export const newCode = async (
  app: FastifyInstance,
  client: RegisteredClient,
  token: string,
  query: Query = {},
): Promise<Authorization> => {
  const verifier = newVerifier()
  const begun = await authorize(
    app,
    {
      ...{ client_id: client.id, response_type: 'code', redirect_uri: CALLBACK },
      ...{ code_challenge: challengeOf(verifier), code_challenge_method: 'S256', ...query },
    },
    token,
  )
  const opened = await openConsent(app, requestIn(begun), token)
  const response = opened.statusCode === 303 ? opened : await decide(app, requestIn(begun), 'allow', token)
  const code = targetOf(response).searchParams.get('code')
  if (code === null) throw new Error(`${response.statusCode}: ${response.body}`)
  return { code, verifier }
}

export const redeem = (
  app: FastifyInstance,
  client: RegisteredClient,
  { code, verifier }: Authorization,
  parameters: Query = {},
): Promise<LightMyRequestResponse> =>
  tokenRequest(app, client, {
    ...{ grant_type: 'authorization_code', code, code_verifier: verifier, redirect_uri: CALLBACK },
    ...parameters,
  })

export const refresh = (
  app: FastifyInstance,
  client: RegisteredClient,
  token: string,
  parameters: Query = {},
): Promise<LightMyRequestResponse> =>
  tokenRequest(app, client, { grant_type: 'refresh_token', refresh_token: token, ...parameters })

/** As the client authenticates: with its secret, if it has one. */
const tokenRequest = (app: FastifyInstance, client: RegisteredClient, parameters: Query) =>
  client.secret === null
    ? requestToken(app, { client_id: client.id, ...parameters })
    : requestToken(app, parameters, basic(client))

export interface Tokens {
  readonly accessToken: string
  readonly refreshToken: string
}

export const tokensIn = (response: LightMyRequestResponse): Tokens => {
  if (response.statusCode !== 200) throw new Error(`${response.statusCode}: ${response.body}`)
  const { access_token: accessToken, refresh_token: refreshToken } = response.json()
  return { accessToken, refreshToken }
}

/** Tokens for a signed-in user. */
export const newTokens = async (
  app: FastifyInstance,
  client: RegisteredClient,
  token: string,
  query: Query = {},
): Promise<Tokens> => tokensIn(await redeem(app, client, await newCode(app, client, token, query)))
