/**
 * Requests of the service to other servers: bounded in time and in bytes, without redirects, and, unless a host is allowed by
 * configuration, only over HTTPS to public addresses.
 */
import type { Agent, IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders, request } from 'node:http'
import { endsWithin } from '../concurrency/ends-within.ts'
import { type Reader, SettingError } from '../settings/readers.ts'
import {
  addressIn,
  BlockedAddressError,
  isPublicAddress,
  publicLookup,
  type ResolveHost,
  resolveHost,
  resolvePublic,
} from './public-addresses.ts'

/**
 * Why there was no complete response. `blocked`: an address is not public. `unresolved`: the name has no address. `aborted`: by the caller's
 * signal.
 */
export type RequestFailure =
  | 'blocked'
  | 'unresolved'
  | 'connection'
  | 'tls'
  | 'timeout'
  | 'tooLarge'
  | 'aborted'

/** The message contains neither the URL nor what the server sent: both may be secret. */
export class HttpRequestError extends Error {
  override readonly name = 'HttpRequestError'
  readonly failure: RequestFailure

  constructor(failure: RequestFailure, options?: ErrorOptions) {
    const { code } = (options?.cause ?? {}) as NodeJS.ErrnoException
    super(code === undefined ? MESSAGES[failure] : `${MESSAGES[failure]} (${code})`, options)
    this.failure = failure
  }
}

const MESSAGES: Readonly<Record<RequestFailure, string>> = {
  blocked: 'the address of the host is not public',
  unresolved: 'the name of the host has no address',
  connection: 'the connection failed',
  tls: 'the TLS connection failed',
  timeout: 'the response was not complete in time',
  tooLarge: 'the response has too many bytes',
  aborted: 'the request was aborted',
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST'
  readonly headers: OutgoingHttpHeaders
  readonly body?: string | Buffer | undefined
  /** Milliseconds from the look-up of the name to the last byte. */
  readonly timeLimit: number
  /** Bytes of the response's body. */
  readonly maxBytes: number
  /** Whether a longer body is cut. Default: it is an error. */
  readonly cutsBody?: boolean
  readonly signal?: AbortSignal | undefined
}

export interface HttpResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

export interface HttpClientOptions {
  /** Hosts with port, such as `localhost:4000`, that may have private addresses and plain HTTP; `any`: no host is restricted. */
  readonly allowedHosts: readonly string[] | 'any'
  /** Connections to one host. Further requests wait, within their time limit. */
  readonly maxConnections: number
  /** Finds the addresses of hosts that are restricted. Default: the name servers of the machine. */
  readonly resolve?: ResolveHost | undefined
}

/** Milliseconds until a name counts as one without an address. */
const RESOLVE_LIMIT = 5_000

/** Responses 1xx to one request: their bytes count for no other limit. */
const MAX_INFORMATIONAL = 10

/** Milliseconds until an idle connection closes. */
const IDLE = 15_000

/** The host of a URL with its port, also if that is the usual one. */
export const hostWithPort = ({ protocol, hostname, port }: URL): string =>
  `${hostname}:${port || (protocol === 'http:' ? 80 : 443)}`

/** A list of hosts such as `localhost:4000, hooks.internal`. Without a port: that of HTTPS. */
export const allowedHosts: Reader<readonly string[]> = value =>
  value
    .split(',')
    .map(entry => entry.trim())
    .filter(entry => entry !== '')
    .map(entry => {
      const url = URL.canParse(`https://${entry}`) ? new URL(`https://${entry}`) : null
      if (url === null || url.href !== `https://${url.host}/`)
        throw new SettingError('must be hosts such as localhost:4000, separated by commas')
      return hostWithPort(url)
    })

interface Transport {
  readonly request: typeof request
  /** Used by this client alone, so that it can be closed. Keeps connections alive. */
  readonly agent: Agent
}

const TLS_ERROR = /^(ERR_TLS_|ERR_SSL_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_|EPROTO$)/

const failureOf = (error: unknown): RequestFailure => {
  if (error instanceof BlockedAddressError) return 'blocked'
  const { code = '', syscall = '' } = error as NodeJS.ErrnoException
  if (/^(getaddrinfo|query)/.test(syscall)) return 'unresolved'
  return TLS_ERROR.test(code) ? 'tls' : 'connection'
}

