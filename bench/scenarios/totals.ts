import { startService, withServers } from '../processes.ts'
import type { Finding, Scenario } from '../scenario.ts'
import { spread } from '../statistics.ts'
import { addUsers } from '../stores/generated-users.ts'

const USERS = { sqlite: 1_000_000, postgres: 10_000_000 } as const

const ADMIN_KEY = 'bench-admin-key-0123456789abcdef'

/** How often each is read. Exact totals of so many users take seconds. */
const READS = 50
const EXACT_READS = 3

const PAGE = '/admin/users?limit=20'

const TOTALS = {
  'a page': PAGE,
  'a page with an approximate total': `${PAGE}&count=approximate`,
  'an approximate total of a search, 10 % of the users': `${PAGE}&count=approximate&search=last1`,
  'an approximate total of a filter': `${PAGE}&count=approximate&createdAfter=2026-01-01T00:00:00Z`,
  'the status with approximate users': '/admin/status?count=approximate',
} as const

export const totals: Scenario = {
  name: 'totals',
  title: 'Totals of users: 1,000,000 on SQLite, 10,000,000 on PostgreSQL',
  onDemand: true,
  run: async ({ emptyStore, engine }) => {
    const store = await emptyStore()
    await addUsers(String(store.environment.DATABASE_URL), USERS[engine])
    return withServers([() => startService(store, { ADMIN_KEY })], async server => {
      const headers = { 'x-admin-key': ADMIN_KEY }
      const read = async (path: string) => {
        const began = performance.now()
        const response = await fetch(server.url + path, { headers })
        const text = await response.text()
        if (response.status !== 200 && response.status !== 503)
          throw new Error(`${path} had status ${response.status}: ${text}`)
        return { latency: performance.now() - began, isRefused: response.status === 503 }
      }
      const readOften = async (what: string, path: string, times: number): Promise<Finding> => {
        const latencies: number[] = []
        let refused = 0
        for (let each = 0; each < times; each += 1) {
          const { latency, isRefused } = await read(path)
          latencies.push(latency)
          if (isRefused) refused += 1
        }
        return {
          what: refused > 0 ? `${what} (${refused} of ${times} with 503)` : what,
          value: spread(latencies),
          unit: 'ms',
        }
      }
      const findings: Finding[] = []
      for (const [what, path] of Object.entries(TOTALS))
        findings.push({ ...(await readOften(what, path, READS)), target: { atMost: 50 } })
      findings.push(await readOften('a page with the exact total', `${PAGE}&count=true`, EXACT_READS))
      return findings
    })
  },
}
