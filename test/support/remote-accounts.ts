/** Accounts over the network, of a service that runs as a process of its own. */
import { bearer, PASSWORD, type SignedUp } from './build.ts'
import type { Running } from './process.ts'

type Service = Pick<Running, 'url'>

export const send = (
  { url }: Service,
  method: string,
  path: string,
  body: object,
  headers: Record<string, string> = {},
): Promise<Response> =>
  fetch(url + path, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })

export const remoteSignIn = (service: Service, email: string, password = PASSWORD): Promise<Response> =>
  send(service, 'POST', '/account/sign-in', { email, password })

/** @returns the user, with the token of the first session. */
export const remoteSignUp = async (
  service: Service,
  email: string,
  fields: Record<string, string> = {},
): Promise<SignedUp> => {
  const response = await send(service, 'POST', '/account/sign-up', { email, password: PASSWORD, ...fields })
  if (response.status !== 201)
    throw new Error(`sign-up answered ${response.status}: ${await response.text()}`)
  const { accessToken, user } = (await response.json()) as { accessToken: string; user: { id: string } }
  return { id: user.id, email, token: accessToken }
}

/** GET /account with a token: 200 while it identifies its user, 401 otherwise. */
export const remoteAccountStatus = async ({ url }: Service, token: string): Promise<number> => {
  const response = await fetch(`${url}/account`, { headers: bearer(token) })
  await response.arrayBuffer()
  return response.status
}
