/** The routes that the crash test calls. */
import { ADMIN_KEY } from '../../support/build.ts'

export interface ServiceResponse {
  readonly status: number
  /** The parsed body; `null` when the process died while it was read. */
  readonly body: Record<string, unknown> | null
}

const call = async (url: string, init: RequestInit = {}): Promise<ServiceResponse> => {
  const response = await fetch(url, init)
  // The status is the acknowledgement: it counts even if the rest of the response is lost.
  const body = await response.json().catch(() => null)
  return { status: response.status, body: body as ServiceResponse['body'] }
}

const json = (method: string, body: unknown, headers: Record<string, string> = {}): RequestInit => ({
  method,
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
})

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

const asAdministrator = { 'x-admin-key': ADMIN_KEY }

/** @param url of the running server, without a path. Calls reject when the server is gone. */
export const createClient = (url: string) => ({
  signUp: (email: string, password: string, firstName: string) =>
    call(`${url}/account/sign-up`, json('POST', { email, password, firstName })),
  signIn: (email: string, password: string) =>
    call(`${url}/account/sign-in`, json('POST', { email, password })),
  signOut: (token: string) => call(`${url}/account/sign-out`, { method: 'POST', headers: bearer(token) }),
  account: (token: string) => call(`${url}/account`, { headers: bearer(token) }),
  rename: (token: string, firstName: string) =>
    call(`${url}/account`, json('PUT', { firstName }, bearer(token))),
  changePassword: (token: string, currentPassword: string, newPassword: string) =>
    call(`${url}/account/password`, json('PUT', { currentPassword, newPassword }, bearer(token))),
  remove: (token: string, password: string) =>
    call(`${url}/account`, json('DELETE', { password }, bearer(token))),
  /** @param password `undefined`: the session is recent. */
  createApiKey: (token: string, name: string, password: string | undefined) =>
    call(`${url}/account/api-keys`, json('POST', { name, password }, bearer(token))),
  apiKeys: (token: string) => call(`${url}/account/api-keys`, { headers: bearer(token) }),
  revokeApiKey: (token: string, id: string) =>
    call(`${url}/account/api-keys/${id}`, { method: 'DELETE', headers: bearer(token) }),
  setRoles: (id: string, roles: readonly string[]) =>
    call(`${url}/admin/users/${id}`, json('PUT', { roles }, asAdministrator)),
  disable: (id: string) => call(`${url}/admin/users/${id}`, json('PUT', { disabled: true }, asAdministrator)),
})

export type Client = ReturnType<typeof createClient>