/** @throws {HttpRequestError} `tooLarge`; errors of the connection. */
const readBody = async (response: IncomingMessage, { maxBytes, cutsBody }: HttpRequest): Promise<Buffer> => {
  const chunks: Buffer[] = []
  let length = 0
  // Leaving the loop early destroys the connection.
  for await (const chunk of response) {
    chunks.push(chunk)
    length += chunk.length
    if (length <= maxBytes) continue
    if (!cutsBody) throw new HttpRequestError('tooLarge')
    break
  }
  return Buffer.concat(chunks).subarray(0, maxBytes)
}

export class HttpClient {
  readonly #options: HttpClientOptions
  readonly #resolve: ResolveHost
  readonly #transports = new Map<string, Promise<Transport>>()

  constructor(options: HttpClientOptions) {
    this.#options = options
    this.#resolve = options.resolve ?? resolveHost
  }

  /**
   * Checks a URL that is to be requested later.
   * @throws {HttpRequestError} `blocked`, also for plain HTTP; `unresolved`, also after 5 seconds.
   */
  async check(url: URL): Promise<void> {
    if (this.#isAllowed(url)) return
    this.#refuseAddress(url)
    if (addressIn(url.hostname) !== null) return
    try {
      const resolved = resolvePublic(url.hostname, this.#resolve)
      if (!(await endsWithin(RESOLVE_LIMIT, resolved))) throw new Error('no name server has responded')
    } catch (cause) {
      throw new HttpRequestError(cause instanceof BlockedAddressError ? 'blocked' : 'unresolved', { cause })
    }
  }

  /** Follows no redirect. @throws {HttpRequestError} */
  async request(url: URL, request: HttpRequest): Promise<HttpResponse> {
    const { signal, timeLimit } = request
    const ended = new AbortController()
    const end = (): void => ended.abort()
    const timer = setTimeout(end, timeLimit)
    signal?.addEventListener('abort', end)
    if (signal?.aborted) end()
    try {
      const response = await this.#send(url, request, ended.signal)
      const { statusCode = 0, headers } = response
      return { status: statusCode, headers, body: await readBody(response, request) }
    } catch (cause) {
      if (cause instanceof HttpRequestError) throw cause
      if (signal?.aborted) throw new HttpRequestError('aborted', { cause })
      throw new HttpRequestError(ended.signal.aborted ? 'timeout' : failureOf(cause), { cause })
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
    }
  }

  /** Ends connections, and requests that are under way. */
  async close(): Promise<void> {
    for (const transport of this.#transports.values()) (await transport).agent.destroy()
  }

  #isAllowed(url: URL): boolean {
    const { allowedHosts } = this.#options
    return allowedHosts === 'any' || allowedHosts.includes(hostWithPort(url))
  }

  /** @throws {HttpRequestError} `blocked` for plain HTTP, and for an address that is not public. */
  #refuseAddress(url: URL): void {
    const address = addressIn(url.hostname)
    if (url.protocol !== 'https:' || (address !== null && !isPublicAddress(address)))
      throw new HttpRequestError('blocked')
  }

  async #send(url: URL, sent: HttpRequest, signal: AbortSignal): Promise<IncomingMessage> {
    const isAllowed = this.#isAllowed(url)
    if (!isAllowed) this.#refuseAddress(url)
    const { request, agent } = await this.#transport(url.protocol)
    const { method, headers, body } = sent
    const lookup = isAllowed ? {} : { lookup: publicLookup(this.#resolve) }
    for (;;) {
      const outgoing = request(url, { method, headers, agent, signal, ...lookup })
      const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
      // The response reports a later error. A response that changes the protocol (101) closes the request without an error.
      outgoing.on('response', resolve).on('error', reject)
      let informational = 0
      outgoing.on('information', () => {
        informational += 1
        if (informational > MAX_INFORMATIONAL) outgoing.destroy(new Error('too many informational responses'))
      })
      outgoing.on('close', () => reject(new Error('the request was closed without a response')))
      try {
        outgoing.end(body)
        return await promise
      } catch (error) {
        // The server has closed an idle connection at the same time.
        if (!(outgoing.reusedSocket && (error as NodeJS.ErrnoException).code === 'ECONNRESET')) throw error
      }
    }
  }

  /** Imports `node:https` only where it is used. */
  #transport(protocol: string): Promise<Transport> {
    const open = async (): Promise<Transport> => {
      const { Agent, request } = await (protocol === 'https:' ? import('node:https') : import('node:http'))
      const agent = new Agent({ keepAlive: true, maxSockets: this.#options.maxConnections, timeout: IDLE })
      return { request, agent }
    }
    const transport = this.#transports.get(protocol) ?? open()
    this.#transports.set(protocol, transport)
    return transport
  }
}
