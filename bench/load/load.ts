/** What a load is, and what a generator of it answers. */
import type { Requests } from '../requests.ts'

export interface LoadOptions {
  /** Of the server, without a path. */
  readonly url: string
  readonly requests: Requests
  readonly seconds: number
  /** The processors to run on, each with a thread and the connections of one (wrk alone); without it one, anywhere. */
  readonly cores?: readonly number[]
}

export interface LoadResult {
  readonly requests: number
  /** Seconds that the load really took. */
  readonly seconds: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  /** Requests that failed, or were answered with another status than was expected. */
  readonly errors: number
}

export interface LoadGenerator {
  readonly name: string
  run(options: LoadOptions): Promise<LoadResult>
}

/** Keep-alive connections of every thread that makes load: enough that the server always has work. */
export const CONNECTIONS = 64
