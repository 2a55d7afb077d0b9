import { once } from 'node:events'
import { Agent, get, type IncomingMessage, request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { type Server, startService, withServers } from '../processes.ts'
import { bearer } from '../requests.ts'
import type { Bench, Finding, Scenario } from '../scenario.ts'
import { quantile, spread } from '../statistics.ts'
import { createStore, type Engine } from '../stores.ts'

/** Each user has a stream of the own events. Users have at most as many streams of a process. */
const USERS = 900

/** One network has at most as many of them. */
const PER_NETWORK = 100

/** Changes a second, each of another user: each is one event, for one of the streams. */
const RATE = 1_000

/** Milliseconds between two batches of changes. */
const TICK = 10

/** Milliseconds until an event counts as lost. */
const WAIT = 10_000

const MB = 1_000_000

interface Client {
  readonly token: string
  /** Where the user changes. With two instances, the other one has the stream. */
  readonly writesTo: Server
  readonly readsFrom: Server
  /** `performance.now()` when the responses to the changes arrived, which follow their commits, and when the events did. */
  committed: number[]
  arrived: number[]
}

interface Sample {
  /** Milliseconds from commit to arrival. */
  readonly latencies: readonly number[]
  /** Changes a second, while there are streams. */
  readonly rate: number
  /** Processors that the instances kept busy, with streams and without. */
  readonly cpu: number
  readonly cpuWithout: number
  /** Bytes of the instances. */
  readonly rss: number
  readonly rssWithout: number
}

/** @param network of the client: addresses of this machine, such as 127.0.0.2. */
const open = async (client: Client, network: number): Promise<IncomingMessage> => {
  const headers = { ...bearer(client.token), accept: 'text/event-stream' }
  const [response] = (await once(
    get(`${client.readsFrom.url}/account/events`, {
      headers,
      agent: false,
      localAddress: `127.0.0.${2 + network}`,
    }),
    'response',
  )) as [IncomingMessage]
  if (response.statusCode !== 200) throw new Error(`a stream had status ${response.statusCode}`)
  let waiting = ''
  response.setEncoding('utf8').on('data', (text: string) => {
    const frames = `${waiting}${text}`.split('\n\n')
    waiting = frames.pop() ?? ''
    for (const frame of frames) if (frame.includes('data: ')) client.arrived.push(performance.now())
  })
  return response.on('error', () => undefined)
}

let changes = 0

const change = async (agent: Agent, { token, writesTo, committed }: Client): Promise<void> => {
  changes += 1
  const headers = { ...bearer(token), 'content-type': 'application/json' }
  const sent = request(`${writesTo.url}/account`, { method: 'PUT', headers, agent })
  sent.end(JSON.stringify({ firstName: `name ${changes}` }))
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  committed.push(performance.now())
  response.resume()
  if (response.statusCode !== 200) throw new Error(`a change had status ${response.statusCode}`)
}

/** Changes every user in turn, at {@link RATE}. */
const changeAll = async (agent: Agent, clients: readonly Client[], seconds: number): Promise<void> => {
  const pending: Promise<void>[] = []
  const start = performance.now()
  while (pending.length < seconds * RATE) {
    const due = Math.min(seconds * RATE, ((performance.now() - start) * RATE) / 1_000)
    while (pending.length < due) pending.push(change(agent, clients[pending.length % USERS] as Client))
    await delay(TICK)
  }
  await Promise.all(pending)
}

const sumOf = async (servers: readonly Server[], question: 'cpu' | 'rss'): Promise<number> =>
  (await Promise.all(servers.map(server => server.ask(question)))).reduce((sum, value) => sum + value, 0)

/** @returns processors that the servers kept busy while it ran, and the seconds it took. */
const busy = async (servers: readonly Server[], run: () => Promise<void>) => {
  const [before, start] = [await sumOf(servers, 'cpu'), performance.now()]
  await run()
  const seconds = (performance.now() - start) / 1_000
  return { cpu: ((await sumOf(servers, 'cpu')) - before) / (seconds * 1e6), seconds }
}

/** @throws {Error} if an event does not arrive. */
const allArrived = async (clients: readonly Client[]): Promise<void> => {
  const end = performance.now() + WAIT
  while (clients.some(({ committed, arrived }) => arrived.length < committed.length)) {
    if (performance.now() > end) throw new Error('events were lost')
    await delay(TICK)
  }
}

const round = async (
  servers: readonly Server[],
  agent: Agent,
  clients: readonly Client[],
  seconds: number,
): Promise<Sample> => {
  const rssWithout = await sumOf(servers, 'rss')
  const without = await busy(servers, () => changeAll(agent, clients, seconds))
  for (const client of clients) client.committed = []
  const streams: IncomingMessage[] = []
  for (const [index, client] of clients.entries())
    streams.push(await open(client, Math.floor(index / PER_NETWORK)))
  const { cpu, seconds: took } = await busy(servers, () => changeAll(agent, clients, seconds))
  await allArrived(clients)
  const rss = await sumOf(servers, 'rss')
  const latencies = clients.flatMap(({ committed, arrived }) =>
    arrived.map((at, index) => Math.max(0, at - (committed[index] ?? at))),
  )
  for (const stream of streams) stream.destroy()
  for (const client of clients) Object.assign(client, { committed: [], arrived: [] })
  const rate = latencies.length / took
  return { latencies, rate, cpu, cpuWithout: without.cpu, rss, rssWithout }
}

const measure = async (
  { rounds, seconds }: Bench,
  engine: Engine,
  instances: number,
): Promise<readonly Sample[]> => {
  const store = await createStore(engine, USERS)
  const tokens = await store.tokens(USERS)
  const starts = Array.from({ length: instances }, () => () => startService(store))
  return withServers(starts, async (...servers) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 64 })
    const instance = (index: number): Server => servers[index % instances] as Server
    const clients = tokens.map((token, index) => ({
      ...{ token, writesTo: instance(index), readsFrom: instance(index + 1) },
      ...{ committed: [], arrived: [] },
    }))
    const samples: Sample[] = []
    await round(servers, agent, clients, 2)
    for (let count = 0; count < rounds; count += 1)
      samples.push(await round(servers, agent, clients, seconds))
    agent.destroy()
    return samples
  })
}

