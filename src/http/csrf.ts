/**
 * CSRF protection (DESIGN §5). Browsers send the cookie with requests from any page, so an unsafe request that is authenticated by
 * the cookie must come from this service's origin or a configured one.
 */
import type { FastifyRequest } from 'fastify'
import { ServiceError } from '../errors.ts'

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])

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
  SAFE_METHODS.has(method) && headers.upgrade?.toLowerCase() !== 'websocket'

/** @returns the error of an unsafe request from another site, with or without a user. */
export const crossSiteError = (
  request: FastifyRequest,
  allowedOrigins: readonly string[],
): ServiceError | undefined =>
  isSafe(request) || isAllowedOrigin(request, allowedOrigins) ? undefined : new ServiceError('csrf')

/** @returns the error of a request that another site may have caused. Call it after authentication. */
export const csrfError = (
  request: FastifyRequest,
  allowedOrigins: readonly string[],
): ServiceError | undefined => {
  if (request.principal === null || request.accessTokenSource !== 'cookie') return undefined
  return crossSiteError(request, allowedOrigins)
}
