/** Step 4 of the common processing (§1): extracts the access token from the cookie, otherwise from the header (§5.1.1). */
import cookie from '@fastify/cookie'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

declare module 'fastify' {
  interface FastifyRequest {
    /** The token as presented, not verified yet, or `null`. */
    accessToken: string | null
    /** Its source. Browsers send cookies on their own, which matters for CSRF. */
    accessTokenSource: 'cookie' | 'header' | null
  }
  interface FastifyReply {
    /** Sets the cookie, until `expiresAt` (milliseconds since the epoch). */
    setAccessToken(token: string, expiresAt: number): FastifyReply
    /** Clears the cookie. */
    clearAccessToken(): FastifyReply
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

type Done = () => void

/** `request.cookies` of requests without cookies. */
const NO_COOKIES: Readonly<Record<string, string>> = Object.freeze(Object.create(null))

const extractAccessToken = (request: FastifyRequest, _reply: FastifyReply, done: Done): void => {
  const { authorization, cookie } = request.raw.headers
  request.cookies = cookie === undefined ? NO_COOKIES : request.server.parseCookie(cookie)
  const fromCookie = request.cookies[ACCESS_TOKEN_COOKIE]
  if (fromCookie) {
    request.accessToken = fromCookie
    request.accessTokenSource = 'cookie'
    return done()
  }
  const fromHeader = authorization === undefined ? '' : bearerToken(authorization)
  if (fromHeader !== '') {
    request.accessToken = fromHeader
    request.accessTokenSource = 'header'
  }
  done()
}

const accessToken = async (app: FastifyInstance): Promise<void> => {
  // Without the plugin's hook, which allocates a map of response cookies for every request.
  await app.register(cookie, { hook: false })
  app.decorateRequest('accessToken', null)
  app.decorateRequest('accessTokenSource', null)
  // Browsers clear a cookie only if the attributes match those it was set with.
  const attributes = { httpOnly: true, sameSite: 'lax', path: '/', secure: app.config.isProduction } as const
  app.decorateReply('setAccessToken', function setAccessToken(token, expiresAt) {
    const maxAge = Math.max(0, Math.floor((expiresAt - app.services.clock()) / 1_000))
    return this.setCookie(ACCESS_TOKEN_COOKIE, token, { ...attributes, maxAge })
  })
  app.decorateReply('clearAccessToken', function clearAccessToken() {
    return this.clearCookie(ACCESS_TOKEN_COOKIE, attributes)
  })
  app.addHook('onRequest', extractAccessToken)
}

export default fp(accessToken, { name: 'access-token', dependencies: ['http-compliance'] })
