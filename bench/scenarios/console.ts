import { setTimeout as delay } from 'node:timers/promises'
import { type Server, startService, withServers } from '../processes.ts'
import { type Scenario, single } from '../scenario.ts'
import { spread } from '../statistics.ts'
import { addConsoleRows } from '../stores/console.ts'
import type { Store } from '../stores.ts'

const USERS = 1_000_000
const EVENTS_EACH = 10

/** How often each page is read. */
const READS = 20

const PAGES = {
  overview: '',
  'overview, a day': '?range=day',
  'overview, 30 days': '?range=month',
  'overview, 90 days': '?range=quarter',
  users: '/users',
  events: '/events',
  status: '/status',
}

const SETTINGS = {
  CONSOLE: 'on',
  ADMIN_KEY: 'bench-admin-key-0123456789abcdef',
  ENCRYPTION_KEY: 'bench-encryption-key-0123456789abcdef0123456789abcdef',
}

/** Milliseconds of the history's first minute: it begins with the estimates of active users, which every fifth minute has. */
const MINUTE = 60_000

/** @returns the cookie of a session. */
const signIn = async ({ url }: Server): Promise<string> => {
  const response = await fetch(`${url}/console/sign-in`, {
    method: 'POST',
    body: new URLSearchParams({ adminKey: SETTINGS.ADMIN_KEY }),
    redirect: 'manual',
  })
  if (response.status !== 303) throw new Error(`The sign-in failed with ${response.status}`)
  return response.headers.getSetCookie()[0]?.split(';', 1)[0] ?? ''
}

/** @returns milliseconds of CPU for each read of a page. */
const costsOf = async (server: Server, cookie: string, path: string): Promise<readonly number[]> => {
  const costs: number[] = []
  for (let read = 0; read < READS; read += 1) {
    const before = await server.ask('cpu')
    const response = await fetch(`${server.url}/console${path}`, { headers: { cookie }, redirect: 'manual' })
    const text = await response.text()
    if (response.status !== 200 || !text.includes('</html>'))
      throw new Error(`/console${path} had status ${response.status}`)
    costs.push(((await server.ask('cpu')) - before) / 1_000)
  }
  return costs
}

/** @returns percent of a processor that the history takes, beside a process without the console. */
const shareOfHistory = (store: Store): Promise<number> =>
  withServers([() => startService(store, SETTINGS), () => startService(store)], async (on, off) => {
    const cpu = () => Promise.all([on.ask('cpu'), off.ask('cpu')])
    const [onBefore, offBefore] = await cpu()
    await delay(MINUTE)
    const [onAfter, offAfter] = await cpu()
    return (onAfter - onBefore - (offAfter - offBefore)) / (MINUTE * 10)
  })

export const consolePages: Scenario = {
  name: 'console',
  title:
    'Pages of the console with 1,000,000 users, 10,000,000 events and the history of 90 days, each read 20 times',
  onDemand: true,
  run: async ({ emptyStore }) => {
    const store = await emptyStore()
    await addConsoleRows(String(store.environment.DATABASE_URL), USERS, EVENTS_EACH)
    const pages = await withServers([() => startService(store, SETTINGS)], async server => {
      const cookie = await signIn(server)
      await server.ask('watchQueries')
      const costs: [string, readonly number[]][] = []
      for (const [name, path] of Object.entries(PAGES))
        costs.push([name, await costsOf(server, cookie, path)])
      return { costs, slowest: await server.ask('slowestQuery') }
    })
    return [
      ...pages.costs.map(([name, costs]) => ({
        what: `CPU, ${name}`,
        value: spread(costs),
        unit: 'ms',
        target: { atMost: 100 },
      })),
      { what: 'slowest query, its median', value: single(pages.slowest), unit: 'ms', target: { atMost: 50 } },
      {
        what: 'CPU of the history, its first minute',
        value: single(await shareOfHistory(store)),
        unit: '%',
        target: { atMost: 1 },
      },
    ]
  },
}
