/**
 * What every generated client is built on: requests with a timeout and retries, errors, pages, NDJSON and streams of events, with the
 * `fetch` of browsers, Node, Deno and Bun and nothing else.
 */
import { EventStreamParser } from './event-stream.ts'

/** Where a client keeps the access token that signs its user in. */
export interface TokenStorage {
  /** The token to send, or `null`. Called before each request. */
  get(): string | null | Promise<string | null>
  /** Called with the new token after a sign-in, and with `null` after a sign-out. */
  set(token: string | null): void | Promise<void>
}

/** Keeps the token in memory: it is gone when the page is reloaded or the process ends. */
export const memoryTokens = (token: string | null = null): TokenStorage => ({
  get: () => token,
  set(changed) {
    token = changed
  },
})

/** What can be set for a client, and for a single call. */
export interface CallOptions {
  /** Ends the call, also while it waits to be repeated. The call rejects with the reason of the signal. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds for each attempt; of an export or a stream until it begins. 30,000 by default. A streamed import has no limit. */
  readonly timeout?: number | undefined
  /** How often a request is repeated that the service did not process. 2 by default. */
  readonly retries?: number | undefined
  /** Added to the headers of the request. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** Options of a call that changes a user. */
export interface ConditionalCallOptions extends CallOptions {
  /** Change only if the `ETag` is still this one: else the error has status 412. */
  readonly ifMatch?: string | undefined
}

/** Options of a stream of events. */
export interface StreamOptions extends CallOptions {
  /**
   * How often the client tries to connect, after the first attempt. By default 2 times, and once the stream was open, until it
   * succeeds or the service refuses it.
   */
  readonly retries?: number | undefined
  /** Milliseconds of silence after which the client connects again. 45,000 by default: the service sends a comment every 15 seconds. */
  readonly silence?: number | undefined
}

/** An event of a stream. */
export interface StreamedEvent<Event> {
  readonly event: Event
  /** Where a stream continues behind this event. */
  readonly cursor: string
}

export interface TransportOptions extends Omit<CallOptions, 'signal'> {
  /** Where the service is, with the prefix of a host: `https://accounts.example.com`. Browsers also take a path: `/auth`. */
  readonly baseUrl: string
  /** Milliseconds. A longer `Retry-After` is an error at once. 10,000 by default. */
  readonly maxRetryDelay?: number | undefined
  /** Instead of the global `fetch`. */
  readonly fetch?: typeof fetch | undefined
  /**
   * Whether `fetch` sends a body while it receives the response. By default in Node and Deno. Elsewhere an import sends its users
   * in several requests.
   */
  readonly streamsRequests?: boolean | undefined
}

export interface ClientOptions extends TransportOptions {
  /** An access token or an API key to send. */
  readonly accessToken?: string | undefined
  /** Remembers the token of a sign-in, such as {@link memoryTokens}. Without it a sign-in only returns the token. */
  readonly tokens?: TokenStorage | undefined
  /** `include` or `same-origin` signs browsers in by cookie. `omit` by default, where a cookie is neither stored nor sent. */
  readonly credentials?: 'omit' | 'same-origin' | 'include' | undefined
}

export interface AdminClientOptions extends TransportOptions {
  /** `ADMIN_KEY`, or an admin key with the scopes of the calls. It belongs on servers, never in a browser. */
  readonly adminKey: string
}

/** What the service responded to a request that it refused. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError'
  /** The HTTP status. 200 for an import that stopped early. */
  readonly status: number
  /** The messages by input field, or `global`. */
  readonly errors: Readonly<Record<string, readonly string[]>>
  /** The id of the request in the service's log. */
  readonly requestId: string | null
  /** Seconds after which the request can be repeated, with status 429 and 503. */
  readonly retryAfter: number | null

  constructor(request: string, response: Response, errors: Readonly<Record<string, readonly string[]>>) {
    const messages = Object.entries(errors).flatMap(([field, texts]) =>
      texts.map(text => (field === 'global' || field === 'credentials' ? text : `${field} ${text}`)),
    )
    super(`${request}: ${response.status}: ${messages.join('; ')}`)
    this.status = response.status
    this.errors = errors
    this.requestId = response.headers.get('x-request-id')
    this.retryAfter = secondsUntil(response.headers.get('retry-after'))
  }
}

