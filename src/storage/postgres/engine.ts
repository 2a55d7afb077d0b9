/** The PostgreSQL engine: reads and writes through one pool, invalidations through a connection of their own. */

import { BoundedQueue } from '#base/concurrency/bounded-queue'
import { ServiceError } from '#base/errors'
import type { Engine } from '../engine.ts'
import type { InvalidationListener } from '../invalidation.ts'
import type { Schema } from '../migrations/schema.ts'
import type { AnyOperation } from '../operations/operation.ts'
import { Database, type Reader } from './database.ts'
import { openPrimary } from './ensure-schema.ts'
import { InvalidationFeed } from './invalidation-feed.ts'
import { runOperation, statementOf } from './operation-runner.ts'
import { SELECT_READ_ONLY } from './primary-server.ts'
import { openRateLimit } from './rate-limits.ts'
import { Replica, type ReplicaOptions } from './replica.ts'

/** The share of connections for lists and counts, which can take a hundred times as long as sign-ins and authentication. */
const LISTS_SHARE = 0.5

/** How many lists may wait, and for how many milliseconds. Further calls are rejected at once, others when their time is over. */
const MAX_WAITING_LISTS = 200
const LIST_WAIT_LIMIT = 5_000

export interface PostgresOptions {
  /** The server for reads that decide nothing, while it is recent enough; `null` for none. */
  readonly replica: ReplicaOptions | null
  /** Whether writes that end access wait until no other process uses what it cached before (`process-leases.ts`). */
  readonly waits: boolean
}

export interface PostgresEngine extends Engine {
  readonly database: Database
  /** Runs a read that may take long on the replica if it can be used, else on the primary, where few run at a time. */
  readList<Result>(read: (reader: Reader) => Promise<Result>): Promise<Result>
  /** Runs a read that may take long on the primary, for what decides about access. */
  readListOnPrimary<Result>(read: (reader: Reader) => Promise<Result>): Promise<Result>
  /** Runs a read of bounded length on the replica if it can be used, else on the primary at once. */
  readOnAny<Result>(read: (reader: Reader) => Promise<Result>): Promise<Result>
}

/**
 * Opens the PostgreSQL database of `url` and migrates it. Of several servers, the one that currently takes writes is used.
 * @param connections the maximum number; one more listens for changes. The replica has as many, and one more that watches it.
 * @param operations the writes, by name.
 * @throws {Error} if the database cannot be reached, used ({@link assertUsable}) or migrated.
 */
export const openPostgresEngine = async (
  url: string,
  connections: number,
  operations: ReadonlyMap<string, AnyOperation>,
  schema: Schema,
  { replica: replicaOptions, waits }: PostgresOptions,
): Promise<PostgresEngine> => {
  const primary = await openPrimary(url, schema, connections)
  let listener: InvalidationListener | null = null
  const database: Database = new Database(primary, connections, {
    invalidate: id => listener?.invalidate(id),
    hasLease: () => invalidationFeed.hasLease,
    waits,
    onLapse: id => listener?.leaseLapsed?.(id),
  })
  const replica = replicaOptions === null ? null : new Replica(replicaOptions, connections)
  const invalidationFeed = new InvalidationFeed(primary, database.leases, replica)
  primary.watch()
  const lists = new BoundedQueue(Math.ceil(connections * LISTS_SHARE), MAX_WAITING_LISTS, LIST_WAIT_LIMIT)

  /** Reads from the replica if it can be used. */
  const readOnReplica = <Result>(
    read: (reader: Reader) => Promise<Result>,
    onPrimary: () => Promise<Result>,
  ): Promise<Result> => (replica === null ? onPrimary() : replica.run(read, onPrimary))
  const readListOnPrimary: PostgresEngine['readListOnPrimary'] = read => lists.run(() => read(database))

  return {
    database,
    readList: read => readOnReplica(read, () => readListOnPrimary(read)),
    readListOnPrimary,
    readOnAny: read => readOnReplica(read, () => read(database)),
    async read({ statement, result }) {
      return result((await database.readCurrent(statementOf(statement))) as never[])
    },
    async write(name, args) {
      const operation = operations.get(name)
      if (operation === undefined) throw new Error(`Unknown operation: ${name}`)
      return runOperation(database, () => operation(...args))
    },
    openRateLimit: openRateLimit(database),
    subscribe(newListener) {
      listener = newListener
      invalidationFeed.subscribe(newListener)
    },
    // Each process has one event loop, in which the feed invalidates.
    deliverInvalidations: () => invalidationFeed.checkLease(),
    async ping() {
      const [setting] = await database.read<{ read_only: string }>({ text: SELECT_READ_ONLY, values: [] })
      // After a failover, the address may still lead to a server that takes no writes.
      if (setting?.read_only !== 'on') return
      primary.startSearch()
      throw new ServiceError('storeUnavailable')
    },
    statistics: () => ({
      engine: 'postgres',
      pool: database.statistics,
      feed: invalidationFeed.statistics,
      leases: database.leases.statistics,
      replica: replica?.statistics ?? null,
    }),
    async close() {
      primary.close()
      await Promise.all([invalidationFeed.close(), database.close(), replica?.close()])
    },
  }
}
