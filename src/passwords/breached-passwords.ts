/**
 * Refuses new passwords that are known from breaches (`BREACHED_PASSWORDS_URL`), by a range API as that of Have I Been Pwned. The API
 * receives five digits of the password's SHA-1, and returns the rest of all that begin with them. While it fails, every password is
 * accepted: an outage elsewhere must not stop sign-ups and password resets.
 */
import { createHash } from 'node:crypto'
import type { Agent, ClientRequest, IncomingMessage, RequestOptions } from 'node:http'
import { type ErrorName, ServiceError } from '../errors.ts'
import { Counters } from '../statistics/counters.ts'
import { canonicalPassword } from './policy.ts'

/** Milliseconds until a password is accepted, from the look-up of the host's name to the last byte. */
const TIME_LIMIT = 1_000

/** Bytes of a response. Those of Have I Been Pwned have about 60,000, with padding. */
const MAX_BYTES = 262_144

/** Further requests wait for a connection, within their time limit. */
const MAX_CONNECTIONS = 16

/** Milliseconds until an idle connection closes. */
const IDLE = 30_000

const PREFIX_LENGTH = 5

/** `Add-Padding`: lines with the count 0, so that the length of an encrypted response does not tell the prefix. */
const HEADERS = { 'add-padding': 'true', 'user-agent': 'gatehouse' }

const RANGE = /^(?:[\dA-F]{35}:\d{1,15}(?:\r?\n|$))*$/i

interface Client {
  get(url: string, options: RequestOptions, respond: (response: IncomingMessage) => void): ClientRequest
  /** Used by this service alone, so that it can be closed. Keeps connections alive. */
  readonly agent: Agent
}

/** Imports `node:https` only where it is used. */
const openClient = async (url: string): Promise<Client> => {
  const { Agent, get } = url.startsWith('https:') ? await import('node:https') : await import('node:http')
  return { get, agent: new Agent({ keepAlive: true, maxSockets: MAX_CONNECTIONS, timeout: IDLE }) }
}

/** @throws {Error} unless the whole response arrives, with the status 200, before the signal is aborted. Follows no redirect. */
const read = async ({ get, agent }: Client, url: string, signal: AbortSignal): Promise<string> => {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, { agent, signal, headers: HEADERS }, resolve).on('error', reject)
  })
  if (response.statusCode !== 200) {
    response.destroy()
    throw new Error(`The response has the status ${response.statusCode}`)
  }
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response) {
    length += chunk.length
    if (length > MAX_BYTES) throw new Error(`The response has more than ${MAX_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('latin1')
}

/** @throws {Error} if the text is no range. */
const isListed = (range: string, suffix: string): boolean => {
  if (!RANGE.test(range)) throw new Error('The response is not a range of SHA-1 hashes with their counts')
  const count = new RegExp(`^${suffix}:(\\d+)`, 'im').exec(range)?.[1]
  return Number(count ?? 0) > 0
}

export class BreachedPasswords {
  /** `timed_out` and `failed` are passwords that were accepted without a comparison. */
  readonly outcomes = new Counters(['not_breached', 'breached', 'timed_out', 'failed'])
  readonly #url: string | null
  readonly #onFailure: (error: unknown) => void
  readonly #timeLimit: number
  #client: Promise<Client> | null = null

  /**
   * @param url of the API, without the prefix; `null`: nothing is refused.
   * @param onFailure called when a password is accepted without a comparison.
   * @param timeLimit milliseconds.
   */
  constructor(url: string | null, onFailure: (error: unknown) => void, timeLimit = TIME_LIMIT) {
    this.#url = url
    this.#onFailure = onFailure
    this.#timeLimit = timeLimit
  }

  /**
   * For a new password that follows all other rules.
   * @param error names the field of the password.
   * @param signal aborted when the client disconnects.
   * @throws {ServiceError} `error` if the password is known from a breach; `clientClosedRequest`
   */
  async refuse(
    password: string,
    error: Extract<ErrorName, 'passwordBreached' | 'newPasswordBreached'>,
    signal?: AbortSignal,
  ): Promise<void> {
    if (this.#url === null) return
    const outcome = await this.#compare(this.#url, password, signal)
    this.outcomes.add(outcome)
    if (outcome === 'breached') throw new ServiceError(error)
  }

  /** Ends requests that are under way: their passwords are accepted. */
  async close(): Promise<void> {
    const client = await this.#client
    client?.agent.destroy()
  }

  async #compare(url: string, password: string, signal: AbortSignal | undefined) {
    const digest = createHash('sha1').update(canonicalPassword(password)).digest('hex')
    const timeout = AbortSignal.timeout(this.#timeLimit)
    try {
      this.#client ??= openClient(url)
      const range = await read(
        await this.#client,
        `${url}/${digest.slice(0, PREFIX_LENGTH).toUpperCase()}`,
        signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
      )
      return isListed(range, digest.slice(PREFIX_LENGTH)) ? 'breached' : 'not_breached'
    } catch (error) {
      if (signal?.aborted) throw new ServiceError('clientClosedRequest', { quiet: true })
      this.#onFailure(timeout.aborted ? timeout.reason : error)
      return timeout.aborted ? 'timed_out' : 'failed'
    }
  }
}
