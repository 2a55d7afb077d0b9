/** What a scenario is: one file in `scenarios/`, named in `scenarios/index.ts`. */
import type { LoadGenerator } from './load/load.ts'
import type { Spread } from './statistics.ts'
import type { Engine, Store } from './stores.ts'

/** What a scenario is run with. */
export interface Bench {
  readonly generator: LoadGenerator
  readonly rounds: number
  /** Seconds of load on each side of each round. */
  readonly seconds: number
  /** What stores are made on where a scenario does not say. */
  readonly engine: Engine
  /** A store with so many users, made once in a run. */
  store(users: number, engine?: Engine): Promise<Store>
  /** A store of the caller's own, without users. */
  emptyStore(): Promise<Store>
}

/** One figure. */
export interface Finding {
  readonly what: string
  readonly value: Spread
  readonly unit: string
  /** What it should be at least, or at most; a figure without a target is there to be compared with. */
  readonly target?: { readonly atLeast: number } | { readonly atMost: number }
}

export interface Scenario {
  /** As given on the command line. */
  readonly name: string
  readonly title: string
  /** Runs only when it is named. */
  readonly onDemand?: boolean
  run(bench: Bench): Promise<readonly Finding[]>
}

/** Of a figure without rounds. */
export const single = (value: number): Spread => ({ median: value, min: value, max: value })

export const isMet = ({ value, target }: Finding): boolean => {
  if (target === undefined) return true
  return 'atLeast' in target ? value.median >= target.atLeast : value.median <= target.atMost
}
