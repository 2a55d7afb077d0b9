/** The SQLite engine: reads on the event loop, writes on the writer thread, which the event loops of a process share. */
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import type { MaybePromise } from '#base/maybe-promise'
import type { InvalidationListener } from '#storage/invalidation'
import { DatabaseFileHandle, FileWatch, type OpenFiles, pathProblem } from '#storage/sqlite/database-file'
import { SQLITE } from '#storage/sqlite/dialect'
import { ensureSchema } from '#storage/sqlite/ensure-schema'
import { assertImportable } from '#storage/sqlite/feature-modules'
import { InvalidationReceiver, newInvalidationBuffer } from '#storage/sqlite/invalidation-ring'
import { bindingsOf } from '#storage/sqlite/operation-runner'
import { Reader } from '#storage/sqlite/reader'
import { remoteRateLimits, serveRateLimits } from '#storage/sqlite/remote-rate-limits'
import { TimeSlicer } from '#storage/sqlite/time-slicer'
import { Writer } from '#storage/sqlite/writer'
import { type Connect, type StartWriter, WriterOwner } from '#storage/sqlite/writer-owner'
import type { StoredFeature } from '#storage/stored-feature'
import { eventValues } from '../audit-log/stored-events.ts'
import {
  ADMIN_KEY_COLUMNS,
  type AdminKeyRow,
  API_KEY_COLUMNS,
  type ApiKeyRow,
  toAdminKey,
  toApiKey,
} from '../auth/key-rows.ts'
import type { OpenRateLimit, RateLimit, RateLimitOptions } from '../rate-limits/rate-limit.ts'
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
import { storageOf } from './engine.ts'
import { emailTokenRow, sessionRow, userRow } from './sqlite-hot-operations.ts'
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

/** For the operator, when a problem with the database file has ended. */
const FILE_RESTORED = 'the database file is in place again: the service continues'

/** Opens the reader, and then identifies the files that it has open. Closes everything on failure. */
const openReader = (file: string, fileHandle: DatabaseFileHandle) => {
  let reader: Reader | undefined
  try {
    reader = new Reader(file)
    return { reader, files: fileHandle.openFiles() }
  } catch (error) {
    reader?.close()
    fileHandle.release()
    throw error
  }
}

/** Milliseconds between deliveries of invalidations to an event loop that has no requests. */
const DELIVERY_INTERVAL = 250

/** What an event loop needs of the database that its process has open. */
interface SharedDatabase {
  readonly files: OpenFiles
  readonly invalidations: SharedArrayBuffer
  /** Passes the port to the writer thread, and that of each thread that replaces it. */
  readonly connectWriter: (connect: Connect) => void
  readonly openRateLimit: OpenRateLimit
  /** Called when this event loop has closed what it had open. @param isDamaged whether the files must stay open. */
  readonly release: (isDamaged: boolean) => Promise<void> | void
}

