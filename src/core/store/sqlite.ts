/** The store in a SQLite file, with what this engine runs by hand. */
import type { MaybePromise } from '#base/maybe-promise'
import {
  joinSharedEngine,
  openSharedEngine,
  type SqliteEngine,
  type WorkerStore,
} from '#storage/sqlite/engine'
import type { StartWriter } from '#storage/sqlite/writer-owner'
import { eventValues } from '../audit-log/stored-events.ts'
import {
  ADMIN_KEY_COLUMNS,
  type AdminKeyRow,
  API_KEY_COLUMNS,
  type ApiKeyRow,
  toAdminKey,
  toApiKey,
} from '../auth/key-rows.ts'
import {
  AFTER_IDS,
  factorsColumn,
  SESSION_COLUMNS,
  type SessionRow,
  selectUser,
  toSession,
  toUser,
  type UserRow,
} from '../users/user-rows.ts'
import type { AccountFeature } from './account-feature.ts'
import { storageOf } from './engine.ts'
import { emailTokenRow, sessionRow, userRow } from './sqlite-hot-operations.ts'
import type { HandWritten } from './sqlite-operations.ts'
import type { Storage } from './storage.ts'

// The lookup of a session, or API key, and its user: two statements take less time than a join, see `USER_VALUES`.
const FIND_SESSION = `SELECT user_key, ${SESSION_COLUMNS.join(', ')} FROM sessions WHERE id = ?`
const FIND_NEWEST_SESSIONS = `SELECT user_key, ${SESSION_COLUMNS.join(', ')} FROM sessions WHERE id < ?
  ORDER BY id DESC LIMIT ?`
const FIND_API_KEY = `SELECT user_key, ${API_KEY_COLUMNS.join(', ')} FROM api_keys WHERE digest = ?`
const FIND_USER_BY_KEY = `${selectUser()} WHERE key = ?`

const FIND_ADMIN_KEY = `SELECT ${ADMIN_KEY_COLUMNS.join(', ')} FROM admin_keys WHERE digest = ?`

/** Passes a module on, which is imported with the first call: later calls are synchronous. */
const onDemand = <Module>(load: () => Promise<Module>) => {
  let loaded: Module | undefined
  return <Result>(use: (module: Module) => MaybePromise<Result>): MaybePromise<Result> => {
    if (loaded !== undefined) return use(loaded)
    return load().then(module => {
      loaded = module
      return use(module)
    })
  }
}

// They import the query builder.
const withLists = onDemand(() => import('../users/sqlite-lists.ts'))
const withEvents = onDemand(() => import('../audit-log/sqlite-events.ts'))

/** The module that the writer thread imports. */
const OPERATIONS = new URL('./sqlite-operations.ts', import.meta.url).href

