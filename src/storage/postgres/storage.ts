import { BoundedQueue } from '../../auth/bounded-queue.ts'
import type { ChangeListener } from '../../auth/change-listener.ts'
import type { FoundSession } from '../../auth/session.ts'
import { ServiceError } from '../../errors.ts'
import { SESSION_COLUMNS, type SessionRow, selectUser, toSession, toUser, type UserRow } from '../rows.ts'
import type { Storage } from '../storage.ts'
import { ChangeFeed } from './change-feed.ts'
import { Database, reason } from './database.ts'
import { count, page } from './lists.ts'
import { migrate } from './migrate.ts'
import { operations } from './operations.ts'

interface FoundRow extends UserRow {
  key: number
  session_id: string
  opened_at: number
  expires_at: number
  session_last_request_at: number
  ip: string | null
  user_agent: string | null
}

const SELECT_BY_ID = `${selectUser()} WHERE id = $1`
const SELECT_BY_EMAIL = `${selectUser('password_hash')} WHERE email = $1`
const SELECT_SESSION = `${selectUser('key', 'session.*')} JOIN (
    SELECT id AS session_id, user_key, created_at AS opened_at, expires_at, last_request_at AS session_last_request_at,
           ip, user_agent
    FROM sessions WHERE id = $1
  ) AS session ON session.user_key = users.key`

const LIST_SESSIONS = `SELECT ${SESSION_COLUMNS} FROM sessions
  WHERE user_key = (SELECT key FROM users WHERE id = $1) AND expires_at > $2 AND last_request_at > $3
  ORDER BY created_at DESC, id DESC LIMIT $4`

/** Of the connections, what lists and counts may use: they can take a hundred times as long as what signs in and identifies. */
const LISTS_SHARE = 0.5

/** Lists that wait, and milliseconds that each may: whoever comes later is told so at once, whoever waits longer then. */
const MAX_WAITING_LISTS = 200
const LIST_PATIENCE = 5_000

/** After a failover the address may still lead to a server that takes no writes. */
const READ_ONLY = `SELECT current_setting('transaction_read_only') AS read_only`

const toFound = (row: FoundRow): FoundSession => ({
  session: toSession(
    { ...row, id: row.session_id, created_at: row.opened_at, last_request_at: row.session_last_request_at },
    row.id,
  ),
  user: toUser(row),
  userKey: row.key,
})

/** An answer of 2xx to a write means that it is on disk (DESIGN §7). */
const assertDurable = async (database: Database): Promise<void> => {
  const text = `SELECT current_setting('synchronous_commit') AS mode`
  const [setting] = await database.run<{ mode: string }>({ text, values: [] })
  if (setting?.mode === 'off') {
    const message = 'the database acknowledges what is not on disk: synchronous_commit is off'
    throw Object.assign(new Error(message), { code: 'NOT_DURABLE' })
  }
}

/**
 * Opens the store in the PostgreSQL database that `url` names, which is brought up to date.
 * @param connections how many may be used at once; one more listens for changes.
 * @throws {Error} when the database cannot be reached or migrated, or would acknowledge what is not on disk.
 */
export const openPostgresStorage = async (url: string, connections: number): Promise<Storage> => {
  await migrate(url).catch(error => {
    throw Object.assign(new Error(`the database: ${reason(error)}`, { cause: error }), {
      code: error.code ?? 'DATABASE',
    })
  })
  const database = new Database(url, connections)
  await assertDurable(database).catch(async error => {
    await database.close()
    throw error
  })
  const changeFeed = new ChangeFeed(url)
  const lists = new BoundedQueue(Math.ceil(connections * LISTS_SHARE), MAX_WAITING_LISTS, LIST_PATIENCE)
  const write = operations(database)
  let listener: ChangeListener | null = null

  /** Also after a failure: the answer to a COMMIT may be what was lost. */
  const told = <Result>(userId: string, written: Promise<Result>): Promise<Result> =>
    written.finally(() => listener?.userChanged(userId))

  return {
    users: {
      async find(id) {
        const [row] = await database.run<UserRow>({ name: 'user', text: SELECT_BY_ID, values: [id] })
        return row && toUser(row)
      },
      async findByEmail(email) {
        const [row] = await database.run<UserRow & { password_hash: string }>({
          name: 'user-by-email',
          text: SELECT_BY_EMAIL,
          values: [email],
        })
        return row && { user: toUser(row), passwordHash: row.password_hash }
      },
      update: (id, changes, at, options) => told(id, write.updateUser(id, changes, at, options)),
      list: query => lists.run(async () => (await database.run<UserRow>(page(query))).map(toUser)),
      count: filter =>
        lists.run(async () => (await database.run<{ total: number }>(count(filter)))[0]?.total ?? 0),
    },
    sessions: {
      addUser: write.addUser,
      open: write.openSession,
      rehash: write.rehash,
      changePassword: (session, verifiedHash, newHash) =>
        told(session.userId, write.changePassword(session, verifiedHash, newHash)),
      end: (userId, id) => told(userId, write.endSession(userId, id)),
      endAll: (userId, exceptId) => told(userId, write.endSessions(userId, exceptId)),
      async list(userId, now, idleSince, limit) {
        const values = [userId, now, idleSince, limit]
        const rows = await database.run<SessionRow>({ name: 'sessions', text: LIST_SESSIONS, values })
        return rows.map(row => toSession(row, userId))
      },
      async find(id, onAsk) {
        const statement = { name: 'session', text: SELECT_SESSION, values: [id] }
        const [row] = await database.run<FoundRow>(statement, onAsk)
        return row && toFound(row)
      },
    },
    lastRequests: { noteLastRequests: write.noteLastRequests },
    onChange(newListener) {
      listener = newListener
      changeFeed.subscribe(newListener)
    },
    async ping() {
      const [answer] = await database.run<{ read_only: string }>({ text: READ_ONLY, values: [] })
      if (answer?.read_only === 'on') throw new ServiceError('storeUnavailable')
    },
    async close() {
      changeFeed.close()
      await database.close()
    },
  }
}
