import { runExpecting } from '../load/sockets.ts'
import { withServers } from '../processes.ts'
import { bearer, rawRequest } from '../requests.ts'
import { findings, type Scenario } from '../scenario.ts'
import { quantile } from '../statistics.ts'
import { startService } from '../stores.ts'

const USERS = 1_000_000

const ADMIN_KEY = 'bench-admin-key-0123456789abcdef'

type Position = readonly [sort: string, key: number, id: string]

/** @returns cursors at positions between the newest user (0) and the oldest (1). */
const cursors = async (url: string, headers: Readonly<Record<string, string>>) => {
  const read = async (query: string): Promise<Position> => {
    const page = await fetch(`${url}/users?limit=1${query}`, { headers })
    const { nextCursor } = (await page.json()) as { nextCursor: string }
    return JSON.parse(Buffer.from(nextCursor, 'base64url').toString())
  }
  const [[sort, newest, id], [, oldest]] = [await read(''), await read('&sort=createdAt')]
  return (share: number): string =>
    Buffer.from(JSON.stringify([sort, Math.round(newest - (newest - oldest) * share), id])).toString(
      'base64url',
    )
}

/** Totals, by the query. The exact one takes longer by design. */
const TOTALS = {
  'approximate total': '&count=approximate',
  'approximate total of a search, 100,000 matches': '&count=approximate&search=last000',
  'approximate total of a filter': '&count=approximate&createdAfter=2026-01-01T00:00:00Z',
  'exact total': '&count=true',
}

export const lists: Scenario = {
  name: 'lists',
  title: 'Pages of 20 of 1,000,000 users, and their totals: one request after the other',
  async run(bench) {
    const { seconds, rounds } = bench
    const store = await bench.store(USERS)
    const [token = ''] = await store.tokens(1)
    return withServers([() => startService(store, { ADMIN_KEY })], async ({ url }) => {
      const headers = bearer(token)
      const cursorAt = await cursors(url, headers)
      const pages = {
        'first page': '',
        'middle page': `&cursor=${cursorAt(0.5)}`,
        'last page': `&cursor=${cursorAt(0.9999)}`,
        'search, 1 match': '&search=first00123456',
        'search, 10,000 matches': '&search=last0012',
      }
      const measure = async (path: string, headers: Readonly<Record<string, string>>) => {
        const request = rawRequest({ method: 'GET', path, headers })
        const { latencies } = await runExpecting(200, { url, connections: 1, seconds, next: () => request })
        return { p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99) }
      }
      const samples: Record<string, Awaited<ReturnType<typeof measure>>>[] = []
      while (samples.length < rounds) {
        const sample: (typeof samples)[number] = {}
        for (const [name, query] of Object.entries(pages))
          sample[name] = await measure(`/users?limit=20${query}`, headers)
        for (const [name, query] of Object.entries(TOTALS))
          sample[name] = await measure(`/admin/users?limit=20${query}`, { 'x-admin-key': ADMIN_KEY })
        samples.push(sample)
      }
      const p50 = (name: string) => (sample: (typeof samples)[number]) => sample[name]?.p50 ?? Number.NaN
      const p99 = (name: string) => (sample: (typeof samples)[number]) => sample[name]?.p99 ?? Number.NaN
      const first = p50('first page')
      return [
        ...['middle page', 'last page'].flatMap(name => {
          const deep = p50(name)
          return findings(samples, [
            [`p50, ${name} ÷ first page`, sample => deep(sample) / first(sample), '×', { atMost: 1.2 }],
          ])
        }),
        ...Object.keys(pages).flatMap(name =>
          findings(samples, [[`p99, ${name}`, p99(name), 'ms', { atMost: 5 }]]),
        ),
        ...['first page', ...Object.keys(TOTALS)].flatMap(name =>
          findings(samples, [
            [`p50, ${name}`, p50(name), 'ms', name.startsWith('approximate') ? { atMost: 50 } : undefined],
          ]),
        ),
      ]
    })
  },
}
