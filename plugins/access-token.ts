/** Step 4 of the common processing (§1): takes the access token from the cookie, else from the header (§5.1.1). */
import cookie from '@fastify/cookie'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

declare module 'fastify' {
  interface FastifyRequest {
    /** The token as presented, or `null`; whether it is worth anything is the next step's to find. */
    accessToken: string | null
    /** Where it was found: a cookie is sent by browsers without being asked, a header never. */
    accessTokenSource: 'cookie' | 'header' | null
  }
  interface FastifyReply {
    /** Hands the token to browsers, until `expiresAt` (milliseconds since the epoch). */
    setAccessToken(token: string, expiresAt: number): FastifyReply
    /** Takes it from browsers again. */
    clearAccessToken(): FastifyReply
  }
}

export const ACCESS_TOKEN_COOKIE = 'ACCESS_TOKEN'

/** `Bearer` in any letter case (RFC 9110 §11.1). */
const BEARER = /^bearer +/i

/** What stands behind the scheme, as a whole; empty where there is none. */
const bearerToken = (authorization: string): string => {
  // As nearly every client writes it.
  if (authorization.startsWith('Bearer ') && authorization[7] !== ' ') return authorization.slice(7)
  const scheme = BEARER.exec(authorization)
  return scheme === null ? '' : authorization.slice(scheme[0].length)
}

type Done = () => void

/** `request.cookies` of a request that has none. */
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
  // Parsed here: the plugin's own hook makes a map for every request, for cookies that hardly any answer sets.
  await app.register(cookie, { hook: false })
  app.decorateRequest('accessToken', null)
  app.decorateRequest('accessTokenSource', null)
  // A browser forgets a cookie only by the attributes that it was given with.
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
