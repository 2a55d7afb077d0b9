/** All scenarios, in order of execution. */
import { coresToPin } from '../cores.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { account, accountCookie } from './account.ts'
import { betterAuth } from './better-auth.ts'
import { connections } from './connections.ts'
import { consolePages } from './console.ts'
import { apiKey, eddsa, introspection } from './credentials.ts'
import { engines } from './engines.ts'
import { flush } from './flush.ts'
import { flushIntervals } from './flush-intervals.ts'
import { health } from './health.ts'
import { lists } from './lists.ts'
import { loadCurve } from './load-curve.ts'
import { memory } from './memory.ts'
import { metrics } from './metrics.ts'
import { millionUsers } from './million-users.ts'
import { networkDelay } from './network-delay.ts'
import { nodeHttp } from './node-http.ts'
import { organizations } from './organizations.ts'
import { signInFlood } from './sign-in-flood.ts'
import { signIns } from './sign-ins.ts'
import { signUps } from './sign-ups.ts'
import { soak } from './soak.ts'
import { startUp } from './start-up.ts'
import { streams } from './streams.ts'
import { totals } from './totals.ts'
import { forgedToken, inventedApiKey, withoutToken } from './unauthorized.ts'
import { webhooks } from './webhooks.ts'
import { workers, workersSqlite } from './workers.ts'

export const SCENARIOS: readonly Scenario[] = [
  health,
  connections,
  account,
  accountCookie,
  withoutToken,
  forgedToken,
  inventedApiKey,
  apiKey,
  eddsa,
  introspection,
  nodeHttp,
  betterAuth,
  loadCurve,
  metrics,
  flush,
  signUps,
  signIns,
  signInFlood,
  memory,
  millionUsers,
  lists,
  startUp,
  engines,
  networkDelay,
  workers,
  workersSqlite,
  streams,
  webhooks,
  organizations,
  consolePages,
  flushIntervals,
  totals,
  soak,
]

/** @returns why a scenario cannot run; `undefined` if it can. */
export const skipReason = (scenario: Scenario, { engine, generator }: Bench): string | undefined => {
  if ([betterAuth, loadCurve].includes(scenario) && engine === 'postgres')
    return 'its peer is set up on SQLite'
  if (scenario === flushIntervals && engine === 'sqlite') return 'it reads the statistics of PostgreSQL'
  if ([workers, workersSqlite].includes(scenario) && (generator.name !== 'wrk' || coresToPin().length < 2)) {
    return 'it needs wrk, taskset (Linux) and two processors'
  }
  return undefined
}
