/** The listener of `METRICS_PORT`: `GET /metrics`, and nothing else. */
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ERRORS, type ErrorName, errorBody } from '#base/errors'
import { CONTENT_TYPE } from '#base/statistics/text-format'
import { toListenError } from '#http/listen-error'
import { createServer } from '#http/node-http'
import { respondRaw } from '#http/socket-errors'

/** Milliseconds that a client has to send its request. */
const REQUEST_TIMEOUT = 5_000

const METHODS = ['GET', 'HEAD']

export interface MetricsServer {
  /** The URL of the metrics. */
  readonly url: string
  /** Closes the listener and all connections at once. */
  close(): Promise<void>
}

export interface MetricsServerDeps {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  readonly text: () => Promise<string>
  readonly onFailure: (error: unknown) => void
}

const refuse = (response: ServerResponse, name: ErrorName): void => {
  const { status, field, message } = ERRORS[name]
  respondRaw(response, status, errorBody(field, message))
}

const respond = async (
  { url = '', method = '' }: IncomingMessage,
  response: ServerResponse,
  { text, onFailure }: MetricsServerDeps,
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
  } catch (error) {
    onFailure(error)
    refuse(response, 'internalError')
  }
}

/** @throws {ListenError} if the address cannot be used. */
export const openMetricsServer = async (deps: MetricsServerDeps): Promise<MetricsServer> => {
  const { host, port } = deps
  const server = createServer(
    { requestTimeout: REQUEST_TIMEOUT, headersTimeout: REQUEST_TIMEOUT },
    (request, response) => void respond(request, response, deps),
  )
  try {
    await once(server.listen(port, host), 'listening')
  } catch (error) {
    throw toListenError(error, { host, port }, { host: 'METRICS_HOST', port: 'METRICS_PORT' })
  }
  const { address, family, port: actualPort } = server.address() as AddressInfo
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${actualPort}/metrics`,
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
