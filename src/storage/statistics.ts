/** What each engine reports to the metrics. Counts are since the start. */
import type { HistogramValue } from '#base/statistics/histogram'

export interface WriterStatistics {
  /** Calls that wait for the next batch. */
  readonly waiting: number
  /** Calls in each batch. */
  readonly batchSizes: HistogramValue
  /** Seconds from sending a batch to the thread until it is committed, checked and acknowledged. */
  readonly commits: HistogramValue
}

export interface PoolStatistics {
  /** Connections that are in use. */
  readonly inUse: number
  /** Calls that wait for a connection. */
  readonly waiting: number
}

export interface FeedStatistics {
  readonly isConnected: boolean
  /** Seconds since the last heartbeat that arrived was sent; `null` without a connection. */
  readonly lag: number | null
  /** How often heartbeats began to be late, or the connection was lost. */
  readonly interruptions: number
}

export interface LeaseStatistics {
  /** Processes that cache, this one included, as the last write that ended access has found them. */
  readonly processes: number
  /** Processes whose lease ended before they confirmed a write of this one. */
  readonly lapses: number
  /** Seconds for which writes that end access have waited for other processes. */
  readonly waits: HistogramValue
}

export interface ReplicaStatistics {
  /** Whether lists are read from it now. */
  readonly isInUse: boolean
  /** Seconds by which it is at most behind acknowledged writes; `null` if not known. */
  readonly lag: number | null
  /** Why it is not used; `null` if it is. */
  readonly problem: string | null
  /** Lists, counts, export pages and event pages by the server that served them. */
  readonly reads: { readonly replica: number; readonly primary: number }
}

export type StorageStatistics =
  | { readonly engine: 'sqlite'; readonly writer: WriterStatistics }
  | {
      readonly engine: 'postgres'
      readonly pool: PoolStatistics
      readonly feed: FeedStatistics
      readonly leases: LeaseStatistics
      /** `null` without `DATABASE_READ_URL`. */
      readonly replica: ReplicaStatistics | null
    }
