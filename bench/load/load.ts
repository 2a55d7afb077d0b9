/** What a load is, and what a generator of it answers. */
import type { Requests } from '../scenario.ts'

export interface LoadOptions {
  /** Of the server, without a path. */
  readonly url: string
  readonly requests: Requests
  readonly seconds: number
  /** A folder for what the generator reads. */
  readonly folder: string
}

export interface LoadResult {
  readonly requests: number
  /** Seconds that the load really took. */
  readonly seconds: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  /** Requests that failed or were answered with anything but 2xx. */
  readonly errors: number
}

export interface LoadGenerator {
  readonly name: string
  run(options: LoadOptions): Promise<LoadResult>
}

/** Keep-alive connections of every load: enough that the server always has work. */
export const CONNECTIONS = 64
