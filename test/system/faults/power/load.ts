/** Writes by many clients, and their acknowledgements: which states a power cut may leave behind. */
import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { ADMIN_KEY, PASSWORD } from '../../../support/build.ts'
import type { Random } from '../../../support/random.ts'

const CLIENTS = 12

/** Users per client at a time. */
const USERS = 15

/** Milliseconds until a request counts as unanswered. */
const LIMIT = 20_000

/** Identifies the response record: recording and load count responses per process and connection. */
export interface Acknowledgement {
  readonly run: number
  readonly port: number
  /** Index of the response on that connection, from 0. */
  readonly index: number
}

export interface Write {
  /** Bytes of the log when it was sent. */
  readonly sentAt: number
  acknowledgement: Acknowledgement | null
}

/** The nth write sets the last name n, unless it is a removal. */
interface UserWrite extends Write {
  readonly kind: 'set' | 'disable' | 'remove'
}

export interface WrittenSession {
  readonly id: string
  readonly token: string
  readonly opened: Write
  ended: Write | null
}

export interface WrittenUser {
  readonly email: string
  id: string | null
  readonly writes: UserWrite[]
  readonly sessions: WrittenSession[]
}

interface Call {
  readonly method: string
  readonly path: string
  readonly body?: object
  readonly token?: string
}

interface ServiceResponse {
  readonly status: number
  readonly body: string
  readonly port: number
}

const send = (url: string, { method, path, body, token }: Call, agent: Agent): Promise<ServiceResponse> => {
  const { promise, resolve, reject } = Promise.withResolvers<ServiceResponse>()
  const outgoing = request(url + path, {
    method,
    agent,
    signal: AbortSignal.timeout(LIMIT),
    headers: {
      ...(token === undefined ? { 'x-admin-key': ADMIN_KEY } : { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
  })
  outgoing.once('error', reject)
  outgoing.once('response', response => {
    const { localPort: port = 0 } = response.socket
    text(response).then(body => resolve({ status: response.statusCode ?? 0, body, port }), reject)
  })
  outgoing.end(body === undefined ? undefined : JSON.stringify(body))
  return promise
}

const sessionId = (token: string): string =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).sid

export class Load {
  readonly users: WrittenUser[] = []
  readonly unexpected: string[] = []
  readonly #random: Random
  readonly #logSize: () => number
  /** Index of the process. */
  #run = -1

  /** @param logSize bytes of the log now. */
  constructor(random: Random, logSize: () => number) {
    this.#random = random
    this.#logSize = logSize
  }

  /** Writes until each client has made its requests, or the process is gone. */
  async run(url: string, requests: number): Promise<void> {
    this.#run += 1
    await Promise.all(Array.from({ length: CLIENTS }, () => this.#client(url, requests)))
  }

  async #client(url: string, requests: number): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const responses = new Map<number, number>()
    const own: WrittenUser[] = []
    /** @returns the body of a response that acknowledges the write. */
    const call = async (write: Write, status: number, call: Call): Promise<string | null> => {
      const response = await send(url, call, agent)
      const index = responses.get(response.port) ?? 0
      responses.set(response.port, index + 1)
      if (response.status === status) {
        write.acknowledgement = { run: this.#run, port: response.port, index }
        return response.body
      }
      this.unexpected.push(`${call.method} ${call.path}: ${response.status} ${response.body}`)
      return null
    }
    try {
      for (let count = 0; count < requests; count += 1) await this.#write(own, call)
    } catch {
      // The process is gone: requests in flight are neither acknowledged nor excluded.
    } finally {
      agent.destroy()
    }
  }

  async #write(
    own: WrittenUser[],
    call: (write: Write, status: number, call: Call) => Promise<string | null>,
  ): Promise<void> {
    const random = this.#random
    const begin = (): Write => ({ sentAt: this.#logSize(), acknowledgement: null })
    const user = own.length < USERS && random.integer(1, 10) === 1 ? undefined : random.pick(own)
    if (user === undefined) {
      const email = `power-${this.users.length + 1}@example.com`
      const created: WrittenUser = { email, id: null, writes: [], sessions: [] }
      this.users.push(created)
      const write = this.#userWrite(created, 'set')
      const withPassword = random.integer(1, 8) === 1
      const path = withPassword ? '/account/sign-up' : '/admin/users'
      const body = { email, lastName: '1', ...(withPassword && { password: PASSWORD }) }
      const response = await call(write, 201, { method: 'POST', path, body })
      if (response === null) return
      const parsed = JSON.parse(response)
      created.id = withPassword ? parsed.user.id : parsed.id
      if (withPassword) this.#addSession(created, parsed.accessToken, write)
      own.push(created)
      return
    }
    const lastName = String(user.writes.length + 1)
    const path = `/admin/users/${user.id}`
    const session = user.sessions.findLast(({ ended }) => ended === null)
    const choice = random.integer(1, 100)
    if (choice <= 3) {
      own.splice(own.indexOf(user), 1)
      await call(this.#userWrite(user, 'remove'), 204, { method: 'DELETE', path })
    } else if (choice <= 7) {
      own.splice(own.indexOf(user), 1)
      const body = { lastName, disabled: true }
      await call(this.#userWrite(user, 'disable'), 200, { method: 'PUT', path, body })
    } else if (session === undefined && choice <= 40) {
      const opened = begin()
      const response = await call(opened, 201, { method: 'POST', path: `${path}/impersonate` })
      if (response !== null) this.#addSession(user, JSON.parse(response).accessToken, opened)
    } else if (session !== undefined && choice <= 20) {
      session.ended = begin()
      await call(session.ended, 204, { method: 'POST', path: '/account/sign-out', token: session.token })
    } else if (session !== undefined) {
      const write = this.#userWrite(user, 'set')
      await call(write, 200, { method: 'PUT', path: '/account', body: { lastName }, token: session.token })
    } else {
      await call(this.#userWrite(user, 'set'), 200, { method: 'PUT', path, body: { lastName } })
    }
  }

  #userWrite(user: WrittenUser, kind: UserWrite['kind']): Write {
    const write = { kind, sentAt: this.#logSize(), acknowledgement: null }
    user.writes.push(write)
    return write
  }

  #addSession(user: WrittenUser, token: string, opened: Write): void {
    user.sessions.push({ id: sessionId(token), token, opened, ended: null })
  }
}
