/**
 * The cookies of the service besides the access token. In production their names begin with `__Host-`: browsers accept such a cookie over
 * HTTPS only, and from no other host of the domain, so that nobody can plant one
 * (https://www.rfc-editor.org/rfc/rfc6265#section-8.6, https://developer.mozilla.org/docs/Web/HTTP/Reference/Headers/Set-Cookie#cookie_prefixes).
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { cookieValues } from '#http/token-extraction'

export interface HostCookieOptions {
  readonly sameSite: 'lax' | 'strict'
  /** Seconds; without it the cookie ends with the browser. */
  readonly maxAge?: number
}

declare module 'fastify' {
  interface FastifyInstance {
    /** The name that browsers know a cookie of the service by. */
    hostCookieName(name: string): string
  }
  interface FastifyRequest {
    /** @returns the cookie; `undefined` also for several values, one of which is a stranger's. */
    hostCookie(name: string): string | undefined
  }
  interface FastifyReply {
    setHostCookie(name: string, value: string, options: HostCookieOptions): FastifyReply
    clearHostCookie(name: string): FastifyReply
  }
}

const hostCookies = async (app: FastifyInstance): Promise<void> => {
  const { isProduction } = app.config
  const nameOf = (name: string): string => (isProduction ? `__Host-${name}` : name)
  // A host may have other defaults, such as a domain, which the prefix does not allow.
  const attributes = { httpOnly: true, path: '/', secure: isProduction, signed: false, domain: '' }

  app.decorate('hostCookieName', nameOf)
  app.decorateRequest('hostCookie', function hostCookie(this: FastifyRequest, name) {
    const [value, ...others] = cookieValues(this.headers.cookie ?? '', nameOf(name), app.parseCookie)
    return others.length === 0 ? value : undefined
  })
  app.decorateReply('setHostCookie', function setHostCookie(this: FastifyReply, name, value, options) {
    return this.setCookie(nameOf(name), value, { ...attributes, ...options })
  })
  app.decorateReply('clearHostCookie', function clearHostCookie(this: FastifyReply, name) {
    return this.clearCookie(nameOf(name), attributes)
  })
}

export default fp(hostCookies, { name: 'host-cookies', dependencies: ['access-token'] })
