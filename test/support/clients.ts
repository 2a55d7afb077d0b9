/** Clients of a service under test, over a real connection. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { createAdminClient, createClient } from '../../client/client.ts'
import { ADMIN_KEY, type Context } from './build.ts'

export const listen = async (app: FastifyInstance): Promise<string> =>
  app.server.listening
    ? `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`
    : app.listen({ host: '127.0.0.1', port: 0 })

export const clientsOf = async (app: FastifyInstance) => {
  const baseUrl = await listen(app)
  return {
    baseUrl,
    gatehouse: createClient({ baseUrl }),
    admin: createAdminClient({ baseUrl, adminKey: ADMIN_KEY }),
  }
}

/** What a proxy or a broken connection may do, in the order of the requests. The last one stays. */
export const scripted = async (
  t: Context,
  ...responses: ((response: ServerResponse, request: IncomingMessage) => void)[]
) => {
  const requests: string[] = []
  const server = createServer((request, response) => {
    const respond = responses[Math.min(requests.length, responses.length - 1)]
    requests.push(`${request.method} ${request.url}`)
    request.resume()
    respond?.(response, request)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
}

/** The error with which a call rejects. @throws {Error} if it does not. */
export const rejection = async (call: Promise<unknown>): Promise<unknown> => {
  const outcome = await call.then(
    value => ({ value }),
    error => ({ error }),
  )
  if ('value' in outcome) throw new Error(`the call resolved with ${JSON.stringify(outcome.value)}`)
  return outcome.error
}
