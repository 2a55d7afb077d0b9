/** The data of the plots: what `load-curve` measures. */
import type { Spread } from '../statistics.ts'

/** One offered load. Rates are per second, latencies in milliseconds; of several rounds. */
export interface Step {
  readonly offered: number
  readonly succeeded: Spread
  readonly rejected: number
  readonly p99: Spread
}

export interface Curve {
  readonly service: string
  /** In ascending order of load. */
  readonly steps: readonly Step[]
}

/** Two services under the same kind of request. */
export interface Plot {
  /** The name of the files. */
  readonly name: string
  readonly title: string
  readonly curves: readonly Curve[]
}

export interface LoadCurves {
  /** In words. */
  readonly conditions: string
  readonly plots: readonly Plot[]
}

/** The part of the offered load below which a service is saturated. Responses of the last moments arrive after the end. */
const SERVED = 0.9

export const isSaturated = ({ offered, succeeded }: Step): boolean => succeeded.median < offered * SERVED
