/** The service's routes as the crash test calls them. */
import { ADMIN_KEY } from '../support/build.ts'

export interface ServiceResponse {
  readonly status: number
  /** The parsed body; `null` when the process died while it was being read. */
  readonly body: Record<string, unknown> | null
}

const call = async (url: string, init: RequestInit = {}): Promise<ServiceResponse> => {
  const response = await fetch(url, init)
  // The status is the acknowledgement: it counts even if the rest of the answer is lost.
  const body = await response.json().catch(() => null)
  return { status: response.status, body: body as ServiceResponse['body'] }
}

const json = (method: string, body: unknown, headers: Record<string, string> = {}): RequestInit => ({
  method,
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
})

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** @param url of the running server, without a path. Calls reject when it is gone. */
export const createClient = (url: string) => ({
  signUp: (email: string, password: string, firstName: string) =>
    call(`${url}/account/sign-up`, json('POST', { email, password, firstName })),
  signIn: (email: string, password: string) =>
    call(`${url}/account/sign-in`, json('POST', { email, password })),
  account: (token: string) => call(`${url}/account`, { headers: bearer(token) }),
  rename: (token: string, firstName: string) =>
    call(`${url}/account`, json('PUT', { firstName }, bearer(token))),
  disable: (id: string) =>
    call(`${url}/admin/users/${id}`, json('PUT', { disabled: true }, { 'x-admin-key': ADMIN_KEY })),
})

export type Client = ReturnType<typeof createClient>
