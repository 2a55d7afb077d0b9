import { randomBytes, randomInt } from 'node:crypto'
import { runSockets } from '../load/sockets.ts'
import { startService, withServers } from '../processes.ts'
import { bearer, rawRequest } from '../requests.ts'
import { type Scenario, single } from '../scenario.ts'
import { slope } from '../statistics.ts'

const USERS = 300_000

/** Requests between two measurements of the heap. */
const STEP = 100_000
const STEPS = 24

/** Measurements before the caches are full, which are ignored. */
const FILLING = 8

const MIB = 1_048_576

const word = (): string => randomBytes(9).toString('base64url')

const address = (): string => Array.from({ length: 4 }, () => randomInt(1, 255)).join('.')

/** Requests with ever new tokens, paths, e-mails, addresses and user agents. */
const requestKinds = (tokens: readonly string[]): readonly (() => string)[] => {
  let last = 0
  const fields = () => ({ 'user-agent': `client ${word()}`, 'x-forwarded-for': address() })
  const get = (path: string, headers = {}): string =>
    rawRequest({ method: 'GET', path, headers: { ...fields(), ...headers } })
  const post = (path: string, body: object): string =>
    rawRequest({ method: 'POST', path, headers: fields(), body: JSON.stringify(body) })
  const cachedUser = (): string => {
    last = (last + 1) % tokens.length
    return get('/account', bearer(tokens[last] ?? ''))
  }
  return [
    cachedUser,
    cachedUser,
    cachedUser,
    () => get('/account', bearer(`${word()}.${word()}.${word()}`)),
    () => get(`/${word()}/${word()}`),
    () => get(`/users?search=${word()}`, bearer(tokens[randomInt(tokens.length)] ?? '')),
    () => get('/account', { cookie: `ACCESS_TOKEN=${word()}; ${word()}=${word()}` }),
    () => post('/account/sign-up', { email: `${word()}@example.com`, password: 'short', [word()]: 1 }),
  ]
}

export const soak: Scenario = {
  name: 'soak',
  title: 'The heap under ever new tokens, e-mails, paths, addresses and user agents',
  onDemand: true,
  run: async bench => {
    const store = await bench.store(USERS)
    const kinds = requestKinds(await store.tokens(USERS))
    const next = (): string => kinds[randomInt(kinds.length)]?.() ?? ''
    const start = () => startService(store, { TRUST_PROXY: '127.0.0.1' })
    return withServers([start], async server => {
      const points: { x: number; y: number }[] = []
      for (let step = 1; step <= STEPS; step += 1) {
        const load = { url: server.url, connections: 32, seconds: 600, requests: STEP, next }
        const { latencies } = await runSockets(load)
        const failed = [...latencies].filter(([status]) => status >= 500)
        if (failed.length > 0) throw new Error(`requests had status ${failed.map(([status]) => status)}`)
        points.push({ x: (step * STEP) / 1e6, y: (await server.ask('heap')) / MIB })
      }
      const steady = points.slice(FILLING)
      return [
        {
          what: 'slope of the heap after collection',
          value: single(slope(steady)),
          unit: 'MiB per million requests',
          target: { atMost: 1 },
        },
        { what: 'heap at the end', value: single(points.at(-1)?.y ?? 0), unit: 'MiB' },
        { what: 'requests', value: single(STEP * STEPS), unit: '' },
      ]
    })
  },
}
