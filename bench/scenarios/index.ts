import type { Scenario } from '../scenario.ts'
import { account, accountCookie } from './account.ts'
import { betterAuth } from './better-auth.ts'
import { flush } from './flush.ts'
import { health } from './health.ts'
import { lists } from './lists.ts'
import { memory } from './memory.ts'
import { millionUsers } from './million-users.ts'
import { nodeHttp } from './node-http.ts'
import { signInFlood } from './sign-in-flood.ts'
import { signIns } from './sign-ins.ts'
import { signUps } from './sign-ups.ts'
import { soak } from './soak.ts'
import { startUp } from './start-up.ts'
import { forgedToken, withoutToken } from './unauthorized.ts'

/** All scenarios, in the order in which they run. */
export const SCENARIOS: readonly Scenario[] = [
  health,
  account,
  accountCookie,
  withoutToken,
  forgedToken,
  nodeHttp,
  betterAuth,
  flush,
  signUps,
  signIns,
  signInFlood,
  memory,
  millionUsers,
  lists,
  startUp,
  soak,
]
