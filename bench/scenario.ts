/** The interface of scenarios: one file each in `scenarios/`, listed in `scenarios/index.ts`. */
import type { LoadGenerator } from './load/load.ts'
import type { Spread } from './statistics.ts'
import type { Engine, Store } from './stores.ts'

/** The options and stores of a run. */
export interface Bench {
  readonly generator: LoadGenerator
  readonly rounds: number
  /** Seconds of load on each side of each round. */
  readonly seconds: number
  /** The default engine of stores. */
  readonly engine: Engine
  /** A store with so many users, created once per run. */
  store(users: number, engine?: Engine): Promise<Store>
  /** A new store without users, not shared with other scenarios. */
  emptyStore(): Promise<Store>
}

/** One figure. */
export interface Finding {
  readonly what: string
  readonly value: Spread
  readonly unit: string
  /** The minimum or maximum; figures without a target are informative. */
  readonly target?: { readonly atLeast: number } | { readonly atMost: number }
}

export interface Scenario {
  /** The name on the command line. */
  readonly name: string
  readonly title: string
  run(bench: Bench): Promise<readonly Finding[]>
}

/** The spread of a figure that is measured once. */
export const single = (value: number): Spread => ({ median: value, min: value, max: value })

export const isMet = ({ value, target }: Finding): boolean => {
  if (target === undefined) return true
  return 'atLeast' in target ? value.median >= target.atLeast : value.median <= target.atMost
}