const findingsOf = (name: string, samples: readonly Sample[]): readonly Finding[] => {
  const of = (value: (sample: Sample) => number) => spread(samples.map(value))
  return [
    {
      what: `${name}: commit to arrival, p50`,
      value: of(({ latencies }) => quantile(latencies, 0.5)),
      unit: 'ms',
    },
    {
      what: `${name}: commit to arrival, p99`,
      value: of(({ latencies }) => quantile(latencies, 0.99)),
      unit: 'ms',
      target: { atMost: 300 },
    },
    { what: `${name}: events`, value: of(({ rate }) => rate), unit: '/s' },
    { what: `${name}: busy processors with streams`, value: of(({ cpu }) => cpu), unit: '' },
    { what: `${name}: busy processors without`, value: of(({ cpuWithout }) => cpuWithout), unit: '' },
    { what: `${name}: resident memory with streams`, value: of(({ rss }) => rss / MB), unit: 'MB' },
    { what: `${name}: resident memory without`, value: of(({ rssWithout }) => rssWithout / MB), unit: 'MB' },
  ]
}

/** Without streams, the same changes are made: the difference is what streams cost. */
export const streams: Scenario = {
  name: 'streams',
  title:
    '1,000 users follow their own events, while 1,000 of them a second change their names: on one instance, and on two on PostgreSQL, each change on the one that has not the stream',
  run: async bench => [
    ...findingsOf('one instance', await measure(bench, bench.engine, 1)),
    ...findingsOf('two instances', await measure(bench, 'postgres', 2)),
  ],
}
