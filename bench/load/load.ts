/** The interface of load generators. */
import type { Requests } from '../requests.ts'

export interface LoadOptions {
  /** The URL of the server, without a path. */
  readonly url: string
  readonly requests: Requests
  readonly seconds: number
  /** The processors to run on, with a thread and its connections each (wrk only); by default one thread on any. */
  readonly cores?: readonly number[]
}

export interface LoadResult {
  readonly requests: number
  /** The actual duration in seconds. */
  readonly seconds: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  /** Requests that failed or had an unexpected status. */
  readonly errors: number
}

export interface LoadGenerator {
  readonly name: string
  run(options: LoadOptions): Promise<LoadResult>
}

/** Keep-alive connections per generator thread: enough to keep the server busy. */
export const CONNECTIONS = 64
