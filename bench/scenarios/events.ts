/** What it costs that others follow the changes of users: streams to clients, and webhooks. */
import { once } from 'node:events'
import { createServer, get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { runExpecting } from '../load/sockets.ts'
import { withServers } from '../processes.ts'
import { bearer, rawRequest } from '../requests.ts'
import { type Bench, type Finding, findings, type Scenario } from '../scenario.ts'
import { quantile } from '../statistics.ts'
import { createStore, startService } from '../stores.ts'

/** Each user has a stream of the own events. */
const USERS = 900

/** One network has at most as many of them. */
const PER_NETWORK = 100

const WEBHOOKS = 10

/** Changes a second, each of another user: each is one event, for one of the streams and for every webhook. */
const RATE = 200

/** Milliseconds until an event counts as lost, and between looks. */
const PATIENCE = 120_000
const TICK = 10

const ADMIN_KEY = 'bench-admin-key-0123456789abcdef'

/** Milliseconds from each change, as its event has it, to the arrival of the event. */
let arrivals: number[] = []

/** @param text JSON of an event, or of a delivery. */
const arrived = (text: string): void => {
  const at = /"(?:at|timestamp)":"([^"]+)"/.exec(text)?.[1]
  if (at !== undefined) arrivals.push(Date.now() - Date.parse(at))
}

/** Opens a stream for each user, from addresses of this machine such as 127.0.0.2. */
const openStreams = async (url: string, tokens: readonly string[]): Promise<void> => {
  for (const [index, token] of tokens.entries()) {
    const localAddress = `127.0.0.${2 + Math.floor(index / PER_NETWORK)}`
    const headers = { ...bearer(token), accept: 'text/event-stream' }
    const opened = get(`${url}/account/events`, { headers, agent: false, localAddress })
    const [stream] = (await once(opened, 'response')) as [IncomingMessage]
    if (stream.statusCode !== 200) throw new Error(`a stream had status ${stream.statusCode}`)
    let waiting = ''
    stream.setEncoding('utf8').on('data', (text: string) => {
      const frames = `${waiting}${text}`.split('\n\n')
      waiting = frames.pop() ?? ''
      for (const frame of frames) arrived(frame)
    })
    // The service is killed at the end.
    stream.on('error', () => undefined)
  }
}

/** Accepts what webhooks send. */
const receiver = createServer(async (request, response) => {
  let body = ''
  for await (const chunk of request) body += chunk
  arrived(body)
  response.writeHead(204).end()
})

const receiverHost = (): string => `127.0.0.1:${(receiver.address() as AddressInfo).port}`

const createWebhooks = async (url: string): Promise<void> => {
  const headers = { 'x-admin-key': ADMIN_KEY, 'content-type': 'application/json' }
  const body = JSON.stringify({ url: `http://${receiverHost()}/`, types: ['user.changed'] })
  for (let count = 0; count < WEBHOOKS; count += 1) {
    const { status } = await fetch(`${url}/admin/webhooks`, { method: 'POST', headers, body })
    if (status !== 201) throw new Error(`a webhook had status ${status}`)
  }
}

interface Kind {
  readonly name: string
  readonly follow?: (url: string, tokens: readonly string[]) => Promise<void>
  /** How many get each event. */
  readonly each: number
}

const KINDS: readonly Kind[] = [
  { name: 'no followers', each: 0 },
  { name: `${USERS} streams`, follow: openStreams, each: 1 },
  { name: 'ten webhooks', follow: createWebhooks, each: WEBHOOKS },
]

const measure = async (
  { engine, rounds, seconds }: Bench,
  { name, follow, each }: Kind,
): Promise<readonly Finding[]> => {
  const store = await createStore(engine, USERS)
  const tokens = await store.tokens(USERS)
  const ENCRYPTION_KEY = 'bench-encryption-key-0123456789abcdef'
  const start = () =>
    startService(store, { ADMIN_KEY, ENCRYPTION_KEY, WEBHOOK_ALLOWED_HOSTS: receiverHost() })
  let changes = 0
  const next = (): string => {
    changes += 1
    const body = JSON.stringify({ firstName: `name ${changes}` })
    const headers = bearer(tokens[changes % USERS] ?? '')
    return rawRequest({ method: 'PUT', path: '/account', headers, body })
  }
  return withServers(engine === 'postgres' ? [start, start] : [start], async (...servers) => {
    const [url = '', followed = url] = servers.map(server => server.url)
    await follow?.(followed, tokens)
    const sample = async (seconds: number) => {
      arrivals = []
      const { latencies } = await runExpecting(200, { url, connections: 16, seconds, rate: RATE, next })
      const end = performance.now() + PATIENCE
      while (arrivals.length < latencies.length * each) {
        if (performance.now() > end) throw new Error(`${name}: only ${arrivals.length} events arrived`)
        await delay(TICK)
      }
      return { latencies, arrivals }
    }
    await sample(1)
    const samples = []
    while (samples.length < rounds) samples.push(await sample(seconds))
    return [
      ...findings(samples, [
        [`${name}: a change, p50`, ({ latencies }) => quantile(latencies, 0.5), 'ms'],
        [`${name}: a change, p99`, ({ latencies }) => quantile(latencies, 0.99), 'ms'],
      ]),
      ...(each === 0
        ? []
        : findings(samples, [
            [`${name}: arrival, p50`, ({ arrivals }) => quantile(arrivals, 0.5), 'ms'],
            [`${name}: arrival, p99`, ({ arrivals }) => quantile(arrivals, 0.99), 'ms', { atMost: 300 }],
          ])),
    ]
  })
}

export const events: Scenario = {
  name: 'events',
  title: `${RATE} changes of users a second, which nobody follows, ${USERS} streams, or ten webhooks; on PostgreSQL changes are on one instance and followers on another`,
  async run(bench) {
    receiver.listen(0, '127.0.0.1')
    await once(receiver, 'listening')
    try {
      const all: Finding[] = []
      for (const kind of KINDS) all.push(...(await measure(bench, kind)))
      return all
    } finally {
      receiver.closeAllConnections()
      receiver.close()
    }
  },
}
