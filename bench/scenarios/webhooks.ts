import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { type Server, startService, withServers } from '../processes.ts'
import { bearer } from '../requests.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { quantile, spread } from '../statistics.ts'
import { createStore } from '../stores.ts'

const USERS = 1_000
const WEBHOOKS = 10

/** Changes a second for the latency of writes, each of which every webhook gets. */
const RATE = 200

/** Events that are delivered again for the throughput. */
const EVENTS = 10_000

/** Requests at once that write them. */
const WRITERS = 32

const ADMIN_KEY = 'bench-admin-key-0123456789abcdef'

/** Milliseconds between looks. */
const TICK = 10

/** Counts what it is sent, and accepts it. */
const startReceiver = async () => {
  let count = 0
  const server = createServer((incoming, response) => {
    count += 1
    incoming.resume()
    response.writeHead(204).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    count: () => count,
    async until(expected: number): Promise<void> {
      while (count < expected) await delay(TICK)
    },
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

type Receiver = Awaited<ReturnType<typeof startReceiver>>

const call = async (
  agent: Agent,
  method: string,
  url: string,
  headers: Record<string, string>,
  body?: object,
): Promise<Record<string, unknown>> => {
  const sent = request(url, { method, headers: { ...headers, 'content-type': 'application/json' }, agent })
  sent.end(body && JSON.stringify(body))
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  const text = Buffer.concat(chunks).toString()
  if ((response.statusCode ?? 500) >= 400)
    throw new Error(`${method} ${url} had ${response.statusCode}: ${text}`)
  return text === '' ? {} : JSON.parse(text)
}

let changes = 0

/** What one round uses. */
class Round {
  readonly #server: Server
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64 })
  readonly #tokens: readonly string[]
  readonly #receiver: Receiver

  constructor(server: Server, tokens: readonly string[], receiver: Receiver) {
    this.#server = server
    this.#tokens = tokens
    this.#receiver = receiver
  }

  /** @returns milliseconds. */
  async #change(): Promise<number> {
    changes += 1
    const token = this.#tokens[changes % USERS] ?? ''
    const start = performance.now()
    await call(this.#agent, 'PUT', `${this.#server.url}/account`, bearer(token), {
      firstName: `name ${changes}`,
    })
    return performance.now() - start
  }

  /** Changes at {@link RATE}. @returns milliseconds of each. */
  async changeAtRate(seconds: number): Promise<readonly number[]> {
    const pending: Promise<number>[] = []
    const start = performance.now()
    while (pending.length < seconds * RATE) {
      const due = Math.min(seconds * RATE, ((performance.now() - start) * RATE) / 1_000)
      while (pending.length < due) pending.push(this.#change())
      await delay(TICK)
    }
    return Promise.all(pending)
  }

  /** Writes {@link EVENTS} events. */
  async write(): Promise<void> {
    let written = 0
    const writer = async (): Promise<void> => {
      while (written < EVENTS) {
        written += 1
        await this.#change()
      }
    }
    await Promise.all(Array.from({ length: WRITERS }, writer))
  }

  /** Creates the webhooks, paused. @returns their ids. */
  async create(): Promise<readonly string[]> {
    const ids: string[] = []
    for (let count = 0; count < WEBHOOKS; count += 1) {
      const body = { url: `http://${this.#receiver.host}/`, types: ['user.changed'] }
      ids.push(String((await this.#admin('POST', '', body)).id))
    }
    return ids
  }

  /** @returns deliveries a second, and processors that the service kept busy. */
  async replay(ids: readonly string[]): Promise<{ rate: number; cpu: number }> {
    for (const id of ids) await this.#admin('POST', `/${id}/pause`)
    const begin = new Date().toISOString()
    await this.write()
    for (const id of ids) await this.#admin('POST', `/${id}/replay`, { from: begin })
    const [before, start, expected] = [
      await this.#server.ask('cpu'),
      performance.now(),
      this.#receiver.count() + EVENTS * WEBHOOKS,
    ]
    for (const id of ids) await this.#admin('POST', `/${id}/resume`)
    await this.#receiver.until(expected)
    const seconds = (performance.now() - start) / 1_000
    const cpu = ((await this.#server.ask('cpu')) - before) / (seconds * 1e6)
    return { rate: (EVENTS * WEBHOOKS) / seconds, cpu }
  }

  async remove(ids: readonly string[]): Promise<void> {
    for (const id of ids) await this.#admin('DELETE', `/${id}`)
  }

  close(): void {
    this.#agent.destroy()
  }

  #admin(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
    const url = `${this.#server.url}/admin/webhooks${path}`
    return call(this.#agent, method, url, { 'x-admin-key': ADMIN_KEY }, body)
  }
}

interface Sample {
  readonly without: readonly number[]
  readonly with: readonly number[]
  readonly rate: number
  readonly cpu: number
}

const measure = async ({ engine, rounds, seconds }: Bench): Promise<readonly Sample[]> => {
  const store = await createStore(engine, USERS)
  const receiver = await startReceiver()
  const env = {
    ...{ ADMIN_KEY, WEBHOOK_ALLOWED_HOSTS: receiver.host, RATE_LIMIT: 'off', WORKERS: '1' },
    ENCRYPTION_KEY: 'bench-encryption-key-0123456789abcdef',
  }
  const tokens = await store.tokens(USERS)
  try {
    return await withServers([() => startService(store, env)], async server => {
      const round = new Round(server, tokens, receiver)
      await round.changeAtRate(2)
      const samples: Sample[] = []
      for (let count = 0; count < rounds; count += 1) {
        const without = await round.changeAtRate(seconds)
        const ids = await round.create()
        const during = await round.changeAtRate(seconds)
        samples.push({ without, with: during, ...(await round.replay(ids)) })
        await round.remove(ids)
      }
      round.close()
      return samples
    })
  } finally {
    receiver.close()
  }
}

/** Writes alternate without webhooks and with ten. The receiver shares the machine. */
export const webhooks: Scenario = {
  name: 'webhooks',
  title:
    'ten webhooks on one process: 200 changes of users a second beside them, and 10,000 events that all of them get again',
  run: async bench => {
    const samples = await measure(bench)
    const of = (value: (sample: Sample) => number) => spread(samples.map(value))
    return [
      {
        what: 'a change without webhooks, p50',
        value: of(({ without }) => quantile(without, 0.5)),
        unit: 'ms',
      },
      {
        what: 'a change with ten webhooks, p50',
        value: of(sample => quantile(sample.with, 0.5)),
        unit: 'ms',
      },
      {
        what: 'a change without webhooks, p99',
        value: of(({ without }) => quantile(without, 0.99)),
        unit: 'ms',
      },
      {
        what: 'a change with ten webhooks, p99',
        value: of(sample => quantile(sample.with, 0.99)),
        unit: 'ms',
      },
      { what: 'deliveries', value: of(({ rate }) => rate), unit: '/s' },
      { what: 'busy processors while delivering', value: of(({ cpu }) => cpu), unit: '' },
    ]
  },
}