/** No complete response arrived. Whether the service has processed the request is unknown. `cause` has the reason. */
export class NetworkError extends Error {
  override readonly name = 'NetworkError'
  readonly timedOut: boolean

  constructor(request: string, problem: string, { cause, timedOut = false }: NetworkErrorOptions = {}) {
    super(`${request}: ${problem}`, { cause })
    this.timedOut = timedOut
  }
}

interface NetworkErrorOptions {
  readonly cause?: unknown
  readonly timedOut?: boolean
}

/** Whether the service refused the request, with this status if one is given. */
export const isServiceError = (error: unknown, status?: number): error is ServiceError =>
  error instanceof ServiceError && (status === undefined || error.status === status)

/** @param value of `Retry-After`: seconds or a date (RFC 9110 §10.2.3). */
const secondsUntil = (value: string | null): number | null => {
  if (value === null) return null
  if (/^\d+$/.test(value)) return Number(value)
  const seconds = Math.ceil((Date.parse(value) - Date.now()) / 1_000)
  return Number.isNaN(seconds) ? null : Math.max(0, seconds)
}

/** The result of a call. */
export interface Call<T> extends Promise<T> {
  /** The result with the response, for its headers. */
  withResponse(): Promise<{ readonly data: T; readonly response: Response }>
}

const callOf = <T>(whole: Promise<{ data: T; response: Response }>): Call<T> => {
  const data = whole.then(({ data }) => data)
  return Object.assign(data, {
    withResponse() {
      // Only `whole` is awaited: `data` must not become an unhandled rejection.
      data.catch(() => undefined)
      return whole
    },
  })
}

interface PageOf<T> {
  results: T[]
  nextCursor: string | null
}

/** A list, of which nothing is requested before it is read. */
export interface Pages<Page extends PageOf<unknown>> extends AsyncIterable<Page['results'][number]> {
  /** The one page at the cursor of the query, or the first one. */
  page(): Call<Page>
  /** Page by page to the end. */
  pages(): AsyncGenerator<Page, void, undefined>
}

type Query = Readonly<Record<string, unknown>>

interface Request {
  readonly query?: object | undefined
  /** Sent as JSON. */
  readonly body?: unknown
  readonly options?: ConditionalCallOptions | undefined
}

/** An attempt that is under way. */
interface Attempt {
  /** The method and the path, for errors. */
  readonly name: string
  readonly controller: AbortController
  readonly response: Response
  /** No longer ends with the timeout. */
  begin(): void
  /** Stops listening to the signal of the caller. */
  end(): void
}

const DEFAULTS = { timeout: 30_000, retries: 2, maxRetryDelay: 10_000, silence: 45_000 }

/** An import without full-duplex `fetch` sends at most so many lines, and about so many characters, in one request. */
const BATCH = { lines: 500, length: 262_144 }

/** Bytes of a streamed import until other events of the process have their turn. */
const TURN = 65_536

/** Characters of one received line. A response without line ends must not fill the memory. An exported user has far fewer. */
const MAX_LINE = 1_048_576

const NDJSON = 'application/x-ndjson'
const EVENT_STREAM = 'text/event-stream'

/** Milliseconds after which a stream connects again, until the service says how many. */
const RECONNECTION = 2_000

/** Statuses of the service, or of a proxy before it, that do not last. */
const PASSING = new Set([502, 503, 504])

const hasFullDuplexFetch = (): boolean => {
  const { Deno, Bun, process } = globalThis as {
    Deno?: unknown
    Bun?: unknown
    process?: { versions?: { node?: string } }
  }
  return Deno !== undefined || (Bun === undefined && process?.versions?.node !== undefined)
}

/** A part of a path. @throws {TypeError} for one that would lead to another path. */
export const segment = (value: string): string => {
  if (value === '' || value === '.' || value === '..') throw new TypeError(`'${value}' is not an id`)
  return encodeURIComponent(value)
}

