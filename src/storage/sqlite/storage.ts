/** The SQLite engine: reads on the event loop, writes on the writer thread. */
import type { EmailToken } from '../../accounts/email-token.ts'
import type { InvalidationListener } from '../../auth/invalidation.ts'
import type { UserLastRequest } from '../../auth/last-requests.ts'
import { fromLimiter, memoryLimiter } from '../rate-limits.ts'
import {
  type SessionRow,
  toCredentials,
  toSession,
  toUser,
  type UserRow,
  type UserRowWithHash,
} from '../rows.ts'
import type { Storage } from '../storage.ts'
import { DatabaseFileHandle, FileWatch } from './database-file.ts'
import { followEvents, listEvents, logEnd } from './events.ts'
import { countUsers, exportUsers, listUsers } from './lists.ts'
import { migrate } from './migrate.ts'
import {
  LIST_SESSIONS,
  SELECT_BY_EMAIL,
  SELECT_BY_ID,
  SELECT_BY_KEY,
  SELECT_EMAIL_TOKEN,
  SELECT_SESSION,
} from './queries.ts'
import { Reader } from './reader.ts'
import { TimeSlicer } from './time-slicer.ts'
import { Writer } from './writer.ts'

/** For the operator, when a problem with the database file has ended. */
const FILE_RESTORED = 'the database file is in place again: the service continues'

/** Flattens pairs of key and timestamp. Posting one typed array to the writer thread costs a fraction of posting many objects. */
const packTimestamps = (users: readonly UserLastRequest[]): Float64Array => {
  const packed = new Float64Array(users.length * 2)
  for (const [index, { key, at }] of users.entries()) {
    packed[index * 2] = key
    packed[index * 2 + 1] = at
  }
  return packed
}

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

/**
 * Opens the store in `file`, which is created when missing and migrated when it is of an older version.
 * @throws {Error} when the file cannot be opened or migrated.
 */
export const openSqliteStorage = async (file: string): Promise<Storage> => {
  await migrate(file)
  let listener: InvalidationListener | null = null
  const fileHandle = new DatabaseFileHandle(file)
  const { reader, files } = openReader(file, fileHandle)
  const watch = new FileWatch(files, problem => {
    reader.setUnavailable(problem !== null)
    writer.setUnavailable(problem !== null)
    listener?.setFeedConnected(problem === null, problem?.message ?? FILE_RESTORED)
  })
  const timeSlicer = new TimeSlicer()
  const writer = new Writer(files, {
    invalidateUser: userId => listener?.invalidateUser(userId),
    invalidateAll: () => listener?.invalidateAll(),
    onFileProblem: problem => watch.setWriterProblem(problem),
  })

  return {
    users: {
      find(id) {
        const row = reader.get<UserRow>(SELECT_BY_ID, id)
        return row && toUser(row)
      },
      findByEmail(email) {
        const row = reader.get<UserRowWithHash>(SELECT_BY_EMAIL, email)
        return row && toCredentials(row)
      },
      update: (id, changes, event, options) => writer.run('updateUser', id, changes, event, options),
      remove: (event, verifiedHash) => writer.run('removeUser', event, verifiedHash),
      list: query => timeSlicer.run(listUsers(reader, query)),
      count: filter => timeSlicer.run(countUsers(reader, filter)),
    },
    accounts: {
      addUser: (user, event, first) => writer.run('addUser', user, event, first),
      rehash: (userId, from, to) => writer.run('rehash', userId, from, to),
      changePassword: (session, verifiedHash, newHash, event) =>
        writer.run('changePassword', session, verifiedHash, newHash, event),
    },
    sessions: {
      open: (session, verifiedHash, event) => writer.run('openSession', session, verifiedHash, event),
      revoke: (id, event) => writer.run('revokeSession', id, event),
      revokeAll: (event, options) => writer.run('revokeSessions', event, options),
      list: (userId, now, idleSince, limit) =>
        reader
          .rows<SessionRow>(LIST_SESSIONS, userId, now, idleSince, limit)
          .map(row => toSession(row, userId)),
      find(id) {
        const row = reader.get<SessionRow & { user_key: number }>(SELECT_SESSION, id)
        const user = row && reader.get<UserRow>(SELECT_BY_KEY, row.user_key)
        return user && { session: toSession(row, user.id), user: toUser(user), userKey: row.user_key }
      },
    },
    emailTokens: {
      add: (token, event, verifiedHash) => writer.run('addEmailToken', token, event, verifiedHash),
      find: (digest, now) => reader.get<EmailToken>(SELECT_EMAIL_TOKEN, digest, now),
      confirmEmail: (token, event) => writer.run('confirmEmail', token, event),
      resetPassword: (token, session, newHash, event) =>
        writer.run('resetPassword', token, session, newHash, event),
    },
    events: {
      record: event => writer.run('record', event),
      list: query => timeSlicer.run(listEvents(reader, query)),
      positionKind: 'counted',
      follow: query => timeSlicer.run(followEvents(reader, query)),
      end: () => logEnd(reader),
    },
    lastRequests: {
      noteLastRequests: (users, sessions) => writer.run('noteLastRequests', packTimestamps(users), sessions),
    },
    // In memory: a restart forgets the counts, and processes that share a file count separately. No request waits for a write.
    openRateLimit: options => fromLimiter(memoryLimiter(options)),
    bulkUsers: {
      importUsers: (users, events) => writer.run('importUsers', users, events),
      exportUsers: after => timeSlicer.run(exportUsers(reader, after)),
    },
    cleanUp: {
      removeSessions: (expired, after, limit) => writer.run('removeSessions', expired, after, limit),
      removeEmailTokens: (before, limit) => writer.run('removeEmailTokens', before, limit),
      removeEvents: (before, limit) => writer.run('removeEvents', before, limit),
      // The counts in memory expire by themselves.
      removeRateLimits: async () => '',
    },
    subscribe(newListener) {
      listener = newListener
      // The writer thread notifies of changes by other processes from its start.
      listener.setFeedConnected(watch.problem === null, watch.problem?.message)
    },
    async ping() {
      reader.get('SELECT 1 FROM users LIMIT 1')
      await writer.probe()
    },
    async close() {
      await writer.close()
      watch.stop()
      listener?.closed()
      // The last connection to close makes a checkpoint, which must not happen in a file that was overwritten. The end of the
      // process closes the connection without one.
      if (watch.problem?.needsRestart) return
      reader.close()
      fileHandle.release()
    },
  }
}
