/** A request whose body ends only after something else has happened. */
import { once } from 'node:events'
import { type AddressInfo, createConnection } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'

export interface SlowRequest {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: object
}

/** Sends most of the body after `meanwhile`, which runs when the hooks before the body have run. @returns the raw response. */
export const sendSlowly = async (
  app: FastifyInstance,
  { method, url, headers, body }: SlowRequest,
  meanwhile: () => Promise<unknown>,
): Promise<string> => {
  const { port } = app.server.address() as AddressInfo
  const text = JSON.stringify(body)
  const socket = createConnection(port, '127.0.0.1')
  let response = ''
  socket.on('data', chunk => {
    response += chunk
  })
  const closed = once(socket, 'close')
  const arrived = once(app.server, 'request')
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(
    `${method} ${url} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${fields.join('')}` +
      `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text.slice(0, 5)}`,
  )
  await arrived
  // The gate has passed the request: its hooks run before the body arrives.
  await setImmediate()
  await meanwhile()
  socket.write(text.slice(5))
  await closed
  return response
}
