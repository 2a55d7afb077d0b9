import { fail } from 'node:assert/strict'
import { AccessTokens } from '#core/auth/access-tokens'
import { LastRequests } from '#core/auth/last-requests'
import type { Principal } from '#core/auth/principal'
import { UserCache } from '#core/auth/user-cache'
import { openStorage } from '#core/store/open'
import type { SessionStore } from '#core/store/store'
import { allFeatures } from '#features/built-in'
import { type Config, loadConfig } from '#process/config/config'
import { compare, findingsOf, sample } from '../compare.ts'
import { startServer, startService, withServers } from '../processes.ts'
import { bearer, get } from '../requests.ts'
import { type Finding, type Scenario, single } from '../scenario.ts'
import { spread } from '../statistics.ts'
import type { Store } from '../stores.ts'

const USERS = 100_000

/** Seconds until the last requests of a turn are written: a flush begins every second. */
const SETTLE = 1.2

/** Flushes between two writes of a session in constant use: its timestamp is written once a minute. */
const FLUSHES_OF_SESSION = 60

const NO_KEYS = { recordRequests: async () => undefined }

/** The principals of tokens, in the same order, as the service caches them. */
const principalsOf = async (
  sessions: Pick<SessionStore, 'find'>,
  accessTokens: AccessTokens,
  tokens: readonly string[],
): Promise<readonly Principal[]> => {
  const principals: Principal[] = []
  for (const token of tokens) {
    const { sessionId } = accessTokens.verify(token) ?? fail('the service refuses a token of the store')
    const { session, user, userKey } = (await sessions.find(sessionId)) ?? fail('a session is missing')
    principals.push({
      token,
      credentialId: session.id,
      scopes: null,
      impersonatedBy: null,
      queriedAt: 0,
      used: false,
      amr: session.amr,
      authenticatedAt: session.authenticatedAt,
      expiresAt: session.expiresAt,
      lastRequestAt: session.lastRequestAt,
      storedRequestAt: session.lastRequestAt,
      cachedUser: {
        user,
        key: userKey,
        lastRequestAt: 0,
        isWriteDue: false,
        current: true,
        tokens: 1,
        accountText: null,
      },
    })
  }
  return principals
}

/** Milliseconds of CPU in all threads for the flush of a second in which every user sends a request. */
const flushCosts = async (
  { storage: location, databaseConnections, lastRequestInterval, sessionIdle, ...config }: Config,
  tokens: readonly string[],
  rounds: number,
): Promise<readonly number[]> => {
  const storage = await openStorage(location, databaseConnections, allFeatures())
  const lastRequests = new LastRequests({
    userCache: new UserCache(),
    store: storage.lastRequests,
    apiKeys: NO_KEYS,
    adminKeys: NO_KEYS,
    interval: lastRequestInterval,
    idle: sessionIdle,
    closing: 0,
    flushAt: Number.POSITIVE_INFINITY,
    onFailure: error => {
      throw error
    },
  })
  const principals = await principalsOf(storage.sessions, AccessTokens.from(config), tokens)
  const costs: number[] = []
  for (let flush = 0; flush <= rounds; flush += 1) {
    const now = Date.now()
    for (const [index, principal] of principals.entries()) {
      // Sessions are due in turn, as if their sign-ins had been spread over a minute.
      principal.storedRequestAt = index % FLUSHES_OF_SESSION === flush % FLUSHES_OF_SESSION ? 0 : now
      lastRequests.record(principal, now)
    }
    const before = process.cpuUsage()
    await lastRequests.flush()
    const { user, system } = process.cpuUsage(before)
    // The first one compiles the code.
    if (flush > 0) costs.push((user + system) / 1_000)
  }
  await storage.close()
  return costs
}

/** Without requests beside it, so that neither they nor the rest of the machine distort the figure. */
const alone = async (store: Store, rounds: number): Promise<Finding> => {
  const costs = await flushCosts(
    loadConfig({ ...store.environment }, allFeatures()),
    await store.tokens(USERS),
    rounds,
  )
  return {
    what: 'CPU of one flush, all threads (50 ms each second are 5 % of a core)',
    value: spread(costs),
    unit: 'ms',
    target: { atMost: 50 },
  }
}

export const flush: Scenario = {
  name: 'flush',
  title: 'Last requests written each second, 100,000 users in rotation: every request is another user’s',
  run: async bench => {
    const store = await bench.store(USERS)
    const other = await bench.store(USERS + 1)
    const sides = [
      { name: 'with flush', requests: get('/account', (await store.tokens(USERS)).map(bearer)) },
      { name: 'without flush', requests: get('/account', (await other.tokens(USERS)).map(bearer)) },
    ] as const
    const cost = await alone(store, bench.rounds * bench.seconds)
    const without = () => startServer('bench/variants/without-flush.ts', other.environment)
    return withServers([() => startService(store), without], async (flushing, discarding) => {
      const first = { ...sides[0], server: flushing }
      const second = { ...sides[1], server: discarding }
      const { sides: samples, cpuRatio } = await compare(bench, second, first, { settle: SETTLE })
      await flushing.ask('watchDelay')
      await sample(bench.generator, first, bench.seconds)
      const delay = await flushing.ask('delay')
      return [
        cost,
        { what: 'CPU under full load, with flush ÷ without', value: cpuRatio, unit: '×' },
        {
          what: 'event-loop delay, p99',
          value: single(delay),
          unit: 'ms',
          target: { atMost: 5 },
        },
        ...findingsOf('with flush', samples[1]),
        ...findingsOf('without flush', samples[0]),
      ]
    })
  },
}
