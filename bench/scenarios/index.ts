import type { Scenario } from '../scenario.ts'
import { account, credentials } from './account.ts'
import { betterAuth } from './better-auth.ts'
import { events } from './events.ts'
import { flush } from './flush.ts'
import { lists } from './lists.ts'
import { memory } from './memory.ts'
import { millionUsers } from './million-users.ts'
import { networkDelay } from './network-delay.ts'
import { signInFlood } from './sign-in-flood.ts'
import { signIns } from './sign-ins.ts'
import { signUps } from './sign-ups.ts'
import { startUp } from './start-up.ts'
import { workers } from './workers.ts'

/** All scenarios, in order of execution. */
export const SCENARIOS: readonly Scenario[] = [
  account,
  credentials,
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
  events,
]
