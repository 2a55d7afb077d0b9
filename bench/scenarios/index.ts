import type { Scenario } from '../scenario.ts'
import { account } from './account.ts'
import { health } from './health.ts'

/** All scenarios, in the order in which they run. */
export const SCENARIOS: readonly Scenario[] = [health, account]