const queryOf = (query: object = {}): string => {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== null) parameters.append(name, String(value))
  const text = parameters.toString()
  return text === '' ? '' : `?${text}`
}

const wait = (milliseconds: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, milliseconds)
    if (signal?.aborted) stop()
    else signal?.addEventListener('abort', stop, { once: true })
  })

interface Retries {
  readonly retries: number
  readonly signal: AbortSignal | undefined
  /** Milliseconds until the repetition, `null` for an error that lasts. @param failed attempts that failed before. */
  readonly delayOf: (error: unknown, failed: number) => number | null
}

const withRetries = async <T>(run: () => Promise<T>, { retries, signal, delayOf }: Retries): Promise<T> => {
  for (let failed = 0; ; failed++) {
    try {
      return await run()
    } catch (error) {
      const delay = failed < retries ? delayOf(error, failed) : null
      if (delay === null) throw error
      await wait(delay, signal)
    }
  }
}

/** Clients that were refused together do not return together. */
const spread = (milliseconds: number): number => milliseconds * (0.5 + Math.random() / 2)

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

type Errors = Readonly<Record<string, readonly string[]>>

const isErrors = (errors: unknown): errors is Errors =>
  typeof errors === 'object' &&
  errors !== null &&
  Object.values(errors).every(
    texts => Array.isArray(texts) && texts.every(message => typeof message === 'string'),
  )

const errorOf = (name: string, response: Response, text: string): ServiceError => {
  const { errors } = (parsed(text) ?? {}) as { errors?: unknown }
  // A proxy has bodies of its own, and some of them have `errors` too.
  const own = isErrors(errors) ? errors : { global: [response.statusText || 'The request failed'] }
  return new ServiceError(name, response, own)
}

/** @throws {TypeError} without the value, which may be a key: the error of the platform quotes it. */
const checkedHeaders = (name: string, fields: Readonly<Record<string, string>>): Headers => {
  const headers = new Headers()
  for (const [field, value] of Object.entries(fields))
    try {
      headers.append(field, value)
    } catch {
      throw new TypeError(
        `${name}: the header ${JSON.stringify(field)} has characters that HTTP does not allow`,
      )
    }
  return headers
}

/** The lines of a response, parsed. Stops the request when the reader stops. */
async function* linesOf<T>(attempt: Attempt, failed: (error: unknown) => unknown): AsyncGenerator<T> {
  const { response, controller, end } = attempt
  const reader = response.body?.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  let isComplete = false
  try {
    while (!isComplete && reader !== undefined) {
      const { done, value } = await reader.read()
      // Only what is new is searched: a long line would take time in proportion to the square of its length.
      const lines = decoder.decode(value, { stream: !done }).split('\n')
      lines[0] = `${rest}${lines[0]}`
      rest = lines.pop() ?? ''
      if (rest.length > MAX_LINE) throw new Error(`A line is longer than ${MAX_LINE} characters`)
      for (const line of lines) yield JSON.parse(line)
      isComplete = done
    }
    if (rest !== '') throw new Error('The last line is not complete')
  } catch (error) {
    throw failed(error)
  } finally {
    if (!isComplete) controller.abort()
    end()
  }
}

/** The text of a response until it ends, breaks off, or is silent for so many milliseconds. Stops the request when the reader stops. */
async function* textOf(attempt: Attempt, silence: number): AsyncGenerator<string> {
  const { name, response, controller, begin, end } = attempt
  const reader = response.body?.getReader()
  const decoder = new TextDecoder()
  begin()
  try {
    if (!response.headers.get('content-type')?.startsWith(EVENT_STREAM))
      throw new NetworkError(name, 'The response is no stream of events')
    while (reader !== undefined) {
      // Only while the reader waits: it may take its time for an event.
      const timer = setTimeout(() => controller.abort(), silence)
      const chunk = await reader.read().catch(() => null)
      clearTimeout(timer)
      if (chunk === null || chunk.done) return
      yield decoder.decode(chunk.value, { stream: true })
    }
  } finally {
    controller.abort()
    end()
  }
}

