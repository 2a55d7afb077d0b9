import type { ChangeListener } from '../../auth/change-listener.ts'
import type { UserMoment } from '../../auth/last-request-store.ts'
import { SESSION_COLUMNS, type SessionRow, selectUser, toSession, toUser, type UserRow } from '../rows.ts'
import type { Storage } from '../storage.ts'
import { count, page } from './lists.ts'
import { migrate } from './migrate.ts'
import { Reader } from './reader.ts'
import { Turns } from './turns.ts'
import { Writer } from './writer.ts'

const SELECT_SESSION = `SELECT user_key, ${SESSION_COLUMNS} FROM sessions WHERE id = ?`
const SELECT_BY_KEY = `${selectUser()} WHERE key = ?`
const SELECT_BY_ID = `${selectUser()} WHERE id = ?`
const SELECT_BY_EMAIL = `${selectUser('password_hash')} WHERE email = ?`

/** Each step by an index, without a join (see `selectUser`). */
const LIST_SESSIONS = `SELECT ${SESSION_COLUMNS} FROM sessions
  WHERE user_key = (SELECT key FROM users WHERE id = ?) AND expires_at > ? AND last_request_at > ?
  ORDER BY created_at DESC, id DESC LIMIT ?`

/** Key and moment in turn: one piece of memory crosses to the writer's thread at a fraction of what as many objects cost. */
const pairs = (moments: readonly UserMoment[]): Float64Array => {
  const packed = new Float64Array(moments.length * 2)
  for (const [index, { key, at }] of moments.entries()) {
    packed[index * 2] = key
    packed[index * 2 + 1] = at
  }
  return packed
}

/**
 * Opens the embedded store in `file`, which is created when missing and brought up to date.
 * @throws {Error} when the file cannot be opened or migrated.
 */
export const openSqliteStorage = async (file: string): Promise<Storage> => {
  await migrate(file).catch(error => {
    throw Object.assign(new Error(`the database ${file}: ${error.message}`, { cause: error }), {
      code: error.code,
    })
  })
  let listener: ChangeListener | null = null
  const reader = new Reader(file)
  const turns = new Turns()
  const writer = new Writer(file, () => listener?.anyoneChanged())

  /** Also after a failure: a writer that was lost may have committed first. */
  const told = <Result>(userId: string, written: Promise<Result>): Promise<Result> =>
    written.finally(() => listener?.userChanged(userId))

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
      update: (id, changes, at, options) => told(id, writer.run('updateUser', id, changes, at, options)),
      list: query => turns.run(page(reader, query)),
      count: filter => turns.run(count(reader, filter)),
    },
    sessions: {
      addUser: (user, session) => writer.run('addUser', user, session),
      open: (session, verifiedHash) => writer.run('openSession', session, verifiedHash),
      rehash: (userId, from, to) => writer.run('rehash', userId, from, to),
      changePassword: (session, verifiedHash, newHash) =>
        told(session.userId, writer.run('changePassword', session, verifiedHash, newHash)),
      end: (userId, id) => told(userId, writer.run('endSession', userId, id)),
      endAll: (userId, exceptId) => told(userId, writer.run('endSessions', userId, exceptId)),
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
    lastRequests: {
      noteLastRequests: (users, sessions) => writer.run('noteLastRequests', pairs(users), sessions),
    },
    onChange(newListener) {
      listener = newListener
      // The writer's thread tells of every other process from its start on.
      listener.listening(true)
    },
    async ping() {
      reader.get('SELECT 1 FROM users LIMIT 1')
      await writer.run('barrier')
    },
    async close() {
      await writer.close()
      reader.close()
    },
  }
}
