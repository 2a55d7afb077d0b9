/** A receiver of webhooks: a server that keeps what it is sent, and responds as a test chooses. */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { asAdmin, type Context } from './build.ts'
import { until } from './until.ts'

const WAIT = 20_000

export interface Received {
  readonly url: string
  readonly headers: IncomingHttpHeaders
  /** The exact text. */
  readonly text: string
  readonly body: { type: string; timestamp: string; data: Record<string, unknown> }
}

type Respond = (response: ServerResponse, received: Received) => unknown

const textOf = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}

export const accept: Respond = response => response.writeHead(204).end()

/** Responds with a status and header fields. */
export const status =
  (code: number, headers: Record<string, string> = {}): Respond =>
  response =>
    response.writeHead(code, headers).end()

/** @param respond default: accepts everything. */
export const receiver = async (t: Context, respond: Respond = accept) => {
  const received: Received[] = []
  const behaviour = { respond }
  const server = createServer((request, response) => {
    response.on('error', () => undefined)
    textOf(request).then(
      text => {
        const { url = '', headers } = request
        const isJson = headers['content-type'] === 'application/json'
        const each = { url, headers, text, body: isJson ? JSON.parse(text) : {} }
        received.push(each)
        behaviour.respond(response, each)
      },
      () => undefined,
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = async (): Promise<void> => {
    if (!server.listening) return
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  }
  t.teardown(close)
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const ids = () => received.map(({ headers }) => String(headers['webhook-id']))
  return {
    host,
    url: `http://${host}/hook`,
    received,
    close,
    ids,
    types: () => received.map(({ body }) => body.type),
    respondWith(next: Respond): void {
      behaviour.respond = next
    },
    /** Waits until so many requests have arrived. */
    arrived: async (count: number): Promise<readonly Received[]> => {
      await until(
        async () => received.length,
        length => length >= count,
        WAIT,
      )
      return received
    },
  }
}

export type Receiver = Awaited<ReturnType<typeof receiver>>

export const ENCRYPTION_KEY = 'test-encryption-key-0123456789abcdef'

/** Settings of a service that may send to receivers of the test. */
export const allowing = (...receivers: readonly Receiver[]) => ({
  ENCRYPTION_KEY,
  WEBHOOK_ALLOWED_HOSTS: receivers.map(({ host }) => host).join(','),
})

type Call = { method: 'POST' | 'GET' | 'PUT' | 'DELETE'; url: string; payload?: object }

/** A request of the root key. */
export const asRoot = (app: FastifyInstance, { payload, ...call }: Call) =>
  app.inject({ ...call, headers: asAdmin, ...(payload !== undefined && { payload }) })

export interface TestWebhook {
  readonly id: string
  readonly secret: string
}

export const createWebhook = async (app: FastifyInstance, payload: object): Promise<TestWebhook> => {
  const response = await asRoot(app, { method: 'POST', url: '/admin/webhooks', payload })
  if (response.statusCode !== 201) throw new Error(response.body)
  return response.json()
}

/** The attempts of a webhook, the oldest first. */
export const attemptsOf = async (app: FastifyInstance, id: string) => {
  const response = await asRoot(app, { method: 'GET', url: `/admin/webhooks/${id}/attempts` })
  return (response.json().results as Record<string, unknown>[]).toReversed()
}

export const getWebhook = async (app: FastifyInstance, id: string) =>
  (await asRoot(app, { method: 'GET', url: `/admin/webhooks/${id}` })).json()
