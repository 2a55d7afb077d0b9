import type { Context } from '../../support/build.ts'
import type { Random } from '../../support/random.ts'

/** The input of each part of `npm run test:faults`. */
export interface FaultPart {
  /** Registers clean-up for the end of the part, also after an error. */
  readonly context: Context
  readonly random: Random
}
