/** The PostgreSQL engine: reads and writes through one pool, invalidations through a connection of their own. */

import { BoundedQueue } from '#base/concurrency/bounded-queue'
import { ServiceError } from '#base/errors'
import type { InvalidationListener } from '#storage/invalidation'
import { Database, type Reader } from '#storage/postgres/database'
import { openPrimary } from '#storage/postgres/ensure-schema'
import { rotateEvents } from '#storage/postgres/event-months'
import { InvalidationFeed } from '#storage/postgres/invalidation-feed'
import { runOperation, statementOf } from '#storage/postgres/operation-runner'
import { SELECT_READ_ONLY } from '#storage/postgres/primary-server'
import { openRateLimit } from '#storage/postgres/rate-limits'
import { Replica, type ReplicaOptions } from '#storage/postgres/replica'
import { isOwned, type StoredFeature, tablesOf } from '#storage/stored-feature'
import { cleanUp } from '../accounts/postgres-clean-up.ts'
import { importOperations } from '../accounts/postgres-imports.ts'
import { lastRequestOperations } from '../auth/postgres-last-requests.ts'
import type { UserFilter } from '../users/listing.ts'
import { storageOf } from './engine.ts'
import { operationsOf } from './operations.ts'
import { hotOperations } from './postgres-hot-operations.ts'
import type { Storage } from './storage.ts'

/** The share of connections for lists and counts, which can take a hundred times as long as sign-ins and authentication. */
const LISTS_SHARE = 0.5

/** How many lists may wait, and for how many milliseconds. Further calls are rejected at once, others when their time is over. */
const MAX_WAITING_LISTS = 200
const LIST_WAIT_LIMIT = 5_000

// They import the query builder.
const importLists = () => import('../users/postgres-lists.ts')
const importEvents = () => import('../audit-log/postgres-events.ts')

/** Whether a filter names users. Who asks for certain users may decide by the response, as by `GET /admin/users/:id`. */
const namesUsers = ({ ids, email }: UserFilter): boolean => ids !== undefined || email !== undefined

/**
 * Opens the store in the PostgreSQL database of `url` and migrates it. Of several servers, the one that currently takes writes is
 * used.
 * @param connections the maximum number; one more listens for changes. The replica has as many, and one more that watches it.
 * @param replicaOptions lists, counts, exports and event pages are read from this replica while it is recent enough. Whatever
 * decides is read from the primary: authentication, single users, lists of named users, and the log by position, whose end must not
 * be read from another server than the events before it.
 * @throws {Error} if the database cannot be reached, used ({@link assertUsable}) or migrated.
 */
export const openPostgresStorage = async (
  url: string,
  connections: number,
  features: readonly StoredFeature[] = [],
  replicaOptions: ReplicaOptions | null = null,
): Promise<Storage> => {
  const primary = await openPrimary(url, features, connections)
  let listener: InvalidationListener | null = null
  const database = new Database(primary, connections, id => listener?.invalidate(id))
  const replica = replicaOptions === null ? null : new Replica(replicaOptions, connections)
  const invalidationFeed = new InvalidationFeed(primary, replica)
  primary.watch()
  const lists = new BoundedQueue(Math.ceil(connections * LISTS_SHARE), MAX_WAITING_LISTS, LIST_WAIT_LIMIT)
  const hot = hotOperations(database)
  const operations = operationsOf(features)

  /** Reads from the replica if it can be used. */
  const readOnAny = <Result>(
    read: (reader: Reader) => Promise<Result>,
    onPrimary: () => Promise<Result>,
  ): Promise<Result> => (replica === null ? onPrimary() : replica.run(read, onPrimary))
  const onPrimary = <Result>(read: (reader: Reader) => Promise<Result>): Promise<Result> =>
    lists.run(() => read(database))
  const list = <Result>(read: (reader: Reader) => Promise<Result>): Promise<Result> =>
    readOnAny(read, () => onPrimary(read))

  return storageOf(
    {
      async read({ statement, result }) {
        return result((await database.read(statementOf(statement))) as never[])
      },
      async write(name, args) {
        const operation = operations.get(name)
        if (operation === undefined) throw new Error(`Unknown operation: ${name}`)
        return runOperation(database, () => operation(...args))
      },
      users: {
        async list(query) {
          const { listUsers } = await importLists()
          return (namesUsers(query.filter) ? onPrimary : list)(reader => listUsers(reader, query))
        },
        async count(filter) {
          const { countUsers } = await importLists()
          return (namesUsers(filter) ? onPrimary : list)(reader => countUsers(reader, filter))
        },
        async estimate(filter) {
          const { estimateUsers } = await importLists()
          return (namesUsers(filter) ? onPrimary : list)(reader => estimateUsers(reader, filter))
        },
      },
      accounts: { addUser: hot.addUser },
      sessions: { open: hot.openSession, find: hot.findSession, findNewest: hot.findNewestSessions },
      events: {
        async list(query) {
          const { listEvents } = await importEvents()
          return list(reader => listEvents(reader, query))
        },
        positionKind: 'transactions',
        async follow(query) {
          const { followEvents } = await importEvents()
          return lists.run(() => followEvents(database, query))
        },
        async end() {
          const { logEnd } = await importEvents()
          return lists.run(() => logEnd(database))
        },
      },
      apiKeys: { find: hot.findApiKey },
      adminKeys: { find: hot.findAdminKey },
      lastRequests: lastRequestOperations(database),
      openRateLimit: openRateLimit(database),
      bulkUsers: {
        ...importOperations(database, tablesOf(features).filter(isOwned)),
        async exportUsers(...args) {
          const { exportUsers } = await importLists()
          return readOnAny(
            reader => exportUsers(reader, ...args),
            () => exportUsers(database, ...args),
          )
        },
      },
      cleanUp: { ...cleanUp(database), rotateEvents: rotateEvents(database) },
      subscribe(newListener) {
        listener = newListener
        invalidationFeed.subscribe(newListener)
      },
      // Each process has one event loop, in which the feed invalidates.
      deliverInvalidations: () => undefined,
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
        replica: replica?.statistics ?? null,
      }),
      async close() {
        primary.close()
        invalidationFeed.close()
        await Promise.all([database.close(), replica?.close()])
      },
    },
    features,
  )
}
