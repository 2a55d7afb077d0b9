/** The interface of scenarios: one file each in `scenarios/`, listed in `scenarios/index.ts`. */
import type { LoadGenerator } from './load/load.ts'
import { type Spread, spread } from './statistics.ts'
import type { Engine, Store } from './stores.ts'

/** The options and stores of a run. */
export interface Bench {
  readonly generator: LoadGenerator
  readonly rounds: number
  /** Seconds of load on each side of each round. */
  readonly seconds: number
  /** The engine of stores. */
  readonly engine: Engine
  /** A store with so many users, created once per run. */
  store(users: number): Promise<Store>
}

/** The minimum or maximum of a figure. */
export type Target = { readonly atLeast: number } | { readonly atMost: number }

/** One figure. */
export interface Finding {
  readonly what: string
  readonly value: Spread
  readonly unit: string
  /** Figures without a target are informative. */
  readonly target?: Target
}

export interface Scenario {
  /** The name on the command line. */
  readonly name: string
  readonly title: string
  /** @returns why it cannot run; `undefined` if it can. By default it can. */
  skipReason?(bench: Bench): string | undefined
  run(bench: Bench): Promise<readonly Finding[]>
}

/** @param values one for each round, or the only one. */
export const finding = (
  what: string,
  values: number | readonly number[],
  unit = '',
  target?: Target,
): Finding => ({ what, value: spread([values].flat()), unit, ...(target && { target }) })

type Row<Sample> = readonly [
  what: string,
  value: (sample: Sample) => number,
  unit?: string,
  target?: Target | undefined,
]

/** @param samples one for each round. */
export const findings = <Sample>(
  samples: readonly Sample[],
  rows: readonly Row<Sample>[],
): readonly Finding[] =>
  rows.map(([what, value, unit, target]) => finding(what, samples.map(value), unit, target))

export const isMet = ({ value, target }: Finding): boolean => {
  if (target === undefined) return true
  return 'atLeast' in target ? value.median >= target.atLeast : value.median <= target.atMost
}
