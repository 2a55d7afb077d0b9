/** All scenarios, in order of execution. */
import { coresToPin } from '../cores.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { account, accountCookie } from './account.ts'
import { betterAuth } from './better-auth.ts'
import { apiKey, eddsa, introspection } from './credentials.ts'
import { flush } from './flush.ts'
import { lists } from './lists.ts'
import { memory } from './memory.ts'
import { millionUsers } from './million-users.ts'
import { networkDelay } from './network-delay.ts'
import { signInFlood } from './sign-in-flood.ts'
import { signIns } from './sign-ins.ts'
import { signUps } from './sign-ups.ts'
import { startUp } from './start-up.ts'
import { streams } from './streams.ts'
import { forgedToken, inventedApiKey, withoutToken } from './unauthorized.ts'
import { webhooks } from './webhooks.ts'
import { workers, workersSqlite } from './workers.ts'

export const SCENARIOS: readonly Scenario[] = [
  account,
  accountCookie,
  withoutToken,
  forgedToken,
  inventedApiKey,
  apiKey,
  eddsa,
  introspection,
  betterAuth,
  flush,
  signUps,
  signIns,
  signInFlood,
  memory,
  millionUsers,
  lists,
  startUp,
  networkDelay,
  workers,
  workersSqlite,
  streams,
  webhooks,
]

/** @returns why a scenario cannot run; `undefined` if it can. */
export const skipReason = (scenario: Scenario, { engine, generator }: Bench): string | undefined => {
  if (scenario === betterAuth && engine === 'postgres') return 'its peer is set up on SQLite'
  if ([workers, workersSqlite].includes(scenario) && (generator.name !== 'wrk' || coresToPin().length < 2)) {
    return 'it needs wrk, taskset (Linux) and two processors'
  }
  return undefined
}