const storageOfEventLoop = (
  reader: Reader,
  { files, invalidations, connectWriter, openRateLimit, release }: SharedDatabase,
  features: readonly StoredFeature[],
): Storage => {
  let listener: InvalidationListener | null = null
  const receiver = new InvalidationReceiver(invalidations, {
    invalidate: id => listener?.invalidate(id),
    invalidateAll: () => listener?.invalidateAll(),
  })
  const deliverInvalidations = () => receiver.deliver()
  const deliveries = setInterval(deliverInvalidations, DELIVERY_INTERVAL).unref()
  const watch = new FileWatch(files, problem => {
    reader.setUnavailable(problem !== null)
    writer.setUnavailable(problem !== null)
    listener?.setFeedConnected(problem === null, problem?.message ?? FILE_RESTORED)
  })
  const timeSlicer = new TimeSlicer()
  const writer = new Writer({
    deliverInvalidations,
    onFileProblem: problem => watch.setWriterProblem(problem),
  })
  connectWriter(port => writer.connect(port))

  return storageOf(
    {
      read: ({ statement, result }) => {
        const { text, values } = statement
        const sql = typeof text === 'string' ? text : text(SQLITE)
        return result(reader.rows(sql, bindingsOf(values)) as never[])
      },
      write: (name, args) => writer.run(name, args),
      users: {
        list: query => withLists(({ listUsers }) => timeSlicer.run(listUsers(reader, query))),
        count: filter => withLists(({ countUsers }) => timeSlicer.run(countUsers(reader, filter))),
        estimate: filter => withLists(({ estimateUsers }) => timeSlicer.run(estimateUsers(reader, filter))),
      },
      accounts: {
        async addUser(user, event, { session, emailToken }) {
          if (session && session.userId !== user.id) throw new Error('The session belongs to another user')
          return writer.runHandWritten(
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
          writer.runHandWritten(
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
        recordLastRequests: (users, sessions) => writer.runHandWritten('recordLastRequests', users, sessions),
      },
      openRateLimit,
      bulkUsers: {
        importUsers: (users, events, rows) => writer.runHandWritten('importUsers', users, events, rows),
        exportUsers: (...args) =>
          withLists(({ exportUsers }) => timeSlicer.run(exportUsers(reader, ...args))),
      },
      cleanUp: {
        removeSessions: (expired, after, limit) =>
          writer.runHandWritten('removeSessions', expired, after, limit),
        // There is one table.
        rotateEvents: async (now, kept) => now - kept,
        // The counts in memory expire by themselves.
        removeRateLimits: async () => '',
      },
      subscribe(newListener) {
        listener = newListener
        // The writer thread notifies of changes by other processes from its start.
        listener.setFeedConnected(watch.problem === null, watch.problem?.message)
      },
      deliverInvalidations,
      async ping() {
        reader.get('SELECT 1 FROM users LIMIT 1')
        await writer.probe()
      },
      statistics: () => ({ engine: 'sqlite', writer: writer.statistics }),
      async close() {
        await writer.close()
        watch.stop()
        clearInterval(deliveries)
        listener?.closed()
        // The last connection to close makes a checkpoint, which must not happen in a file that was overwritten. The end of the
        // process closes the connection without one.
        if (!watch.problem?.needsRestart) reader.close()
        await release(watch.problem?.needsRestart === true)
      },
    },
    features,
  )
}

/** Its library is imported with the first count: commands count nothing, so that they load 14 KB of code less. */
const rateLimitInMemory = (options: RateLimitOptions): RateLimit => {
  let limit: RateLimit | undefined
  const load = async (): Promise<RateLimit> => {
    const { fromLimiter, memoryLimiter } = await import('#storage/rate-limits')
    limit ??= fromLimiter(memoryLimiter(options))
    return limit
  }
  const run = <Result>(use: (loaded: RateLimit) => Promise<Result>): Promise<Result> =>
    limit === undefined ? load().then(use) : use(limit)
  return {
    consume: (key, seconds) => run(({ consume }) => consume(key, seconds)),
    refund: key => run(({ refund }) => refund(key)),
    used: key => run(({ used }) => used(key)),
    set: (key, count, seconds) => run(({ set }) => set(key, count, seconds)),
    delete: key => run(loaded => loaded.delete(key)),
  }
}

/** In memory: a restart forgets the counts, and processes that share a file count separately. No request waits for a write. */
const rateLimitsInMemory = (): OpenRateLimit => {
  const limits = new Map<string, RateLimit>()
  return options => {
    const key = JSON.stringify(options)
    const limit = limits.get(key) ?? rateLimitInMemory(options)
    limits.set(key, limit)
    return limit
  }
}

/** What a worker thread needs to use the database that its process has open: data that can be sent to it. */
export interface WorkerStore {
  readonly files: OpenFiles
  readonly invalidations: SharedArrayBuffer
  /** Receives ports to the writer thread. */
  readonly writers: MessagePort
  readonly rateLimits: MessagePort
}

/** The store of a process with several event loops. */
export interface SharedStore {
  /** The storage of this event loop. Closed after those of the workers, it ends the writer thread. */
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
  features: readonly StoredFeature[] = [],
  startWriter?: StartWriter,
): Promise<SharedStore> => {
  // The writer thread imports them too. A feature that it could not find must not start.
  await assertImportable(features)
  await ensureSchema(file, features)
  const fileHandle = new DatabaseFileHandle(file)
  const { reader, files } = openReader(file, fileHandle)
  const invalidations = newInvalidationBuffer()
  const modules = features.map(({ name, module }) => ({ name, module }))
  const owner = new WriterOwner({ ...files, features: modules, invalidations }, startWriter)
  const openRateLimit = rateLimitsInMemory()
  const storage = storageOfEventLoop(
    reader,
    {
      files,
      invalidations,
      openRateLimit,
      connectWriter: connect => owner.addClient(connect),
      async release(isDamaged) {
        await owner.close()
        if (!isDamaged) fileHandle.release()
      },
    },
    features,
  )
  return {
    storage,
    addWorker() {
      const writers = new MessageChannel()
      const rateLimits = new MessageChannel()
      const removeClient = owner.addClient(port => writers.port1.postMessage(port, [port]))
      serveRateLimits(rateLimits.port1, openRateLimit)
      return {
        store: { files, invalidations, writers: writers.port2, rateLimits: rateLimits.port2 },
        remove() {
          removeClient()
          writers.port1.close()
          rateLimits.port1.close()
        },
      }
    },
  }
}

/** Opens the store in a process with one event loop. See {@link openSharedStore}. */
export const openSqliteStorage = async (
  file: string,
  features: readonly StoredFeature[] = [],
  startWriter?: StartWriter,
): Promise<Storage> => (await openSharedStore(file, features, startWriter)).storage

/** @throws {Error} when the files at the path are not the open ones. */
const assertInPlace = (files: OpenFiles): void => {
  const problem = pathProblem(files)
  if (problem !== null) throw Object.assign(new Error(problem.message), { code: 'DATABASE_FILE' })
}

/** Opens the reader of files that this process has open. Another database at the path would still be read when it is gone again. */
const joinReader = (files: OpenFiles): Reader => {
  // Opening another file would change it.
  assertInPlace(files)
  const reader = new Reader(files.path)
  try {
    assertInPlace(files)
    return reader
  } catch (error) {
    reader.close()
    throw error
  }
}

/**
 * Opens the store in a worker thread of a process that has it open.
 * @throws {Error} when the files at the path are not those that the process has open.
 */
export const joinSharedStore = async (
  { files, invalidations, writers, rateLimits }: WorkerStore,
  features: readonly StoredFeature[],
): Promise<Storage> =>
  storageOfEventLoop(
    joinReader(files),
    {
      files,
      invalidations,
      openRateLimit: remoteRateLimits(rateLimits),
      connectWriter: connect => void writers.on('message', connect),
      release() {
        writers.close()
        rateLimits.close()
      },
    },
    features,
  )
