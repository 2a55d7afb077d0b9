/**
 * Protection against requests of other sites (docs/design.md, "Tokens and sessions"). Browsers send the cookie with requests from any page,
 * so an unsafe request that is authenticated by the cookie must come from this service's origin or a configured one. So must an anonymous
 * one that any page can send without a preflight: it would use up the limits of the visitor's address.
 */
import type { FastifyRequest } from 'fastify'
import { ServiceError } from '#base/errors'
import { ADMIN_KEY_HEADER } from './admin-key-header.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether forms of any site may call it. The route must change nothing, and tell a page nothing of a visitor. */
    isOpenToSites?: true
  }
}

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])

/** RFC 9110 §9.2.1: whether requests with this method change nothing. */
export const isSafeMethod = (method: string): boolean => SAFE_METHODS.has(method)

const isAllowedOrigin = (
  { headers, protocol, host }: FastifyRequest,
  allowed: readonly string[],
): boolean => {
  const site = headers['sec-fetch-site']
  if (site === 'same-origin' || site === 'none') return true
  const { origin } = headers
  if (origin !== undefined) return origin === `${protocol}://${host}` || allowed.includes(origin)
  // Neither header: not a current browser, but curl, for example.
  return site === undefined
}

/** Browsers open WebSockets to any origin with a GET. */
const isSafe = ({ method, headers }: FastifyRequest): boolean =>
  isSafeMethod(method) && headers.upgrade?.toLowerCase() !== 'websocket'

/** @returns the error of an unsafe request from another site, with or without a user. */
export const crossSiteError = (
  request: FastifyRequest,
  allowedOrigins: readonly string[],
): ServiceError | undefined =>
  isSafe(request) ||
  isAllowedOrigin(request, allowedOrigins) ||
  request.routeOptions.config.isOpenToSites === true
    ? undefined
    : new ServiceError('csrf')

/** @returns the error of a request in the user's name that another site may have caused. Call it after authentication. */
export const csrfError = (
  request: FastifyRequest,
  allowedOrigins: readonly string[],
): ServiceError | undefined => {
  if (request.principal === null || request.accessTokenSource !== 'cookie') return undefined
  return crossSiteError(request, allowedOrigins)
}

const FORM_TYPES = new Set(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data'])

/**
 * Whether browsers send a request like this to any site without a preflight (https://fetch.spec.whatwg.org/#cors-safelisted-method).
 * `Authorization` and admin keys need one.
 */
const isSimple = ({ method, headers }: FastifyRequest): boolean => {
  if (method !== 'POST') return false
  if (headers.authorization !== undefined || headers[ADMIN_KEY_HEADER] !== undefined) return false
  const type = headers['content-type']
  return type === undefined || FORM_TYPES.has((type.split(';', 1)[0] ?? '').trim().toLowerCase())
}

/**
 * @param origins that may send simple requests: `ALLOWED_ORIGINS` and `CORS_ORIGINS`.
 * @returns the error of a simple request from another site, with or without a user.
 */
export const simpleRequestError = (
  request: FastifyRequest,
  origins: readonly string[],
): ServiceError | undefined => (isSimple(request) ? crossSiteError(request, origins) : undefined)
