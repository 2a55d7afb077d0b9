/** Admin keys of the store, through the API. */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import { asAdmin } from './build.ts'

export type Headers = Readonly<Record<string, string>>

export const withKey = (key: string): { 'x-admin-key': string } => ({ 'x-admin-key': key })

/** @param by the headers of the creator. */
export const postKey = (
  app: FastifyInstance,
  payload: object,
  by: Headers = asAdmin,
): Promise<LightMyRequestResponse> => app.inject({ method: 'POST', url: '/admin/keys', headers: by, payload })

export interface TestKey {
  readonly id: string
  readonly text: string
  readonly headers: Headers
}

/** Creates a key with these scopes. */
export const createKey = async (
  app: FastifyInstance,
  scopes: readonly string[],
  { by = asAdmin, ...fields }: { readonly by?: Headers; readonly expiresAt?: string } = {},
): Promise<TestKey> => {
  const response = await postKey(app, { name: 'of a test', scopes, ...fields }, by)
  if (response.statusCode !== 201)
    throw new Error(`the key was not created: ${response.statusCode} ${response.body}`)
  const { adminKey, key } = response.json()
  return { id: key.id, text: adminKey, headers: withKey(adminKey) }
}

export const listKeys = async (app: FastifyInstance, by: Headers = asAdmin) =>
  (await app.inject({ url: '/admin/keys', headers: by })).json().results

export const revokeKey = async (app: FastifyInstance, id: string, by: Headers = asAdmin): Promise<number> =>
  (await app.inject({ method: 'DELETE', url: `/admin/keys/${id}`, headers: by })).statusCode

/** The status of a list of users: 200, 401 or 403. */
export const listStatus = async (app: FastifyInstance, headers: Headers): Promise<number> =>
  (await app.inject({ url: '/admin/users', headers })).statusCode
