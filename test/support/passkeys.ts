/** The routes of passkeys over HTTP (docs/design.md, "Passkeys"). */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import { call } from './account-routes.ts'
import { bearer } from './build.ts'
import {
  type AuthenticatorOptions,
  type Changes,
  ORIGIN,
  SoftwareAuthenticator,
} from './software-authenticator.ts'

export const ENV = { PUBLIC_URL: ORIGIN }

export const creationOptions = (app: FastifyInstance, token: string, payload?: object) =>
  call(app, 'POST', '/account/passkeys/options', payload, bearer(token))

export const postPasskey = (app: FastifyInstance, token: string, payload: object, query = '') =>
  call(app, 'POST', `/account/passkeys${query}`, payload, bearer(token))

export const listPasskeys = async (
  app: FastifyInstance,
  token: string,
): Promise<{ id: string; name: string | null; lastUsedAt: string | null; backedUp: boolean }[]> =>
  (await call(app, 'GET', '/account/passkeys', undefined, bearer(token))).json().results

export const removePasskey = (app: FastifyInstance, token: string, id: string, query = '') =>
  call(app, 'DELETE', `/account/passkeys/${id}${query}`, undefined, bearer(token))

export const requestOptions = (app: FastifyInstance) => call(app, 'POST', '/account/sign-in/passkey/options')

export const postSignIn = (app: FastifyInstance, credential: object, headers = {}) =>
  call(app, 'POST', '/account/sign-in/passkey', { credential }, headers)

const succeeded = (response: LightMyRequestResponse, status: number): LightMyRequestResponse => {
  if (response.statusCode !== status)
    throw new Error(`${status} expected: ${response.statusCode} ${response.body}`)
  return response
}

/** Adds a passkey to the account. */
export const register = async (
  app: FastifyInstance,
  token: string,
  {
    name,
    query,
    ...options
  }: AuthenticatorOptions & { readonly name?: string; readonly query?: string } = {},
): Promise<{ authenticator: SoftwareAuthenticator; id: string }> => {
  const authenticator = new SoftwareAuthenticator(options)
  const begun = succeeded(await creationOptions(app, token), 200).json()
  const credential = authenticator.create(begun)
  const added = succeeded(await postPasskey(app, token, { credential, name }, query), 201)
  return { authenticator, id: added.json().id }
}

/** Signs in with new options. */
export const signInWith = async (
  app: FastifyInstance,
  authenticator: SoftwareAuthenticator,
  changes: Changes = {},
): Promise<LightMyRequestResponse> => {
  const begun = succeeded(await requestOptions(app), 200).json()
  return postSignIn(app, authenticator.get(begun, changes))
}
