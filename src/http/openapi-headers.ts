/** Headers of the OpenAPI document that follow from what routes declare anyway. */
import type { RouteOptions } from 'fastify'
import { ERRORS } from '../errors.ts'

type Headers = Readonly<Record<string, { type: string; description: string }>>

const RETRY_AFTER: Headers = {
  'Retry-After': { type: 'integer', description: 'Seconds until another try is worth it' },
}

const CHALLENGE: Headers = {
  'WWW-Authenticate': { type: 'string', description: 'What the route asks for (RFC 9110 §11.6.1)' },
}

/** On every answer but what is refused before it is counted, which its status does not tell. */
const RATE_LIMIT: Headers = {
  RateLimit: { type: 'string', description: 'What is left to the address: `"name";r=requests;t=seconds`' },
  'RateLimit-Policy': {
    type: 'string',
    description: 'What an address is allowed: `"name";q=requests;w=seconds`',
  },
}

const LINK: Headers = {
  Link: { type: 'string', description: 'The next page, with `rel="next"`; not on the last one' },
}

const STATUSES_TO_RETRY = new Set<number>(
  Object.values(ERRORS)
    .filter(error => 'retryAfter' in error)
    .map(({ status }) => status),
)

/** Those of an answer: what its schema declares as `headers`, and what its status, its route and its body say. */
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
    'If-Match': { type: 'string', description: 'Change only what has one of these ETags (RFC 9110 §13.1.1)' },
  },
}

/** The header that a request may have. Not part of the route's own schema, where it would be validated. */
export const requestHeaders = (response: Readonly<Record<string, unknown>>): object =>
  '412' in response ? { headers: IF_MATCH } : {}
