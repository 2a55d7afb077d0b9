/**
 * Refuses new passwords that are known from breaches (`BREACHED_PASSWORDS_URL`), by a range API such as Have I Been Pwned: it receives five
 * digits of the SHA-1, and returns the rest of all that begin with them. While it fails, every password is accepted.
 */
import { createHash } from 'node:crypto'
import { type ErrorName, ServiceError } from '#base/errors'
import { HttpClient, HttpRequestError } from '#base/http-client/http-client'
import { Counters } from '#base/statistics/counters'
import { canonicalPassword } from './policy.ts'

const TIME_LIMIT = 1_000

/** Bytes; 60,000 are usual, with padding. */
const MAX_BYTES = 262_144

const MAX_CONNECTIONS = 16

const PREFIX_LENGTH = 5

/** `Add-Padding`: lines with the count 0, so that the length of an encrypted response does not tell the prefix. */
const HEADERS = { 'add-padding': 'true', 'user-agent': 'gatehouse' }

const RANGE = /^(?:[\dA-F]{35}:\d{1,15}(?:\r?\n|$))*$/i

const isListed = (range: string, suffix: string): boolean => {
  if (!RANGE.test(range)) throw new Error('The response is not a range of SHA-1 hashes with their counts')
  const count = new RegExp(`^${suffix}:(\\d+)`, 'im').exec(range)?.[1]
  return Number(count ?? 0) > 0
}

export class BreachedPasswords {
  /** `timed_out` and `failed` were accepted without a comparison. */
  readonly outcomes = new Counters(['not_breached', 'breached', 'timed_out', 'failed'])
  readonly #url: string | null
  readonly #onFailure: (error: unknown) => void
  readonly #timeLimit: number
  /** The operator names the host: it may be one of the own network. */
  readonly #client = new HttpClient({ allowedHosts: 'any', maxConnections: MAX_CONNECTIONS })

  /** @param url without the prefix; `null`: nothing is refused. @param onFailure called when a password is accepted without a comparison. */
  constructor(url: string | null, onFailure: (error: unknown) => void, timeLimit = TIME_LIMIT) {
    this.#url = url
    this.#onFailure = onFailure
    this.#timeLimit = timeLimit
  }

  /** @param error names the field. @throws {ServiceError} `error` for a breached password; `clientClosedRequest` */
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

  async close(): Promise<void> {
    await this.#client.close()
  }

  async #compare(url: string, password: string, signal: AbortSignal | undefined) {
    const digest = createHash('sha1').update(canonicalPassword(password)).digest('hex')
    try {
      const range = await this.#range(`${url}/${digest.slice(0, PREFIX_LENGTH).toUpperCase()}`, signal)
      return isListed(range, digest.slice(PREFIX_LENGTH)) ? 'breached' : 'not_breached'
    } catch (error) {
      const failure = error instanceof HttpRequestError ? error.failure : null
      if (failure === 'aborted') throw new ServiceError('clientClosedRequest', { quiet: true })
      this.#onFailure(error)
      return failure === 'timeout' ? 'timed_out' : 'failed'
    }
  }

  async #range(url: string, signal: AbortSignal | undefined): Promise<string> {
    const { status, body } = await this.#client.request(new URL(url), {
      method: 'GET',
      headers: HEADERS,
      timeLimit: this.#timeLimit,
      maxBytes: MAX_BYTES,
      signal,
    })
    if (status !== 200) throw new Error(`The response has the status ${status}`)
    return body.toString('latin1')
  }
}