/** The events of one connection with their ids, and ids without events. @throws {NetworkError} for what the service does not send. */
async function* eventsOf<Event>(attempt: Attempt, parser: EventStreamParser, silence: number) {
  const blocksOf = (text: string) =>
    parser
      .blocks(text)
      .map(({ id, data }) => ({ id, event: data === null ? null : (JSON.parse(data) as Event) }))
  for await (const text of textOf(attempt, silence)) {
    let blocks: ReturnType<typeof blocksOf>
    try {
      blocks = blocksOf(text)
    } catch (cause) {
      throw new NetworkError(attempt.name, 'The stream is damaged', { cause })
    }
    yield* blocks
  }
}

/** The promise, or the reason of the signal. */
const orAborted = async <T>(promise: T | Promise<T>, signal: AbortSignal | undefined): Promise<T> => {
  let stop = (): void => undefined
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal?.reason)
    if (signal?.aborted) stop()
    else signal?.addEventListener('abort', stop)
  })
  return Promise.race([promise, aborted]).finally(() => signal?.removeEventListener('abort', stop))
}

const iteratorOf = <T>(values: Iterable<T> | AsyncIterable<T>): AsyncIterator<T> | Iterator<T> =>
  Symbol.asyncIterator in values ? values[Symbol.asyncIterator]() : values[Symbol.iterator]()

/** The body of a streamed import. */
class LineStream {
  readonly stream: ReadableStream<Uint8Array>
  /** The error of the source. */
  failure: { readonly error: unknown } | undefined
  readonly #iterator: AsyncIterator<unknown> | Iterator<unknown>
  #isClosed = false

