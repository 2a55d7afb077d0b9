/** The requests of a load, in rotation, and their expected status. */
export interface Requests {
  readonly method: 'GET' | 'POST'
  /** One for all requests, or as many as there are requests, in rotation. */
  readonly paths: readonly string[]
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

export const cookie = (token: string): Readonly<Record<string, string>> => ({
  cookie: `ACCESS_TOKEN=${token}`,
})

export const get = (
  path: string,
  headers: readonly Readonly<Record<string, string>>[] = [{}],
  status = 200,
): Requests => ({ method: 'GET', paths: [path], headers, status })

/** The number of different requests. */
export const lengthOf = ({ paths, headers, bodies = [] }: Requests): number =>
  Math.max(paths.length, headers.length, bodies.length)

export interface OneRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** JSON; by default none. */
  readonly body?: string
}

export const requestAt = ({ method, paths, headers, bodies }: Requests, index: number): OneRequest => ({
  method,
  path: paths[index % paths.length] ?? '/',
  headers: headers[index % headers.length] ?? {},
  ...(bodies !== undefined && { body: bodies[index % bodies.length] ?? '' }),
})

/** The bytes of a request. */
export const rawRequest = ({ method, path, headers, body = '' }: OneRequest): string => {
  const fields = Object.entries({
    host: 'localhost',
    ...headers,
    ...(body !== '' && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
  })
  return `${method} ${path} HTTP/1.1\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`
}
