/** The store in a PostgreSQL database, with what this engine runs by hand. */
import { openPostgresEngine, type PostgresOptions } from '#storage/postgres/engine'
import { rotateEvents } from '#storage/postgres/event-months'
import { isOwned, tablesOf } from '#storage/stored-feature'
import { accountStatements } from '../accounts/postgres-accounts.ts'
import { cleanUp } from '../accounts/postgres-clean-up.ts'
import { sessionStatements } from '../auth/postgres-credentials.ts'
import { lastRequestOperations } from '../auth/postgres-last-requests.ts'
import type { UserFilter } from '../users/listing.ts'
import { type AccountFeature, clientTokensOf } from './account-feature.ts'
import { createStore } from './create-store.ts'
import { schemaOf } from './migrations.ts'
import { operationsOf } from './operations.ts'
import type { Storage } from './store.ts'

// They import the query builder.
const importLists = () => import('../users/postgres-lists.ts')
const importEvents = () => import('../audit-log/postgres-events.ts')

/** Whether a filter names users. Who asks for certain users may decide by the response, as by `GET /admin/users/:id`. */
const namesUsers = ({ ids, email }: UserFilter): boolean => ids !== undefined || email !== undefined

/**
 * Opens the store in the PostgreSQL database of `url` and migrates it.
 * @param connections the maximum number; one more listens for changes.
 * @param options lists, counts, exports and event pages are read from the replica while it is recent enough. Reads that decide go
 * to the primary: authentication, single users, lists of named users, and the log by position, whose end must not be read from
 * another server than the events before it.
 * @throws {Error} if the database cannot be reached, used or migrated.
 */
export const openPostgresStorage = async (
  url: string,
  connections: number,
  features: readonly AccountFeature[] = [],
  options: PostgresOptions = { replica: null, waits: true },
): Promise<Storage> => {
  const engine = await openPostgresEngine(
    url,
    connections,
    operationsOf(features),
    schemaOf(features),
    options,
  )
  const { database } = engine
  const { addUser, importUsers } = accountStatements(database, tablesOf(features).filter(isOwned))
  const sessions = sessionStatements(database, clientTokensOf(features))
  const listOf = (filter: UserFilter) => (namesUsers(filter) ? engine.readListOnPrimary : engine.readList)

  return createStore(
    engine,
    {
      users: {
        async list(query) {
          const { listUsers } = await importLists()
          return listOf(query.filter)(reader => listUsers(reader, query))
        },
        async count(filter) {
          const { countUsers } = await importLists()
          return listOf(filter)(reader => countUsers(reader, filter))
        },
        async estimate(filter) {
          const { estimateUsers } = await importLists()
          return listOf(filter)(reader => estimateUsers(reader, filter))
        },
      },
      accounts: { addUser },
      sessions: {
        open: sessions.openSession,
        find: sessions.findSession,
      },
      events: {
        async list(query) {
          const { listEvents } = await importEvents()
          return engine.readList(reader => listEvents(reader, query))
        },
        positionKind: 'transactions',
        async follow(query) {
          const { followEvents } = await importEvents()
          return engine.readListOnPrimary(reader => followEvents(reader, query))
        },
        async end() {
          const { logEnd } = await importEvents()
          return engine.readListOnPrimary(logEnd)
        },
      },
      apiKeys: { find: sessions.findApiKey },
      adminKeys: { find: sessions.findAdminKey },
      grants: { find: sessions.findGrant },
      clients: { find: sessions.findClient },
      lastRequests: lastRequestOperations(database),
      bulkUsers: {
        importUsers,
        async exportUsers(...args) {
          const { exportUsers } = await importLists()
          return engine.readOnAny(reader => exportUsers(reader, ...args))
        },
      },
      cleanUp: { ...cleanUp(database), rotateEvents: rotateEvents(database) },
    },
    features,
  )
}
