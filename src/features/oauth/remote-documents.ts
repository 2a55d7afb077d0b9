/**
 * Documents of clients on other servers, such as their keys: requested over HTTPS from public addresses, without redirects, bounded in time
 * and bytes, and kept for an hour at most.
 */
import { type HttpClient, HttpRequestError, type HttpResponse } from '#base/http-client/http-client'

/** Milliseconds. */
const TIME_LIMIT = 5_000
const KEPT = 3_600_000

/** Milliseconds after a failure: 1, 2, 4 … seconds, at most a minute. */
const FIRST_PAUSE = 1_000
const LONGEST_PAUSE = 60_000

/** Documents in memory. */
const MAX_DOCUMENTS = 1_000

/** Why there is no document. The message has nothing of what the server sent. */
export class RemoteDocumentError extends Error {
  override readonly name = 'RemoteDocumentError'
}

interface Entry<Value> {
  /** `null`: there is none, or it is too old. */
  kept: { readonly value: Value; readonly until: number } | null
  pending: Promise<Value> | null
  failure: RemoteDocumentError | null
  pause: number
  /** Until when nothing is requested, in milliseconds since the epoch. */
  pausedUntil: number
}

export interface RemoteDocumentsOptions<Value> {
  readonly http: Pick<HttpClient, 'request'>
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  readonly maxBytes: number
  /** Reads the JSON of a document. @throws {RemoteDocumentError} */
  readonly read: (json: unknown, url: string) => Value | Promise<Value>
}

/** How long a document is kept: as its server says (RFC 9111 §5.2.2), within a minute and an hour. */
const keptFor = ({ 'cache-control': control = '' }: HttpResponse['headers']): number => {
  if (/\bno-(?:store|cache)\b/i.test(control)) return LONGEST_PAUSE
  const [, seconds] = /\bmax-age=(\d{1,9})\b/i.exec(control) ?? []
  return seconds === undefined ? KEPT : Math.min(Math.max(Number(seconds) * 1_000, LONGEST_PAUSE), KEPT)
}

const jsonOf = (body: Buffer): unknown => {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    throw new RemoteDocumentError('the document is not JSON')
  }
}

export class RemoteDocuments<Value> {
  readonly #options: RemoteDocumentsOptions<Value>
  /** Those that were requested last at the end. */
  readonly #entries = new Map<string, Entry<Value>>()

  constructor(options: RemoteDocumentsOptions<Value>) {
    this.#options = options
  }

  /**
   * @param suffices whether a kept document will do. If not, it is requested again, but at most once a minute.
   * @throws {RemoteDocumentError} if there is none, or if it could not be read a moment ago.
   */
  async get(url: string, suffices: (value: Value) => boolean = () => true): Promise<Value> {
    const entry = this.#entries.get(url) ?? this.#add(url)
    if (entry.pending !== null) return entry.pending
    const now = this.#options.clock()
    if (entry.kept !== null && now >= entry.kept.until) entry.kept = null
    const { kept } = entry
    if (kept !== null && (suffices(kept.value) || now < entry.pausedUntil)) return kept.value
    if (entry.failure !== null && now < entry.pausedUntil) throw entry.failure
    entry.pending = this.#request(url, entry)
    return entry.pending
  }

  #add(url: string): Entry<Value> {
    const entry = { kept: null, pending: null, failure: null, pause: 0, pausedUntil: 0 }
    const [oldest] = this.#entries.keys()
    if (this.#entries.size >= MAX_DOCUMENTS && oldest !== undefined) this.#entries.delete(oldest)
    this.#entries.set(url, entry)
    return entry
  }

  /** A document that is kept stays while its server fails. */
  async #request(url: string, entry: Entry<Value>): Promise<Value> {
    const { clock } = this.#options
    try {
      const { value, lifetime } = await this.#read(url)
      const now = clock()
      entry.kept = { value, until: now + lifetime }
      entry.failure = null
      entry.pause = 0
      entry.pausedUntil = now + LONGEST_PAUSE
      return value
    } catch (error) {
      if (!(error instanceof RemoteDocumentError)) throw error
      entry.failure = error
      entry.pause = Math.min(Math.max(FIRST_PAUSE, entry.pause * 2), LONGEST_PAUSE)
      entry.pausedUntil = clock() + entry.pause
      if (entry.kept !== null) return entry.kept.value
      throw error
    } finally {
      entry.pending = null
    }
  }

  async #read(url: string): Promise<{ readonly value: Value; readonly lifetime: number }> {
    const { http, maxBytes, read } = this.#options
    // Without `identity` a server may choose any coding (RFC 9110 §12.5.3).
    const headers = { accept: 'application/json', 'accept-encoding': 'identity' }
    try {
      const {
        status,
        headers: received,
        body,
      } = await http.request(new URL(url), {
        ...{ method: 'GET', headers, timeLimit: TIME_LIMIT, maxBytes },
      })
      if (status !== 200) throw new RemoteDocumentError(`status ${status}`)
      return { value: await read(jsonOf(body), url), lifetime: keptFor(received) }
    } catch (error) {
      throw error instanceof HttpRequestError ? new RemoteDocumentError(error.message) : error
    }
  }
}
