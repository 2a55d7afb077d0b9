/** Clients of event streams, over real sockets. */
import { once } from 'node:events'
import { get, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Headers } from './admin-keys.ts'
import type { Context } from './build.ts'
import { until } from './until.ts'

export interface StreamedEvent {
  readonly id: string
  readonly data: { readonly id: string; readonly type: string; readonly userId?: string | null }
  /** `performance.now()` */
  readonly arrivedAt: number
}

/** Milliseconds until events count as lost, on a busy machine. */
const WAIT = 20_000

/** A response of which nothing is read before `read`. */
export class StreamResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly events: StreamedEvent[] = []
  /** Of the last frame, also of one without an event. */
  lastEventId = ''
  text = ''
  readonly ended: Promise<void>
  readonly #message: IncomingMessage
  #waiting = ''

  constructor(message: IncomingMessage) {
    this.#message = message
    this.status = message.statusCode ?? 0
    this.headers = message.headers
    const { promise, resolve } = Promise.withResolvers<void>()
    this.ended = promise
    message.once('close', resolve).on('error', () => undefined)
  }

  /** Reads as `EventSource` does. */
  read(): this {
    this.#message.setEncoding('utf8').on('data', (text: string) => {
      this.text += text
      const frames = `${this.#waiting}${text}`.split('\n\n')
      this.#waiting = frames.pop() ?? ''
      for (const frame of frames) this.#take(frame)
    })
    return this
  }

  /** The ids of the first events, once there are as many. */
  async ids(count: number): Promise<readonly string[]> {
    await until(
      () => this.events.length,
      length => length >= count,
      WAIT,
    )
    return this.events.map(({ data }) => data.id)
  }

  close(): void {
    this.#message.destroy()
  }

  #take(frame: string): void {
    const fields = new Map(frame.split('\n').map(line => line.split(/: ?(.*)/s, 2) as [string, string]))
    this.lastEventId = fields.get('id') ?? this.lastEventId
    const data = fields.get('data')
    if (data !== undefined)
      this.events.push({ id: this.lastEventId, data: JSON.parse(data), arrivedAt: performance.now() })
  }
}

/** The origin of an app, which begins to listen. */
export const listening = async (app: FastifyInstance): Promise<string> => {
  if (!app.server.listening) await app.listen({ host: '127.0.0.1', port: 0 })
  return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`
}

/** Requests a stream. */
export const requestStream = async (
  t: Context,
  app: FastifyInstance,
  path: string,
  headers: Headers,
): Promise<StreamResponse> => {
  const request = get(`${await listening(app)}${path}`, {
    headers: { accept: 'text/event-stream', ...headers },
    agent: false,
  })
  t.teardown(() => request.destroy())
  const [message] = (await once(request, 'response')) as [IncomingMessage]
  return new StreamResponse(message)
}

/** Opens a stream and reads it. @throws {Error} if the response is none. */
export const openStream = async (
  t: Context,
  app: FastifyInstance,
  path: string,
  headers: Headers,
): Promise<StreamResponse> => {
  const response = (await requestStream(t, app, path, headers)).read()
  if (response.status === 200) return response
  await response.ended
  throw new Error(`${response.status} ${response.text}`)
}
