/** The values of cookies, and the access token of a request: from the cookie, otherwise from the header (§5.1.1). */
import type { FastifyRequest } from 'fastify'
import { BOUND_PREFIX } from '#core/auth/access-tokens'

declare module 'fastify' {
  interface FastifyRequest {
    /** The token as presented, not verified yet, or `null`. Of several, the one that counts once they are verified. */
    accessToken: string | null
    /** Every different token, if cookies have several; else `null`. */
    accessTokens: readonly string[] | null
    /**
     * Its source; `proof`: a header with the scheme DPoP. Browsers send cookies on their own, which matters for CSRF. `undefined` before the
     * token is extracted.
     */
    accessTokenSource: 'cookie' | 'header' | 'proof' | null | undefined
  }
}

export type ParsedCookies = Readonly<Record<string, string | undefined>>

export type CookieParser = (header: string) => ParsedCookies

/**
 * Values that are looked at: each may cost the verification of a signature. A stranger can set one for each parent domain of the service and
 * each prefix of a path, and browsers send those with longer paths first: eight would hide ours.
 */
const MAX_VALUES = 32

const SPACE = 0x20
const TAB = 0x09

/**
 * All values of a cookie. A name does not identify a cookie: one that another host of the domain has set, or that has another path, comes
 * with ours, before or behind it (RFC 6265 §5.4). A parser keeps one of them.
 * @returns each different value once, in the order of the header, without empty ones; the first 32 at most.
 */
export const cookieValues = (header: string, name: string, parse: CookieParser): string[] => {
  const values = new Set<string>()
  for (let start = 0, end = 0; end !== -1 && values.size < MAX_VALUES; start = end + 1) {
    while (header.charCodeAt(start) === SPACE || header.charCodeAt(start) === TAB) start += 1
    end = header.indexOf(';', start)
    // Most pairs have another name, and need no parser.
    if (!header.startsWith(name, start)) continue
    const value = parse(end === -1 ? header.slice(start) : header.slice(start, end))[name]
    if (value) values.add(value)
  }
  return [...values]
}

export const ACCESS_TOKEN_COOKIE = 'ACCESS_TOKEN'

/** `Bearer` in any letter case (RFC 9110 §11.1). */
const BEARER = /^bearer +/i

/** Everything after the scheme; empty for other schemes. */
export const bearerToken = (authorization: string): string => {
  // Fast path for the usual spelling.
  if (authorization.startsWith('Bearer ') && authorization[7] !== ' ') return authorization.slice(7)
  const scheme = BEARER.exec(authorization)
  return scheme === null ? '' : authorization.slice(scheme[0].length)
}

/** The token after the scheme DPoP in any letter case (RFC 9449 §7.1); empty for other schemes. */
const boundToken = (authorization: string): string => /^dpop +(.*)$/i.exec(authorization)?.[1] ?? ''

/**
 * Sets `accessToken`, `accessTokens` and the source.
 * @param cookies of the request, of which the parser keeps the first of a name.
 */
export const extractAccessToken = (
  request: FastifyRequest,
  cookies: ParsedCookies,
  parse: CookieParser,
): void => {
  const { authorization, cookie = '' } = request.raw.headers
  let fromCookie = cookies[ACCESS_TOKEN_COOKIE]
  // A header with the token alone is as long as that: the usual case is not parsed again.
  if (fromCookie !== undefined && cookie.length > ACCESS_TOKEN_COOKIE.length + 1 + fromCookie.length) {
    const tokens = cookieValues(cookie, ACCESS_TOKEN_COOKIE, parse)
    fromCookie = tokens[0]
    if (tokens.length > 1) request.accessTokens = tokens
  }
  if (fromCookie) {
    request.accessToken = fromCookie
    request.accessTokenSource = 'cookie'
    return
  }
  const fromHeader = authorization === undefined ? '' : bearerToken(authorization)
  if (fromHeader === '') {
    const bound = authorization === undefined ? '' : boundToken(authorization)
    request.accessTokenSource = bound === '' ? null : 'proof'
    if (bound !== '') request.accessToken = BOUND_PREFIX + bound
    return
  }
  request.accessToken = fromHeader
  request.accessTokenSource = 'header'
}
