/** Requests of hosted pages to the API of the same service, as the browser would send them over the same connection. */
import { json } from 'node:stream/consumers'
import type { FastifyInstance, FastifyRequest, InjectOptions } from 'fastify'
import { ERRORS, type ErrorBody, errorBody, ServiceError } from '#base/errors'
import { ADMIN_KEY_HEADER } from './admin-key-header.ts'
import type { ApiStream, StreamCall } from './pages/api-calls.ts'
import type { ApiCall, ApiResponse } from './pages/feature-pages.ts'

/**
 * What the API reads of the browser's request. The address is that of the same connection, so the service believes forwarded
 * addresses exactly where it believes them from the browser.
 */
const PASSED_ON = [
  'accept-language',
  'cookie',
  'origin',
  'sec-fetch-site',
  'traceparent',
  'tracestate',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
] as const

const headersOf = (
  { headers, host, socket }: FastifyRequest,
  adminKey: string | undefined,
): Record<string, string> => {
  const { remoteAddress } = socket
  // Without an address (a Unix socket), nobody is a trusted proxy.
  const passedOn = PASSED_ON.filter(
    name =>
      (remoteAddress !== undefined || !name.startsWith('x-forwarded-')) &&
      (adminKey === undefined || name !== 'cookie'),
  )
  return Object.fromEntries([
    ...(adminKey === undefined ? [] : [[ADMIN_KEY_HEADER, adminKey]]),
    ['host', headers.host ?? host],
    ['user-agent', headers['user-agent'] ?? ''],
    ...passedOn.flatMap(name => (headers[name] === undefined ? [] : [[name, String(headers[name])]])),
  ])
}

/** Segments that a URL parser drops, or resolves: the call would reach another route. `encodeURIComponent` leaves them alone. */
const DROPPED = /^(?:\.|%2e){0,2}$/i

/**
 * Where a call goes. Every path with values is made here: other code neither encodes nor concatenates them.
 * @returns the path; errors for a value, or a path, that would lead elsewhere.
 */
const pathOf = ({ path, params = {} }: Pick<ApiCall, 'path' | 'params'>): string | ErrorBody => {
  const { field, message } = ERRORS.badUrl
  const bad = Object.keys(params).find(name => DROPPED.test(params[name] ?? ''))
  if (bad !== undefined) return errorBody(bad, 'is not valid')
  const filled = path.replaceAll(/:(\w+)/g, (text, name) =>
    Object.hasOwn(params, name) ? encodeURIComponent(params[name] ?? '') : text,
  )
  const [segments = ''] = filled.split('?', 1)
  const isSound =
    segments.startsWith('/') &&
    !segments
      .slice(1)
      .split(/[\\/]/)
      .some(each => DROPPED.test(each))
  return isSound ? filled : errorBody(field, message)
}

/** @throws {ServiceError} `draining` */
const send = async (app: FastifyInstance, options: InjectOptions) => {
  try {
    return await app.inject(options)
  } catch (error) {
    // The only error: the service is closing.
    throw new ServiceError('draining', { cause: error })
  }
}

/** @throws {ServiceError} `draining` */
export const streamApi = async (
  app: FastifyInstance,
  request: FastifyRequest,
  { method, content, adminKey, signal, ...target }: StreamCall,
): Promise<ApiStream> => {
  const { remoteAddress } = request.socket
  const path = pathOf(target)
  if (typeof path !== 'string') return { status: 400, headers: {}, errors: path.errors, stream: null }
  const response = await send(app, {
    method,
    url: app.prefix + path,
    headers: {
      ...headersOf(request, adminKey),
      ...(content !== undefined && { 'content-type': content.type }),
    },
    ...(remoteAddress !== undefined && { remoteAddress }),
    ...(content !== undefined && { payload: content.bytes }),
    payloadAsStream: true,
    signal,
  })
  const { statusCode: status, headers } = response
  const stream = response.stream()
  if (status < 400) return { status, headers, errors: {}, stream }
  const { errors } = (await json(stream)) as ErrorBody
  return { status, headers, errors, stream: null }
}

/**
 * @param app the instance of the service.
 * @param request of the browser, whose session and address the API sees. Other credentials are not passed on.
 * @throws {ServiceError} `draining`
 */
export const callApi = async (
  app: FastifyInstance,
  request: FastifyRequest,
  { method, body, adminKey, ...target }: ApiCall,
): Promise<ApiResponse> => {
  const { remoteAddress } = request.socket
  const path = pathOf(target)
  if (typeof path !== 'string') return { status: 400, headers: {}, body: path, errors: path.errors }
  const { statusCode, headers, payload } = await send(app, {
    method,
    url: app.prefix + path,
    headers: headersOf(request, adminKey),
    ...(remoteAddress !== undefined && { remoteAddress }),
    ...(body !== undefined && { payload: body }),
  })
  const parsed = payload === '' ? null : JSON.parse(payload)
  return { status: statusCode, headers, body: parsed, errors: statusCode < 400 ? {} : parsed.errors }
}