  constructor(lines: LineSource) {
    this.#iterator = iteratorOf(lines)
    const encoder = new TextEncoder()
    let length = 0
    this.stream = new ReadableStream({
      pull: async controller => {
        try {
          const { done, value } = await this.#iterator.next()
          if (done) this.#isClosed = true
          if (this.#isClosed) return controller.close()
          const chunk = encoder.encode(`${JSON.stringify(value)}\n`)
          controller.enqueue(chunk)
          length += chunk.length
          if (length < TURN) return
          // Nothing else happens in the process while a source is always ready, such as an array: not even the response arrives.
          length = 0
          await wait(0, undefined)
        } catch (error) {
          this.failure = { error }
          this.#isClosed = true
          controller.error(error)
        }
      },
      cancel: () => this.close(),
    })
  }

  /** Ends the source: nobody reads it any more. Not every `fetch` cancels the body of a request that has failed. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    Promise.resolve(this.#iterator.return?.()).catch(() => undefined)
  }
}

/** The last line of an import. */
interface ImportSummary {
  status: string
  errors?: Record<string, string[]>
  [count: string]: unknown
}

const isSummary = (line: object): line is ImportSummary =>
  'status' in line && (line.status === 'finished' || line.status === 'stopped')

const sum = (a: ImportSummary, b: ImportSummary): ImportSummary => {
  const total = { ...b }
  for (const [name, value] of Object.entries(a))
    if (typeof value === 'number') total[name] = value + Number(total[name] ?? 0)
  return total
}

interface Credentials {
  readonly headers: () => Promise<Record<string, string>>
  readonly mode: 'omit' | 'same-origin' | 'include'
  readonly tokens: TokenStorage | undefined
}

const createTransport = (own: TransportOptions, credentials: Credentials) => {
  const baseUrl = own.baseUrl.replace(/\/+$/, '')
  const streamsRequests = own.streamsRequests ?? hasFullDuplexFetch()
  const maxRetryDelay = own.maxRetryDelay ?? DEFAULTS.maxRetryDelay

  const headersOf = async (type: string | null, options: ConditionalCallOptions) => ({
    ...(type !== null && { 'content-type': type }),
    ...(await credentials.headers()),
    ...(options.ifMatch !== undefined && { 'if-match': options.ifMatch }),
    ...own.headers,
    ...options.headers,
  })

  /** What became of an attempt whose fetch, or whose body, has failed. */
  const failureOf = (name: string, cause: unknown, controller: AbortController, signal?: AbortSignal) => {
    if (signal?.aborted) return signal.reason
    const timedOut = controller.signal.reason instanceof NetworkError
    return timedOut ? controller.signal.reason : new NetworkError(name, 'The connection failed', { cause })
  }

  /** One request. @throws {ServiceError} for a status that is not 2xx; errors of the token storage. */
  const attempt = async (
    method: string,
    path: string,
    body: { readonly type: string; readonly content: string | ReadableStream } | null,
    options: ConditionalCallOptions,
  ): Promise<Attempt> => {
    const name = `${method} ${path.replace(/\?.*/, '')}`
    const { signal } = options
    const headers = checkedHeaders(name, await headersOf(body?.type ?? null, options))
    const controller = new AbortController()
    const timeout = options.timeout ?? own.timeout ?? DEFAULTS.timeout
    const timer = setTimeout(() => {
      controller.abort(new NetworkError(name, `No response within ${timeout} ms`, { timedOut: true }))
    }, timeout)
    const stop = (): void => controller.abort(signal?.reason)
    const begin = (): void => clearTimeout(timer)
    const end = (): void => {
      begin()
      signal?.removeEventListener('abort', stop)
    }
    // A streamed import takes as long as the source of its lines.
    if (typeof body?.content === 'object') begin()
    if (signal?.aborted) stop()
    else signal?.addEventListener('abort', stop)
    try {
      controller.signal.throwIfAborted()
      const response = await (own.fetch ?? fetch)(`${baseUrl}${path}`, {
        method,
        headers,
        credentials: credentials.mode,
        // A redirect would carry an admin key to another origin. The service has none for clients.
        redirect: 'error',
        signal: controller.signal,
        ...(body !== null && { body: body.content }),
        ...(typeof body?.content === 'object' && { duplex: 'half' }),
      })
      if (response.ok) return { name, controller, response, begin, end }
      throw errorOf(name, response, await response.text())
    } catch (error) {
      end()
      throw error instanceof ServiceError ? error : failureOf(name, error, controller, signal)
    }
  }

  /** Milliseconds until a failed request is repeated, or `null`. */
  const retryDelay = (error: unknown, method: string, repeated: number): number | null => {
    const isSafe = method === 'GET'
    // A service that has processed an unsafe request, and then lost its database, responds with 503.
    const isRepeatable =
      error instanceof ServiceError
        ? error.status === 429 || (isSafe && PASSING.has(error.status))
        : isSafe && error instanceof NetworkError && !error.timedOut
    if (!isRepeatable) return null
    const least = error instanceof ServiceError && error.retryAfter !== null ? error.retryAfter * 1_000 : 0
    if (least > maxRetryDelay) return null
    return Math.min(maxRetryDelay, least + spread(200 * 2 ** repeated))
  }

  /** Repeats `run` while it fails for a reason that passes. */
  const repeated = <T>(method: string, options: CallOptions, run: () => Promise<T>): Promise<T> =>
    withRetries(run, {
      retries: options.retries ?? own.retries ?? DEFAULTS.retries,
      signal: options.signal,
      delayOf: (error, failed) => retryDelay(error, method, failed),
    })

  /** Milliseconds until a stream tries again to connect, or `null`: the service knows its cursor or its credential no more. */
  const reconnectionDelay = (error: unknown, failed: number): number | null => {
    const isRefusal = error instanceof ServiceError && error.status !== 429 && error.status < 500
    if (isRefusal || !(error instanceof ServiceError || error instanceof NetworkError)) return null
    const least = error instanceof ServiceError ? (error.retryAfter ?? 0) * 1_000 : 0
    return Math.max(least, Math.min(maxRetryDelay, spread(1_000 * 2 ** failed)))
  }

  /** One connection after the other, each from the cursor of the last event that was read. */
  async function* follow<Event>(
    path: string,
    query: Query,
    options: StreamOptions,
  ): AsyncGenerator<StreamedEvent<Event>, void, undefined> {
    const { signal, silence = DEFAULTS.silence } = options
    const headers = { ...options.headers, accept: EVENT_STREAM }
    let { cursor } = query
    // In the query: pages of other origins may not send `Last-Event-ID`.
    const connect = () =>
      attempt('GET', `${path}${queryOf({ ...query, cursor })}`, null, { ...options, headers })
    let connection = await repeated('GET', options, connect)
    for (;;) {
      const parser = new EventStreamParser()
      for await (const { id, event } of eventsOf<Event>(connection, parser, silence)) {
        signal?.throwIfAborted()
        cursor = id || cursor
        if (event !== null) yield { event, cursor: String(cursor ?? '') }
      }
      signal?.throwIfAborted()
      const pause = parser.retry ?? RECONNECTION
      await wait(pause * (1 + Math.random() / 4), signal)
      connection = await withRetries(connect, {
        retries: options.retries ?? Number.POSITIVE_INFINITY,
        signal,
        delayOf: reconnectionDelay,
      })
    }
  }

  const send = (method: string, path: string, { query, body, options = {} }: Request) =>
    repeated(method, options, async () => {
      const content = body === undefined ? null : { type: 'application/json', content: JSON.stringify(body) }
      const { name, controller, response, end } = await attempt(
        method,
        `${path}${queryOf(query)}`,
        content,
        options,
      )
      try {
        return { name, response, text: await response.text() }
      } catch (error) {
        throw failureOf(name, error, controller, options.signal)
      } finally {
        end()
      }
    })

  const requestJson = async <T>(method: string, path: string, request: Request) => {
    const { name, response, text } = await send(method, path, request)
    const data = text === '' ? undefined : parsed(text)
    if (text !== '' && data === undefined) throw new NetworkError(name, 'The response is not JSON')
    return { data: data as T, response }
  }

  /** @param finish called with the result, before the caller has it. */
  const jsonWith =
    (finish: (data: unknown) => unknown) =>
    <T>(method: string, path: string, request: Request = {}): Call<T> =>
      callOf(
        requestJson<T>(method, path, request).then(async result => {
          await finish(result.data)
          return result
        }),
      )
  const json = jsonWith(() => undefined)

  /** The lines of one request. */
  async function* exchange<T>(
    method: string,
    path: string,
    body: { readonly type: string; readonly content: string | ReadableStream } | null,
    options: CallOptions,
  ): AsyncGenerator<{ line: T; response: Response; name: string }> {
    const start = () => attempt(method, path, body, options)
    const isOnce = typeof body?.content === 'object'
    const begun = await (isOnce ? start() : repeated(method, options, start))
    const { name, controller, response } = begun
    begun.begin()
    for await (const line of linesOf<T>(begun, error => failureOf(name, error, controller, options.signal)))
      yield { line, response, name }
  }

  /** @throws {ServiceError} if the import stopped early, {@link NetworkError} if its last line is missing. */
  async function* resultsOf(
    results: AsyncGenerator<{ line: object; response: Response; name: string }>,
    offset: number,
    before: ImportSummary,
  ): AsyncGenerator<object, ImportSummary> {
    let request = ''
    for await (const { line, response, name } of results) {
      request = name
      if (isSummary(line)) {
        if (line.status === 'stopped') throw new ServiceError(name, response, line.errors ?? {})
        return sum(before, line)
      }
      yield 'line' in line && typeof line.line === 'number' ? { ...line, line: line.line + offset } : line
    }
    throw new NetworkError(request, 'The results are not complete')
  }

  const EMPTY: ImportSummary = { status: 'finished' }

  async function* streamed(method: string, path: string, lines: LineSource, options: CallOptions) {
    const source = new LineStream(lines)
    try {
      const results = exchange<object>(method, path, { type: NDJSON, content: source.stream }, options)
      yield yield* resultsOf(results, 0, EMPTY)
    } catch (error) {
      throw source.failure === undefined ? error : source.failure.error
    } finally {
      source.close()
    }
  }

  async function* batched(method: string, path: string, lines: LineSource, options: CallOptions) {
    const iterator = iteratorOf(lines)
    const batch = async (): Promise<{ content: string; count: number; isLast: boolean }> => {
      let [content, count] = ['', 0]
      while (count < BATCH.lines && content.length < BATCH.length) {
        const { done, value } = await orAborted(iterator.next(), options.signal)
        if (done) return { content, count, isLast: true }
        content += `${JSON.stringify(value)}\n`
        count += 1
      }
      return { content, count, isLast: false }
    }
    let [summary, sent, isComplete] = [EMPTY, 0, false]
    try {
      while (!isComplete) {
        const { content, count, isLast } = await batch()
        isComplete = isLast
        const body = { type: NDJSON, content }
        // A service without anything to do still checks the key.
        if (count > 0 || sent === 0)
          summary = yield* resultsOf(exchange(method, path, body, options), sent, summary)
        sent += count
      }
    } finally {
      if (!isComplete) Promise.resolve(iterator.return?.()).catch(() => undefined)
    }
    yield summary
  }

  return {
    /** A response in JSON, or without a body. */
    json,
    /** A response in text. */
    text: (method: string, path: string, request: Request = {}): Call<string> =>
      callOf(send(method, path, request).then(({ text, response }) => ({ data: text, response }))),
    /** A response that signs the user in: the token is kept. */
    signIn: jsonWith(data => {
      const { accessToken } = data as { accessToken?: unknown }
      return typeof accessToken === 'string' ? credentials.tokens?.set(accessToken) : undefined
    }),
    /** A request that ends the session: the token is forgotten. */
    signOut: jsonWith(() => credentials.tokens?.set(null)),
    pages<Page extends PageOf<unknown>>(path: string, given?: object, options?: CallOptions): Pages<Page> {
      const query = (given ?? {}) as Query
      const page = (cursor: unknown = query.cursor): Call<Page> =>
        json('GET', path, { query: { ...query, cursor }, options })
      async function* pages(): AsyncGenerator<Page, void, undefined> {
        let cursor = query.cursor
        for (;;) {
          const current = await page(cursor)
          // A list that can be followed ends with an empty page, which repeats the cursor.
          if (current.results.length > 0 || cursor === undefined) yield current
          if (current.nextCursor === null || current.nextCursor === cursor) return
          cursor = current.nextCursor
        }
      }
      return {
        page: () => page(),
        pages,
        async *[Symbol.asyncIterator]() {
          for await (const { results } of pages()) yield* results
        },
      }
    },
    /** A response in NDJSON. */
    async *lines<T>(
      method: string,
      path: string,
      { query, options = {} }: Request = {},
    ): AsyncGenerator<T, void, undefined> {
      for await (const { line } of exchange<T>(method, `${path}${queryOf(query)}`, null, options)) yield line
    },
    /** Events as they happen, from the cursor of the query or from now on, without an end: the client connects again. */
    events: <Event>(path: string, query: object = {}, options: StreamOptions = {}) =>
      follow<Event>(path, query as Query, options),
    /** Lines are sent and their results received. Lines and a summary have the form of `POST /admin/users/import`. */
    importLines: <T>(method: string, path: string, lines: LineSource, options: CallOptions = {}) =>
      (streamsRequests ? streamed : batched)(method, path, lines, options) as AsyncGenerator<
        T,
        void,
        undefined
      >,
  }
}

/** The calls of a client, by the forms that operations have. */
export type Transport = ReturnType<typeof createTransport>

type LineSource = Iterable<unknown> | AsyncIterable<unknown>

/** The calls of users: with a token, or with the cookie of the browser. */
export const userTransport = ({ accessToken, tokens, credentials, ...options }: ClientOptions): Transport =>
  createTransport(options, {
    mode: credentials ?? 'omit',
    tokens,
    async headers(): Promise<Record<string, string>> {
      const token = (await tokens?.get()) ?? accessToken
      return token === undefined ? {} : { authorization: `Bearer ${token}` }
    },
  })

/** The calls of administrators. */
export const adminTransport = ({ adminKey, ...options }: AdminClientOptions): Transport =>
  createTransport(options, {
    mode: 'omit',
    tokens: undefined,
    headers: async () => ({ 'x-admin-key': adminKey }),
  })
