/** Requests of a verifier to the service. */
import http from 'node:http'
import https from 'node:https'

/** Bytes of a response that is read. */
const MAX_RESPONSE = 4_194_304

/** Why a token could not be verified: it must count as invalid, and the client may try again. */
export class VerifierError extends Error {
  /** The status of the service's response; 0 without one. */
  readonly status: number

  constructor(message: string, status = 0) {
    super(message)
    this.name = 'VerifierError'
    this.status = status
  }

  /** Whether the service refuses the admin key, which a repetition does not change. */
  get isRefusal(): boolean {
    return this.status === 401 || this.status === 403
  }
}

const messageOf = (status: number): string => {
  if (status === 401) return 'Gatehouse refuses the admin key of the verifier: it is wrong, or has ended'
  if (status === 403) return 'The admin key of the verifier has not the scope tokens:introspect'
  return `Gatehouse responded with status ${status}`
}

/** One connection, so that a process of the service behind a load balancer recognizes its cursor. */
export class Connection {
  readonly #base: URL
  readonly #agent: http.Agent
  readonly #headers: Readonly<Record<string, string>>

  constructor(baseUrl: string, adminKey: string) {
    this.#base = new URL(baseUrl)
    const { Agent } = this.#base.protocol === 'https:' ? https : http
    this.#agent = new Agent({ keepAlive: true, maxSockets: 1 })
    this.#headers = { 'x-admin-key': adminKey, accept: 'application/json' }
  }

  /** @param timeout milliseconds. @throws {VerifierError} without a response with status 200. */
  request<Result>(path: string, timeout: number, body?: object): Promise<Result> {
    const { protocol, pathname } = this.#base
    const payload = body === undefined ? undefined : JSON.stringify(body)
    return new Promise((resolve, reject) => {
      const fail = (message: string, status = 0) => reject(new VerifierError(message, status))
      const request = (protocol === 'https:' ? https : http).request(
        new URL(pathname.replace(/\/$/, '') + path, this.#base),
        {
          agent: this.#agent,
          method: payload === undefined ? 'GET' : 'POST',
          headers: { ...this.#headers, ...(payload !== undefined && { 'content-type': 'application/json' }) },
        },
      )
      const timer = setTimeout(() => request.destroy(new Error(`no response within ${timeout} ms`)), timeout)
      request.on('error', ({ message }) => fail(`Gatehouse cannot be reached: ${message}`))
      request.on('close', () => {
        clearTimeout(timer)
        fail('Gatehouse closed the connection')
      })
      request.on('response', response => {
        const { statusCode: status = 0 } = response
        let text = ''
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk
          if (text.length > MAX_RESPONSE) request.destroy(new Error('the response is too long'))
        })
        response.on('end', () => {
          if (status !== 200) return fail(messageOf(status), status)
          try {
            resolve(JSON.parse(text))
          } catch {
            fail('Gatehouse responded with something else than JSON', status)
          }
        })
      })
      request.end(payload)
    })
  }

  close(): void {
    this.#agent.destroy()
  }
}

/** Milliseconds between attempts: the first, the longest, and while the admin key is refused. */
const BACK_OFF = [100, 5_000, 30_000] as const

/** When a request may be repeated after a failure. */
export class BackOff {
  #failures = 0
  #until = 0
  error: VerifierError | null = null

  succeeded(): void {
    this.#failures = 0
    this.error = null
  }

  failed(error: VerifierError): void {
    const [first, longest, refused] = BACK_OFF
    const delay = error.isRefusal ? refused : Math.min(first * 2 ** this.#failures, longest)
    this.#failures += 1
    this.error = error
    // Jitter: the verifiers of many processes must not come back together.
    this.#until = performance.now() + delay * (0.5 + Math.random() / 2)
  }

  /** Milliseconds; 0: now. */
  get wait(): number {
    return this.error === null ? 0 : Math.max(0, this.#until - performance.now())
  }
}
