import type { Context } from '../support/build.ts'
import type { Random } from '../support/random.ts'

/** What each part of `npm run test:faults` is given. */
export interface FaultPart {
  /** Takes what has to be ended when the part is done, whatever happens. */
  readonly context: Context
  readonly random: Random
}
