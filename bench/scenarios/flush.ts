import { LastRequests } from '#core/auth/last-requests'
import type { Principal } from '#core/auth/principal'
import { UserCache } from '#core/auth/user-cache'
import { openStorage } from '#core/store/open'
import { allFeatures } from '#features/built-in'
import { loadConfig } from '#process/config/config'
import type { SampleSession } from '../sample-users.ts'
import { finding, type Scenario } from '../scenario.ts'

const USERS = 100_000

/** Flushes between two writes of a session in constant use: its timestamp is written once a minute. */
const FLUSHES_OF_SESSION = 60

/** What a flush reads of a cached principal. */
const principalOf = ({ id, userKey }: SampleSession): Principal => {
  const cachedUser = { key: userKey, lastRequestAt: 0, isWriteDue: false }
  const principal = { credentialId: id, scopes: null, lastRequestAt: 0, storedRequestAt: 0, cachedUser }
  return principal as unknown as Principal
}

/** Without a service and requests beside it, so that neither they nor the rest of the machine distort the figure. */
export const flush: Scenario = {
  name: 'flush',
  title: 'Last requests written for a second in which each of 100,000 users sends a request',
  async run(bench) {
    const store = await bench.store(USERS)
    const principals = (await store.sessions(USERS)).map(principalOf)
    const { databaseConnections, lastRequestInterval, sessionIdle } = loadConfig(
      store.environment,
      allFeatures(),
    )
    const storage = await openStorage(store.location, databaseConnections, allFeatures())
    const lastRequests = new LastRequests({
      userCache: new UserCache(),
      store: storage.lastRequests,
      apiKeys: { recordRequests: async () => undefined },
      adminKeys: { recordRequests: async () => undefined },
      interval: lastRequestInterval,
      idle: sessionIdle,
      closing: 0,
      flushAt: Number.POSITIVE_INFINITY,
      onFailure(error) {
        throw error
      },
    })
    const costs: number[] = []
    for (let flush = 0; flush <= bench.rounds * bench.seconds; flush += 1) {
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
    const what = 'CPU of one flush, all threads (50 ms each second are 5 % of a core)'
    return [finding(what, costs, 'ms', { atMost: 50 })]
  },
}
