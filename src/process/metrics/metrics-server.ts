/** The listener of `METRICS_PORT`: `GET /metrics`, and nothing else. */
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { BaseLogger } from 'pino'
import { ERRORS, type ErrorName, errorBody } from '#base/errors'
import { CONTENT_TYPE } from '#base/statistics/text-format'
import { toListenError } from '#http/listen-error'
import { createServer } from '#http/node-http'
import { respondRaw } from '#http/socket-errors'

/** Milliseconds that a client has to send its request. */
const REQUEST_TIMEOUT = 5_000

const METHODS = ['GET', 'HEAD']

export interface MetricsServer {
  /** Closes the listener and all connections at once. */
  close(): Promise<void>
}

type Log = Pick<BaseLogger, 'error' | 'info'>

const refuse = (response: ServerResponse, name: ErrorName): void => {
  const { status, field, message } = ERRORS[name]
  respondRaw(response, status, errorBody(field, message))
}

const respond = async (
  { url = '', method = '' }: IncomingMessage,
  response: ServerResponse,
  text: () => Promise<string>,
  log: Log,
): Promise<void> => {
  if (url.split('?', 1)[0] !== '/metrics') return refuse(response, 'routeNotFound')
  if (!METHODS.includes(method)) {
    response.setHeader('allow', METHODS.join(', '))
    return refuse(response, 'methodNotAllowed')
  }
  try {
    const body = await text()
    response.setHeader('content-type', CONTENT_TYPE).setHeader('cache-control', 'no-store')
    response.setHeader('x-content-type-options', 'nosniff').end(body)
  } catch (err) {
    log.error({ err }, 'metrics could not be read')
    refuse(response, 'internalError')
  }
}

/**
 * Serves the metrics, and logs where.
 * @returns `null` without a port; 0 is any free one.
 * @throws {ListenError} if the address cannot be used.
 */
export const openMetricsServer = async (
  { host, port }: { readonly host: string; readonly port: number | null },
  text: () => Promise<string>,
  log: Log,
): Promise<MetricsServer | null> => {
  if (port === null) return null
  const server = createServer(
    { requestTimeout: REQUEST_TIMEOUT, headersTimeout: REQUEST_TIMEOUT },
    (request, response) => void respond(request, response, text, log),
  )
  try {
    await once(server.listen(port, host), 'listening')
  } catch (error) {
    throw toListenError(error, { host, port }, { host: 'METRICS_HOST', port: 'METRICS_PORT' })
  }
  const { address, family, port: actualPort } = server.address() as AddressInfo
  log.info(`Metrics at http://${family === 'IPv6' ? `[${address}]` : address}:${actualPort}/metrics`)
  return {
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
