import { runSockets } from '../load/sockets.ts'
import { type Server, startService, withServers } from '../processes.ts'
import { bearer, rawRequest } from '../requests.ts'
import type { Bench, Finding, Scenario } from '../scenario.ts'
import { quantile, spread } from '../statistics.ts'

const USERS = 1_000_000
const LIMIT = 20

/** Pages per second: few enough that requests do not wait for each other. */
const RATE = 100

interface Page {
  readonly results: readonly unknown[]
  readonly nextCursor: string | null
}

/** A cursor at a position between the newest user (0) and the oldest (1). */
const cursorAt = async (server: Server, token: string, share: number): Promise<string> => {
  const read = async (query: string): Promise<Page> =>
    (await (await fetch(`${server.url}/users?${query}`, { headers: bearer(token) })).json()) as Page
  const ends = await Promise.all([read('limit=1'), read('limit=1&sort=createdAt')])
  const [newest, oldest] = ends.map(({ nextCursor }) => positionOf(nextCursor)) as [Position, Position]
  const key = Math.round(newest[1] - (newest[1] - oldest[1]) * share)
  return Buffer.from(JSON.stringify(['-createdAt', key, newest[2]])).toString('base64url')
}

type Position = readonly [sort: string, key: number, id: string]

const positionOf = (cursor: string | null): Position =>
  JSON.parse(Buffer.from(cursor ?? '', 'base64url').toString()) as Position

const latenciesOf = async ({ seconds }: Bench, server: Server, token: string, query: string) => {
  const path = `/users?limit=${LIMIT}${query}`
  const request = rawRequest({ method: 'GET', path, headers: bearer(token) })
  const load = { url: server.url, connections: 4, seconds, rate: RATE, next: () => request }
  const { latencies } = await runSockets(load)
  const ok = latencies.get(200)
  if (ok === undefined || latencies.size > 1) throw new Error(`${path}: ${[...latencies.keys()].join(', ')}`)
  return { p50: quantile(ok, 0.5), p99: quantile(ok, 0.99) }
}

const PAGES = ['first page', 'middle page', 'last page', 'search, 1 match', 'search, 10,000 matches'] as const

export const lists: Scenario = {
  name: 'lists',
  title: 'GET /users?limit=20, 1,000,000 users, 100 a second',
  run: async bench => {
    const store = await bench.store(USERS)
    const [token = ''] = await store.tokens(1)
    return withServers([() => startService(store)], async server => {
      const queries: Record<(typeof PAGES)[number], string> = {
        'first page': '',
        'middle page': `&cursor=${await cursorAt(server, token, 0.5)}`,
        'last page': `&cursor=${await cursorAt(server, token, 0.9999)}`,
        'search, 1 match': '&search=first00123456',
        'search, 10,000 matches': '&search=last0012',
      }
      const measured = new Map(PAGES.map(page => [page, [] as { p50: number; p99: number }[]]))
      for (let round = 0; round < bench.rounds; round += 1) {
        for (const page of PAGES) {
          measured.get(page)?.push(await latenciesOf(bench, server, token, queries[page]))
        }
      }
      const of = (page: (typeof PAGES)[number], figure: 'p50' | 'p99') =>
        measured.get(page)?.map(sample => sample[figure]) ?? []
      const deep = (page: (typeof PAGES)[number]): Finding => ({
        what: `p50, ${page} ÷ first page`,
        value: spread(of(page, 'p50').map((p50, round) => p50 / (of('first page', 'p50')[round] ?? 0))),
        unit: '×',
        target: { atMost: 1.2 },
      })
      return [
        deep('middle page'),
        deep('last page'),
        ...PAGES.map(page => ({
          what: `p99, ${page}`,
          value: spread(of(page, 'p99')),
          unit: 'ms',
          target: { atMost: 5 },
        })),
        { what: 'p50, first page', value: spread(of('first page', 'p50')), unit: 'ms' },
      ]
    })
  },
}
