/** The id of each request, which `X-Request-Id` and its log lines have (docs/design.md, "Observability"). */
import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { trustedAddresses } from './trusted-addresses.ts'

export const REQUEST_ID_HEADER = 'x-request-id'

/** What proxies and clients use: hex, UUIDs, base64. No spaces, quotes or brackets, which could mislead readers of logs. */
const VALID = /^[\w.:+/=@~-]{1,128}$/

export const isRequestId = (id: unknown): id is string => typeof id === 'string' && VALID.test(id)

/** Hexadecimal digits: 80 bits. */
const LENGTH = 20

/** Ids made at once: one call of the system for many requests. */
const POOL = 512

/**
 * Random ids. A counter would tell every client how many requests there are. A part of a longer text costs less than the text of
 * a number.
 */
const randomIds = (): (() => string) => {
  let pool = ''
  let start = 0
  return () => {
    if (start === pool.length) {
      pool = randomBytes((POOL * LENGTH) / 2).toString('hex')
      start = 0
    }
    start += LENGTH
    return pool.slice(start - LENGTH, start)
  }
}

export interface RequestIds {
  readonly next: () => string
  /** The id of a request: the one that a trusted proxy sent, if it is valid; else a new one. */
  readonly of: (request: IncomingMessage) => string
}

/** @param trustedProxies addresses and networks. */
export const createRequestIds = (trustedProxies: readonly string[]): RequestIds => {
  const next = randomIds()
  if (trustedProxies.length === 0) return { next, of: next }
  const isTrusted = trustedAddresses(trustedProxies)
  return {
    next,
    of({ headers, socket }) {
      const given = headers[REQUEST_ID_HEADER]
      return isRequestId(given) && isTrusted(socket.remoteAddress ?? '') ? given : next()
    },
  }
}
