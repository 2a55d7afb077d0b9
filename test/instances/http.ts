/** One request on a real socket, and nothing that a client library would do by itself: no retry, no redirect. */
import { type Agent, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { ADMIN_KEY } from '../support/build.ts'

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
  /** Milliseconds by `performance.now()`. */
  readonly sentAt: number
  readonly respondedAt: number
}

/** No answer came, or only a part of one. */
export class Lost extends Error {
  readonly sentAt: number
  readonly lostAt = performance.now()
  /** False where the connection was refused: the request has reached nobody. */
  readonly sent: boolean

  constructor(cause: Error, sentAt: number) {
    super(cause.message, { cause })
    this.sentAt = sentAt
    this.sent = (cause as NodeJS.ErrnoException).code !== 'ECONNREFUSED'
  }
}

/** Milliseconds until any request is answered; the service gives the database up after 5 s of waiting and 6 s of asking. */
export const RESPONSE_LIMIT = 12_000

/** Milliseconds until the client gives up. */
const GIVE_UP = RESPONSE_LIMIT + 3_000

/**
 * @param agent keeps the connection; `false` for one of its own.
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

/** The calls of the service that the instances are asked for. */
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
  disable: (id: string): Call => ({
    method: 'PUT',
    path: `/admin/users/${id}`,
    headers: { 'x-admin-key': ADMIN_KEY },
    body: { disabled: true },
  }),
} as const
