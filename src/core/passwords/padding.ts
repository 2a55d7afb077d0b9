/**
 * Makes a comparison with a cheaper hash take as long as one with ours, so that response times reveal neither the account nor what hashed its
 * password (docs/design.md, "Tokens and sessions"). The missing time is measured: estimates are off by half, with the load of the machine.
 */
import { HASH_PARAMETERS, isOurs } from './our-hash.ts'

const STEP = 0.05

/** KiB, of argon2. */
const LEAST_MEMORY = 8

export interface PaddingDeps {
  readonly now: () => number
  readonly hash: (parameters: typeof HASH_PARAMETERS) => unknown
}

/**
 * Work, not a wait: it takes longer while the machine is busy, as comparisons do. @param share of the time of one of our hashes.
 * @returns the parameters of a hash that takes this share; `null` if there is none to compute.
 */
export const paddingFor = (share: number): typeof HASH_PARAMETERS | null => {
  const memoryCost = Math.round(HASH_PARAMETERS.memoryCost * share)
  return memoryCost < LEAST_MEMORY ? null : { ...HASH_PARAMETERS, memoryCost }
}

export class Padding {
  readonly #deps: PaddingDeps
  /** The median, in milliseconds: single comparisons wait for a core. */
  #ours: number | null = null

  constructor(deps: PaddingDeps) {
    this.#deps = deps
  }

  /**
   * Runs a comparison, and the work that makes it as long as one with our hashes. The first of a thread measures one before, whatever it
   * compares. @param compare returns `null` if there is nothing to compare with.
   */
  run(encoded: string, compare: () => boolean | null): boolean {
    const { hash } = this.#deps
    this.#ours ??= this.#time(() => hash(HASH_PARAMETERS))
    let matches: boolean | null = null
    const taken = this.#time(() => {
      matches = compare()
    })
    if (matches !== null && isOurs(encoded)) {
      this.#ours *= taken > this.#ours ? 1 + STEP : 1 - STEP
    } else {
      const padding = paddingFor(1 - taken / this.#ours)
      if (padding !== null) hash(padding)
    }
    return matches === true
  }

  #time(work: () => void): number {
    const { now } = this.#deps
    const begin = now()
    work()
    return now() - begin
  }
}
