import type { EmailToken } from '../../accounts/email-token.ts'
import type { InvalidationListener } from '../../auth/invalidation.ts'
import type { UserLastRequest } from '../../auth/last-requests.ts'
import { type SessionRow, toSession, toUser, type UserRow } from '../rows.ts'
import type { Storage } from '../storage.ts'
import { bringUpToDate } from './database.ts'
import { OpenDatabaseFile } from './database-file.ts'
import { eventPage, follow, logEnd } from './events.ts'
import { exporter } from './exports.ts'
import { FileWatch } from './file-watch.ts'
import { count, page } from './lists.ts'
import {
  LIST_SESSIONS,
  SELECT_BY_EMAIL,
  SELECT_BY_ID,
  SELECT_BY_KEY,
  SELECT_EMAIL_TOKEN,
  SELECT_SESSION,
} from './queries.ts'
import { rateLimits } from './rate-limits.ts'
import { Reader } from './reader.ts'
import { TimeSlicer } from './time-slicer.ts'
import { Writer } from './writer.ts'

/** Key and timestamp in turn: one piece of memory crosses to the writer's thread at a fraction of what as many objects cost. */
const pairs = (users: readonly UserLastRequest[]): Float64Array => {
  const packed = new Float64Array(users.length * 2)
  for (const [index, { key, at }] of users.entries()) {
    packed[index * 2] = key
    packed[index * 2 + 1] = at
  }
  return packed
}

const openReader = (file: string, held: OpenDatabaseFile) => {
  let reader: Reader | undefined
  try {
    reader = new Reader(file)
    return { reader, opened: held.opened() }
  } catch (error) {
    reader?.close()
    held.release()
    throw error
  }
}

/**
 * Opens the embedded store in `file`, which is created when missing and brought up to date.
 * @throws {Error} when the file cannot be opened or migrated.
 */
export const openSqliteStorage = async (file: string): Promise<Storage> => {
  await bringUpToDate(file)
  let listener: InvalidationListener | null = null
  const held = new OpenDatabaseFile(file)
  const { reader, opened } = openReader(file, held)
  const watch = new FileWatch(opened, problem => {
    reader.refuse(problem !== null)
    writer.refuse(problem !== null)
    listener?.listening(problem === null, problem?.message)
  })
  const timeSlicer = new TimeSlicer()
  const writer = new Writer(opened, {
    onInvalidated: userId => listener?.userChanged(userId),
    onChangedElsewhere: () => listener?.anyoneChanged(),
    onProblem: problem => watch.found(problem),
  })

  return {
    users: {
      find(id) {
        const row = reader.get<UserRow>(SELECT_BY_ID, id)
        return row && toUser(row)
      },
      findByEmail(email) {
        const row = reader.get<UserRow & { password_hash: string }>(SELECT_BY_EMAIL, email)
        return row && { user: toUser(row), passwordHash: row.password_hash }
      },
      update: (id, changes, event, options) => writer.run('updateUser', id, changes, event, options),
      remove: (event, verifiedHash) => writer.run('removeUser', event, verifiedHash),
      list: query => timeSlicer.run(page(reader, query)),
      count: filter => timeSlicer.run(count(reader, filter)),
    },
    accounts: {
      addUser: (user, event, first) => writer.run('addUser', user, event, first),
      rehash: (userId, from, to) => writer.run('rehash', userId, from, to),
      changePassword: (session, verifiedHash, newHash, event) =>
        writer.run('changePassword', session, verifiedHash, newHash, event),
    },
    sessions: {
      open: (session, verifiedHash, event) => writer.run('openSession', session, verifiedHash, event),
      end: (id, event) => writer.run('endSession', id, event),
      endAll: (exceptId, event, onlyEnabled) => writer.run('endSessions', exceptId, event, onlyEnabled),
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
      list: query => timeSlicer.run(eventPage(reader, query)),
      positions: 'counted',
      follow: query => timeSlicer.run(follow(reader, query)),
      end: () => logEnd(reader),
    },
    lastRequests: {
      noteLastRequests: (users, sessions) => writer.run('noteLastRequests', pairs(users), sessions),
    },
    rateLimit: rateLimits,
    bulkUsers: {
      importUsers: (users, events) => writer.run('importUsers', users, events),
      exportUsers: exporter(reader, timeSlicer),
    },
    cleanUp: {
      removeSessions: (expired, after, limit) => writer.run('removeExpiredSessions', expired, after, limit),
      removeEmailTokens: (before, limit) => writer.run('removeOldTokens', before, limit),
      removeEvents: (before, limit) => writer.run('removeOldEvents', before, limit),
      // They are in memory, and end there by themselves.
      removeRateLimits: async () => '',
    },
    subscribe(newListener) {
      listener = newListener
      // The writer's thread tells of every other process from its start on.
      listener.listening(watch.problem === null, watch.problem?.message)
    },
    async ping() {
      reader.get('SELECT 1 FROM users LIMIT 1')
      await writer.prove()
    },
    async close() {
      await writer.close()
      watch.stop()
      listener?.closed()
      // The last connection to close makes a checkpoint, which has no place in what somebody else has put there. It ends with
      // the process, which makes none.
      if (watch.problem?.isFinal) return
      reader.close()
      held.release()
    },
  }
}