const storeOf = (engine: SqliteEngine, features: readonly AccountFeature[]): Storage => {
  const { reader, timeSlicer } = engine
  /** Runs an operation of {@link HandWritten}. */
  const run = <Name extends keyof HandWritten>(name: Name, ...args: Parameters<HandWritten[Name]>) =>
    engine.write(name, args) as Promise<ReturnType<HandWritten[Name]>['result']>

  return storageOf(
    engine,
    {
      users: {
        list: query => withLists(({ listUsers }) => timeSlicer.run(listUsers(reader, query))),
        count: filter => withLists(({ countUsers }) => timeSlicer.run(countUsers(reader, filter))),
        estimate: filter => withLists(({ estimateUsers }) => timeSlicer.run(estimateUsers(reader, filter))),
      },
      accounts: {
        async addUser(user, event, { session, emailToken }) {
          if (session && session.userId !== user.id) throw new Error('The session belongs to another user')
          return run(
            'addUser',
            userRow(user),
            eventValues(event),
            session ? sessionRow(session) : null,
            emailToken ? emailTokenRow(emailToken) : null,
          )
        },
      },
      sessions: {
        open: (session, verified, event) =>
          run(
            'openSession',
            session.userId,
            verified && [verified.passwordHash, factorsColumn(verified.factors)],
            sessionRow(session),
            eventValues(event),
          ),
        find(id) {
          const row = reader.get<SessionRow & { user_key: number }>(FIND_SESSION, id)
          const user = row && reader.get<UserRow>(FIND_USER_BY_KEY, row.user_key)
          return user && { session: toSession(row, user.id), user: toUser(user), userKey: row.user_key }
        },
        findNewest(before, limit) {
          const rows = reader.rows<SessionRow & { user_key: number }>(
            FIND_NEWEST_SESSIONS,
            before ?? AFTER_IDS,
            limit,
          )
          return rows.flatMap(row => {
            const user = reader.get<UserRow>(FIND_USER_BY_KEY, row.user_key)
            return user ? { session: toSession(row, user.id), user: toUser(user), userKey: row.user_key } : []
          })
        },
      },
      events: {
        list: query => withEvents(({ listEvents }) => timeSlicer.run(listEvents(reader, query))),
        positionKind: 'counted',
        follow: query => withEvents(({ followEvents }) => timeSlicer.run(followEvents(reader, query))),
        end: () => withEvents(({ logEnd }) => logEnd(reader)),
      },
      apiKeys: {
        find(digest) {
          const row = reader.get<ApiKeyRow & { user_key: number }>(FIND_API_KEY, digest)
          const user = row && reader.get<UserRow>(FIND_USER_BY_KEY, row.user_key)
          return user && { apiKey: toApiKey(row), user: toUser(user), userKey: row.user_key }
        },
      },
      adminKeys: {
        find(digest) {
          const row = reader.get<AdminKeyRow>(FIND_ADMIN_KEY, digest)
          return row && toAdminKey(row)
        },
      },
      lastRequests: {
        recordLastRequests: (users, sessions) => run('recordLastRequests', users, sessions),
      },
      bulkUsers: {
        importUsers: (users, events, rows) => run('importUsers', users, events, rows),
        exportUsers: (...args) =>
          withLists(({ exportUsers }) => timeSlicer.run(exportUsers(reader, ...args))),
      },
      cleanUp: {
        removeSessions: (expired, after, limit) => run('removeSessions', expired, after, limit),
        // There is one table.
        rotateEvents: async (now, kept) => now - kept,
        // The counts in memory expire by themselves.
        removeRateLimits: async () => '',
      },
    },
    features,
  )
}

/** The store of a process with several event loops. */
export interface SharedStore {
  /** That of this event loop. Closed after those of the workers, it ends the writer thread. */
  readonly storage: Storage
  /** @returns the store of a new worker, whose ports are to be transferred; `remove` is to be called when it has ended. */
  addWorker(): { readonly store: WorkerStore; readonly remove: () => void }
}

/**
 * Opens the store in `file`, which is created when missing and migrated when it is of an older version.
 * @param startWriter by default starts a thread for this store.
 * @throws {Error} when the file cannot be opened or migrated.
 */
export const openSharedStore = async (
  file: string,
  features: readonly AccountFeature[] = [],
  startWriter?: StartWriter,
): Promise<SharedStore> => {
  const { engine, addWorker } = await openSharedEngine(file, OPERATIONS, features, startWriter)
  return { storage: storeOf(engine, features), addWorker }
}

/** Opens the store in a process with one event loop. See {@link openSharedStore}. */
export const openSqliteStorage = async (
  file: string,
  features: readonly AccountFeature[] = [],
  startWriter?: StartWriter,
): Promise<Storage> => (await openSharedStore(file, features, startWriter)).storage

/**
 * Opens the store in a worker thread of a process that has it open.
 * @throws {Error} when the files at the path are not those that the process has open.
 */
export const joinSharedStore = async (
  store: WorkerStore,
  features: readonly AccountFeature[],
): Promise<Storage> => storeOf(joinSharedEngine(store), features)
