/** Connections that the kernel spreads over the workers of a service. */
import { Agent, request } from 'node:http'
import type { Context } from '../support/build.ts'
import type { Running } from '../support/process.ts'

export interface Received {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly json: never
}

export interface Call {
  readonly method?: string
  readonly path: string
  readonly headers?: Record<string, string>
  readonly body?: object
}

/** One connection, which is kept open: one worker receives all of its requests. */
export type Connection = (call: Call) => Promise<Received>

const openConnection = (t: Context, { port }: Running): Connection => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  return ({ method = 'GET', path, headers = {}, body }) => {
    const { promise, resolve, reject } = Promise.withResolvers<Received>()
    const text = body === undefined ? undefined : JSON.stringify(body)
    const contentType = text === undefined ? {} : { 'content-type': 'application/json' }
    const options = { host: '127.0.0.1', port, agent, method, path, headers: { ...contentType, ...headers } }
    const sent = request(options, response => {
      let received = ''
      response.setEncoding('utf8')
      response.on('data', chunk => {
        received += chunk
      })
      response.on('end', () => {
        const json = received === '' ? null : JSON.parse(received)
        resolve({ status: response.statusCode ?? 0, headers: response.headers, json: json as never })
      })
    })
    sent.on('error', reject)
    sent.end(text)
    return promise
  }
}

/** So many that all of them lead to one of two workers in one of 32,768 runs. */
const CONNECTIONS = 16

export const openConnections = (t: Context, server: Running): readonly Connection[] =>
  Array.from({ length: CONNECTIONS }, () => openConnection(t, server))

/** Sends a call on every connection, one after the other. */
export const onEach = async (connections: readonly Connection[], call: Call): Promise<Received[]> => {
  const received: Received[] = []
  for (const connection of connections) received.push(await connection(call))
  return received
}
