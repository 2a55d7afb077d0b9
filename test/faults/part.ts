import type { Random } from '../crash/random.ts'
import type { Context } from '../support/build.ts'

/** What each part of `npm run test:faults` is given. */
export interface FaultPart {
  /** Takes what has to be ended when the part is done, whatever happens. */
  readonly context: Context
  readonly random: Random
}
