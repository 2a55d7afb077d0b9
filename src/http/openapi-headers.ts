/** Headers of the OpenAPI document, derived from what routes declare. */
import type { RouteOptions } from 'fastify'
import { ERRORS } from '../errors.ts'

type Headers = Readonly<Record<string, { type: string; description: string }>>

const RETRY_AFTER: Headers = {
  'Retry-After': { type: 'integer', description: 'Seconds to wait before retrying' },
}

const CHALLENGE: Headers = {
  'WWW-Authenticate': {
    type: 'string',
    description: 'The accepted authentication scheme (RFC 9110 §11.6.1)',
  },
}

/** On every response, except for requests rejected before they are counted. */
const RATE_LIMIT: Headers = {
  RateLimit: {
    type: 'string',
    description: 'Requests left for the client address: `"name";r=requests;t=seconds`',
  },
  'RateLimit-Policy': {
    type: 'string',
    description: 'The limit for a client address: `"name";q=requests;w=seconds`',
  },
}

const LINK: Headers = {
  Link: { type: 'string', description: 'The next page, with `rel="next"`; absent on the last page' },
}

const STATUSES_TO_RETRY = new Set<number>(
  Object.values(ERRORS)
    .filter(error => 'retryAfter' in error)
    .map(({ status }) => status),
)

/** The headers of a response: those its schema declares as `headers`, and those implied by status, route and body. */
export const responseHeaders = (
  { config }: RouteOptions,
  status: number,
  { headers, properties = {} }: { headers?: Headers; properties?: object },
): Headers => ({
  ...headers,
  ...(STATUSES_TO_RETRY.has(status) && RETRY_AFTER),
  ...(status === 401 && CHALLENGE),
  ...(config?.rateLimit !== undefined && RATE_LIMIT),
  ...('nextCursor' in properties && LINK),
})

const IF_MATCH = {
  type: 'object',
  properties: {
    'If-Match': { type: 'string', description: 'Change only if the ETag is one of these (RFC 9110 §13.1.1)' },
  },
}

/** The optional request header. It is not part of the route's own schema, because Fastify would validate it there. */
export const requestHeaders = (response: Readonly<Record<string, unknown>>): object =>
  '412' in response ? { headers: IF_MATCH } : {}
