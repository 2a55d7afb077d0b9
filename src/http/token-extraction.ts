/** Extracts the access token of a request from the cookie, otherwise from the header (§5.1.1). */
import type { FastifyRequest } from 'fastify'

declare module 'fastify' {
  interface FastifyRequest {
    /** The token as presented, not verified yet, or `null`. */
    accessToken: string | null
    /** Its source. Browsers send cookies on their own, which matters for CSRF. `undefined` before the token is extracted. */
    accessTokenSource: 'cookie' | 'header' | null | undefined
  }
}

export const ACCESS_TOKEN_COOKIE = 'ACCESS_TOKEN'

/** `Bearer` in any letter case (RFC 9110 §11.1). */
const BEARER = /^bearer +/i

/** Everything after the scheme; empty for other schemes. */
const bearerToken = (authorization: string): string => {
  // Fast path for the usual spelling.
  if (authorization.startsWith('Bearer ') && authorization[7] !== ' ') return authorization.slice(7)
  const scheme = BEARER.exec(authorization)
  return scheme === null ? '' : authorization.slice(scheme[0].length)
}

/** Sets `accessToken` and its source. @param fromCookie the value of the cookie. */
export const extractAccessToken = (request: FastifyRequest, fromCookie: string | undefined): void => {
  if (fromCookie) {
    request.accessToken = fromCookie
    request.accessTokenSource = 'cookie'
    return
  }
  const { authorization } = request.raw.headers
  const fromHeader = authorization === undefined ? '' : bearerToken(authorization)
  if (fromHeader === '') {
    request.accessTokenSource = null
    return
  }
  request.accessToken = fromHeader
  request.accessTokenSource = 'header'
}
