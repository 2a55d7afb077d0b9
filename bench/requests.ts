/** The requests of a load, in rotation, and their expected status. */
export interface Requests {
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** Header fields of each request, in rotation; one for all is enough. */
  readonly headers: readonly Readonly<Record<string, string>>[]
  /** JSON bodies of the requests, in rotation; by default none. */
  readonly bodies?: readonly string[]
  /** The expected status. Any other is a failure. */
  readonly status: number
  /** How many requests a connection pipelines (wrk only). The remainder of the division is not sent. */
  readonly atOnce?: number
}

export const bearer = (token: string): Readonly<Record<string, string>> => ({
  authorization: `Bearer ${token}`,
})

export const get = (
  path: string,
  headers: readonly Readonly<Record<string, string>>[] = [{}],
  status = 200,
): Requests => ({ method: 'GET', path, headers, status })

/** The number of different requests. */
export const lengthOf = ({ headers, bodies = [] }: Requests): number =>
  Math.max(headers.length, bodies.length)

export interface OneRequest {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** JSON; by default none. */
  readonly body?: string
}

export const requestAt = ({ method, path, headers, bodies }: Requests, index: number): OneRequest => ({
  method,
  path,
  headers: headers[index % headers.length] ?? {},
  ...(bodies !== undefined && { body: bodies[index % bodies.length] ?? '' }),
})

/** The bytes of a request. */
export const rawRequest = ({ method, path, headers = {}, body = '' }: OneRequest): string => {
  const fields = Object.entries({
    host: 'localhost',
    ...headers,
    ...(body !== '' && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
  })
  return `${method} ${path} HTTP/1.1\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`
}

/** @returns a function that returns one after the other, and begins again. */
export const inRotation = (requests: readonly string[]): (() => string) => {
  let sent = 0
  return () => {
    sent += 1
    return requests[sent % requests.length] ?? ''
  }
}

/** The bytes of a request that reads the user of each token. */
export const readsOf = (tokens: readonly string[]): readonly string[] =>
  tokens.map(token => rawRequest({ method: 'GET', path: '/account', headers: bearer(token) }))

/** The bytes of a request that signs up another user. */
export const signUp = (): string => {
  const name = crypto.randomUUID()
  const body = { email: `${name}@example.com`, password: `phrase ${name}`, firstName: name }
  return rawRequest({ method: 'POST', path: '/account/sign-up', body: JSON.stringify(body) })
}

const CREDENTIALS = JSON.stringify({ email: 'ada@example.com', password: 'a rather long pass phrase 7' })

/** Sign-ins to the account of {@link signUpOne}. */
export const SIGN_INS: Requests = {
  method: 'POST',
  path: '/account/sign-in',
  headers: [{}],
  bodies: [CREDENTIALS],
  status: 200,
}

/** The bytes of each of {@link SIGN_INS}. */
export const SIGN_IN = rawRequest(requestAt(SIGN_INS, 0))

export const signUpOne = async (url: string): Promise<void> => {
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(`${url}/account/sign-up`, { method: 'POST', headers, body: CREDENTIALS })
  if (response.status !== 201) throw new Error(`The sign-up failed with ${response.status}`)
}
