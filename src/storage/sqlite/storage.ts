import type { Session } from '../../auth/session.ts'
import type { Storage } from '../storage.ts'
import { countQuery, pageQuery } from '../user-queries.ts'
import { migrate } from './migrate.ts'
import { queries, Reader } from './reader.ts'
import { SELECT_USER, toUser, USER_COLUMNS, type UserRow } from './rows.ts'
import { Writer } from './writer.ts'

interface SessionRow extends UserRow {
  session_id: string
  session_created_at: number
  expires_at: number
  session_last_request_at: number
}

const SELECT_SESSION = `SELECT ${USER_COLUMNS}, sessions.id AS session_id, sessions.created_at AS session_created_at,
  sessions.expires_at, sessions.last_request_at AS session_last_request_at
  FROM sessions JOIN users ON users.id = sessions.user_id
  LEFT JOIN last_requests ON last_requests.user_id = users.id WHERE sessions.id = ?`

const SELECT_BY_EMAIL = `SELECT ${USER_COLUMNS}, users.password_hash FROM users
  LEFT JOIN last_requests ON last_requests.user_id = users.id WHERE users.email = ?`

const toSession = (row: SessionRow): Session => ({
  id: row.session_id,
  userId: row.id,
  createdAt: row.session_created_at,
  expiresAt: row.expires_at,
  lastRequestAt: row.session_last_request_at,
})

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
  let changed: (userId: string | null) => void = () => undefined
  const reader = new Reader(file)
  const writer = new Writer(file, () => changed(null))

  return {
    users: {
      find(id) {
        const row = reader.get<UserRow>(`${SELECT_USER} WHERE users.id = ?`, id)
        return row && toUser(row)
      },
      findByEmail(email) {
        const row = reader.get<UserRow & { password_hash: string }>(SELECT_BY_EMAIL, email)
        return row && { user: toUser(row), passwordHash: row.password_hash }
      },
      async update(id, changes, at, options) {
        try {
          return await writer.run('updateUser', id, changes, at, options)
        } finally {
          // Also after a failure: a writer that was lost may have committed first.
          changed(id)
        }
      },
      list: query => reader.all(pageQuery(queries, query)).map(toUser),
      count: filter => reader.all(countQuery(queries, filter))[0]?.total ?? 0,
    },
    sessions: {
      addUser: (user, session) => writer.run('addUser', user, session),
      open: (session, verifiedHash) => writer.run('openSession', session, verifiedHash),
      rehash: (userId, from, to) => writer.run('rehash', userId, from, to),
      find(id) {
        const row = reader.get<SessionRow>(SELECT_SESSION, id)
        return row && { session: toSession(row), user: toUser(row) }
      },
    },
    lastRequests: {
      noteLastRequests: (users, sessions) => writer.run('noteLastRequests', users, sessions),
    },
    onChange(listener) {
      changed = listener
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
