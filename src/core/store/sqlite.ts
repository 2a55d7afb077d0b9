/** The store in a SQLite file, with what this engine runs by hand. */
import type { MaybePromise } from '#base/maybe-promise'
import {
  joinSharedEngine,
  openSharedEngine,
  type SqliteEngine,
  type WorkerStore,
} from '#storage/sqlite/engine'
import type { StartWriter } from '#storage/sqlite/writer-owner'
import { credentialReads } from '../auth/sqlite-credentials.ts'
import { type AccountFeature, clientTokensOf } from './account-feature.ts'
import { createStore } from './create-store.ts'
import { schemaOf } from './migrations.ts'
import type { Storage } from './store.ts'

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
  const credentials = credentialReads(reader, clientTokensOf(features))
  return createStore(
    engine,
    {
      users: {
        list: query => withLists(({ listUsers }) => timeSlicer.run(listUsers(reader, query))),
        count: filter => withLists(({ countUsers }) => timeSlicer.run(countUsers(reader, filter))),
        estimate: filter => withLists(({ estimateUsers }) => timeSlicer.run(estimateUsers(reader, filter))),
      },
      sessions: { find: credentials.findSession },
      events: {
        list: query => withEvents(({ listEvents }) => timeSlicer.run(listEvents(reader, query))),
        positionKind: 'counted',
        follow: query => withEvents(({ followEvents }) => timeSlicer.run(followEvents(reader, query))),
        end: () => withEvents(({ logEnd }) => logEnd(reader)),
      },
      apiKeys: { find: credentials.findApiKey },
      adminKeys: { find: credentials.findAdminKey },
      grants: { find: credentials.findGrant },
      clients: { find: credentials.findClient },
      lastRequests: {
        recordLastRequests: async (...args) => void (await engine.write('recordLastRequests', args)),
      },
      bulkUsers: {
        exportUsers: (...args) =>
          withLists(({ exportUsers }) => timeSlicer.run(exportUsers(reader, ...args))),
      },
      cleanUp: {
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
  /** The store of this event loop. Closed after those of the workers, it ends the writer thread. */
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
  const { engine, addWorker } = await openSharedEngine(file, OPERATIONS, schemaOf(features), startWriter)
  return { storage: storeOf(engine, features), addWorker }
}

/** Opens the store in a process with one event loop; {@link openSharedStore} is for several. */
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
