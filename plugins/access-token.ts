/** Step 4 of the common processing (§1): extracts the access token from the cookie, otherwise from the header (§5.1.1). */
import cookie from '@fastify/cookie'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ACCESS_TOKEN_COOKIE, extractAccessToken } from '#http/token-extraction'

declare module 'fastify' {
  interface FastifyReply {
    /** Sets the cookie, until `expiresAt` (milliseconds since the epoch). */
    setAccessToken(token: string, expiresAt: number): FastifyReply
    clearAccessToken(): FastifyReply
  }
}

type Done = () => void

/** `request.cookies` of requests without cookies. */
const NO_COOKIES: Readonly<Record<string, string>> = Object.freeze(Object.create(null))

const takeAccessToken = (request: FastifyRequest, _reply: FastifyReply, done: Done): void => {
  const { cookie } = request.raw.headers
  const { parseCookie } = request.server
  request.cookies = cookie === undefined ? NO_COOKIES : parseCookie(cookie)
  extractAccessToken(request, request.cookies, parseCookie)
  done()
}

const accessToken = async (app: FastifyInstance): Promise<void> => {
  // Without the plugin's hook, which allocates a map of response cookies for every request. A host may have registered it.
  if (!app.hasDecorator('parseCookie')) await app.register(cookie, { hook: false })
  // Browsers clear a cookie only if the attributes match those it was set with. A host may have other defaults.
  const attributes = {
    httpOnly: true,
    sameSite: 'lax',
    path: '/',
    secure: app.config.isProduction,
    signed: false,
  } as const
  const { cookieDomain } = app.config
  const ofDomain = cookieDomain === null ? null : { ...attributes, domain: cookieDomain }
  app.decorateReply('setAccessToken', function setAccessToken(token, expiresAt) {
    const maxAge = Math.max(0, Math.floor((expiresAt - app.services.clock()) / 1_000))
    if (ofDomain === null) return this.setCookie(ACCESS_TOKEN_COOKIE, token, { ...attributes, maxAge })
    // From before COOKIE_DOMAIN was set: a browser would send both.
    return this.clearCookie(ACCESS_TOKEN_COOKIE, attributes).setCookie(ACCESS_TOKEN_COOKIE, token, {
      ...ofDomain,
      maxAge,
    })
  })
  app.decorateReply('clearAccessToken', function clearAccessToken() {
    const cleared = this.clearCookie(ACCESS_TOKEN_COOKIE, attributes)
    return ofDomain === null ? cleared : cleared.clearCookie(ACCESS_TOKEN_COOKIE, ofDomain)
  })
  app.addHook('onRequest', takeAccessToken)
}

export default fp(accessToken, { name: 'access-token', dependencies: ['cors'] })
