import { FeatureCaches } from '#core/auth/feature-caches'
import { organizationGate } from '#features/organizations/gate'
import { runSockets } from '../load/sockets.ts'
import { type Server, startService, withServers } from '../processes.ts'
import { bearer, rawRequest } from '../requests.ts'
import { type Bench, type Finding, type Scenario, single } from '../scenario.ts'
import { quantile, spread } from '../statistics.ts'
import { addOrganizations } from '../stores/organizations.ts'
import type { Store } from '../stores.ts'

const ORGANIZATIONS = 10_000

/** In which each of 100,000 users is a member of ten. */
const USERS = 100_000
const EACH = 10

/** With the same number of members of an organization: a list is then as long. */
const FEW = { organizations: 10, users: 1_000, each: 1 }

/** Per second: few enough that requests do not wait for each other. */
const RATE = 100

const ADMISSIONS = 1_000_000

/** Microseconds that the gate takes for a user and an organization that the process knows. */
const gateCost = (): number => {
  const id = '01900000-0000-7000-8000-000000000000'
  const organization = { id, name: 'Team', slug: 'team', maxMembers: null, createdAt: 1, updatedAt: 1 }
  const memberships = [{ organizationId: id, roles: ['member'] }]
  const caches = new FeatureCaches({ deliverInvalidations: () => undefined })
  caches.setFeedConnected(true)
  const gate = organizationGate({
    store: { listMemberships: () => memberships, findOrganization: () => organization },
    openCache: caches.open,
    settings: { ORGANIZATION_ROLES: [] },
  } as unknown as Parameters<typeof organizationGate>[0])
  const request = { user: { id }, params: { organizationId: id } } as unknown as Parameters<
    typeof gate.admit
  >[0]
  const time = (): number => {
    const began = performance.now()
    for (let each = 0; each < ADMISSIONS; each += 1) gate.admit(request, true)
    return ((performance.now() - began) * 1_000) / ADMISSIONS
  }
  time()
  return time()
}

const p50Of = async ({ seconds }: Bench, server: Server, token: string, path: string): Promise<number> => {
  const request = rawRequest({ method: 'GET', path, headers: bearer(token) })
  const load = { url: server.url, connections: 4, seconds, rate: RATE, next: () => request }
  const { latencies } = await runSockets(load)
  const ok = latencies.get(200)
  if (ok === undefined || latencies.size > 1) throw new Error(`${path}: ${[...latencies.keys()].join(', ')}`)
  return quantile(ok, 0.5)
}

const ROUTES = {
  'my organizations': () => '/organizations?limit=20',
  'one organization': (id: string) => `/organizations/${id}`,
  members: (id: string) => `/organizations/${id}/members?limit=20`,
} as const

type Route = keyof typeof ROUTES

export const organizations: Scenario = {
  name: 'organizations',
  title: '10,000 organizations with 1,000,000 memberships, beside ten with 1,000',
  run: async bench => {
    const filled = async (users: number, count: number, each: number): Promise<Store> => {
      const store = await bench.store(users)
      await addOrganizations(String(store.environment.DATABASE_URL), count, each)
      return store
    }
    const few = await filled(FEW.users, FEW.organizations, FEW.each)
    const many = await filled(USERS, ORGANIZATIONS, EACH)
    const [[ofFew = ''], [ofMany = '']] = [await few.tokens(1), await many.tokens(1)]
    return withServers([() => startService(few), () => startService(many)], async (small, large) => {
      const idFor = async (server: Server, token: string): Promise<string> => {
        const found = await fetch(`${server.url}/organizations?limit=1`, { headers: bearer(token) })
        return ((await found.json()) as { results: { id: string }[] }).results[0]?.id ?? ''
      }
      const [fewId, manyId] = [await idFor(small, ofFew), await idFor(large, ofMany)]
      const measured = new Map<Route, { few: number; many: number }[]>()
      for (let round = 0; round < bench.rounds; round += 1)
        for (const route of Object.keys(ROUTES) as Route[]) {
          const samples = measured.get(route) ?? []
          samples.push({
            few: await p50Of(bench, small, ofFew, ROUTES[route](fewId)),
            many: await p50Of(bench, large, ofMany, ROUTES[route](manyId)),
          })
          measured.set(route, samples)
        }
      const ratio = ([route, samples]: [Route, { few: number; many: number }[]]): Finding => ({
        what: `p50 of ${route}, 10,000 ÷ 10 organizations`,
        value: spread(samples.map(({ few, many }) => many / few)),
        unit: '×',
        target: { atMost: 1.3 },
      })
      return [
        { what: 'the gate, warm', value: single(gateCost()), unit: 'µs', target: { atMost: 1 } },
        ...[...measured].map(ratio),
        ...[...measured].map(([route, samples]) => ({
          what: `p50 of ${route}, 10,000 organizations`,
          value: spread(samples.map(({ many }) => many)),
          unit: 'ms',
        })),
      ]
    })
  },
}
