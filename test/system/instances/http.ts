/** One request on a real socket, without retries or redirects of a client library. */
import { type Agent, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { text } from 'node:stream/consumers'
import { ADMIN_KEY } from '../../support/build.ts'

export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: object
}

export interface TimedResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** Milliseconds of `performance.now()`. */
  readonly sentAt: number
  readonly respondedAt: number
}

/** No response, or only a part of one. */
export class Lost extends Error {
  readonly sentAt: number
  readonly lostAt = performance.now()
  /** False if the connection was refused: no instance received the request. */
  readonly sent: boolean

  constructor(cause: Error, sentAt: number) {
    super(cause.message, { cause })
    this.sentAt = sentAt
    this.sent = (cause as NodeJS.ErrnoException).code !== 'ECONNREFUSED'
  }
}

/**
 * Milliseconds until any request has its response; the service gives up on the database after 5 s of waiting and 6 s of
 * querying.
 */
export const RESPONSE_LIMIT = 12_000

/** Milliseconds until the client gives up. */
const GIVE_UP = RESPONSE_LIMIT + 3_000

/**
 * @param agent keeps the connection; `false` for a separate one.
 * @throws {Lost}
 */
export const send = (url: string, call: Call, agent: Agent | false): Promise<TimedResponse> => {
  const sentAt = performance.now()
  const payload = call.body === undefined ? undefined : JSON.stringify(call.body)
  const { promise, resolve, reject } = Promise.withResolvers<TimedResponse>()
  const lose = (cause: Error): void => reject(new Lost(cause, sentAt))
  const read = async (response: IncomingMessage): Promise<void> => {
    const body = await text(response)
    const { statusCode: status = 0, headers } = response
    resolve({ status, headers, text: body, sentAt, respondedAt: performance.now() })
  }
  const request = url.startsWith('https:') ? httpsRequest : httpRequest
  const outgoing = request(url + call.path, {
    method: call.method,
    agent,
    headers: {
      ...(payload !== undefined && {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(payload),
      }),
      ...call.headers,
    },
    signal: AbortSignal.timeout(GIVE_UP),
  })
  outgoing.once('error', lose)
  outgoing.once('response', response => void read(response).catch(lose))
  outgoing.end(payload)
  return promise
}

export const bodyOf = (response: TimedResponse): Record<string, unknown> => JSON.parse(response.text)

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** The calls that the tests make to the instances. */
export const calls = {
  ready: (): Call => ({ method: 'GET', path: '/ready' }),
  signUp: (email: string, password: string): Call => ({
    method: 'POST',
    path: '/account/sign-up',
    body: { email, password },
  }),
  signIn: (email: string, password: string): Call => ({
    method: 'POST',
    path: '/account/sign-in',
    body: { email, password },
  }),
  account: (token: string): Call => ({ method: 'GET', path: '/account', headers: bearer(token) }),
  rename: (token: string, firstName: string): Call => ({
    method: 'PUT',
    path: '/account',
    headers: bearer(token),
    body: { firstName },
  }),
  signOut: (token: string): Call => ({ method: 'POST', path: '/account/sign-out', headers: bearer(token) }),
  removeAccount: (token: string, password: string): Call => ({
    method: 'DELETE',
    path: '/account',
    headers: bearer(token),
    body: { password },
  }),
  list: (): Call => ({ method: 'GET', path: '/admin/users?limit=5', headers: { 'x-admin-key': ADMIN_KEY } }),
  createApiKey: (token: string): Call => ({
    method: 'POST',
    path: '/account/api-keys',
    headers: bearer(token),
    body: { name: 'a key' },
  }),
  revokeApiKey: (token: string, id: string): Call => ({
    method: 'DELETE',
    path: `/account/api-keys/${id}`,
    headers: bearer(token),
  }),
  disable: (id: string): Call => ({
    method: 'PUT',
    path: `/admin/users/${id}`,
    headers: { 'x-admin-key': ADMIN_KEY },
    body: { disabled: true },
  }),
} as const
