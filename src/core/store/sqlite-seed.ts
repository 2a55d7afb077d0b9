/** Fills a SQLite file with users. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { openDatabase, stamp } from '#storage/sqlite/database'
import { migrate } from '#storage/sqlite/migrate'
import { bindingsOf } from '#storage/sqlite/operation-runner'
import type { StoredFeature } from '#storage/stored-feature'
import { INSERT_USER, userValues } from '../accounts/stored-accounts.ts'
import type { Session } from '../auth/session.ts'
import { ADD_SESSION, addSessionStatement } from '../auth/stored-sessions.ts'
import { schemaOf } from './migrations.ts'
import {
  SEED_EMAILS,
  type SeedAccount,
  type Seeded,
  type SeededUser,
  type SeedSession,
  type SeedStore,
} from './seed.ts'

/** Milliseconds to wait for another process's lock. */
const LOCK_TIMEOUT = 30_000

const SELECT_USER = 'SELECT key, id, password_hash AS passwordHash, disabled FROM users WHERE email = ?'

const LIST = 'SELECT id, email FROM users WHERE email > ? AND email < ? ORDER BY email LIMIT ?'

interface UserRow {
  readonly key: number
  readonly id: string
  readonly passwordHash: string
  readonly disabled: number
}

const SELECT_SESSION = `SELECT id, created_at AS createdAt, expires_at AS expiresAt FROM sessions
  WHERE user_key = ? AND expires_at > ? AND last_request_at > ? AND ip IS NULL
  ORDER BY created_at DESC, id DESC LIMIT 1`

/** Runs on the calling thread and blocks it: only for processes that serve no requests. */
export const openSqliteSeedStore = async (
  file: string,
  features: readonly StoredFeature[],
): Promise<SeedStore> => {
  await migrate(file, schemaOf(features))
  const db = openDatabase(file, LOCK_TIMEOUT)
  const insertUser = db.prepare<[object]>(`${INSERT_USER} ON CONFLICT (email) DO NOTHING`)
  const insertSession = db.prepare<[object]>(ADD_SESSION)
  const addSession = (session: Session) => insertSession.run(bindingsOf(addSessionStatement(session).values))
  const selectUser = db.prepare<[string], UserRow>(SELECT_USER)
  const selectSession = db.prepare<[number, number, number], Omit<SeedSession, 'userId'>>(SELECT_SESSION)
  const selectPage = db.prepare<[string, string, number], { id: string; email: string }>(LIST)

  const activeSession = ({ key, id }: UserRow, session: Session, idle: number): SeedSession => {
    const { createdAt: now } = session
    const stored = selectSession.get(key, now, now - idle)
    if (stored !== undefined) return { ...stored, userId: id }
    addSession({ ...session, userId: id })
    return { ...session, userId: id }
  }

  const existing = (email: string, session: Session, idle: number): SeededUser | null => {
    const user = selectUser.get(email)
    if (user === undefined) return null
    const { id, passwordHash, disabled } = user
    return { id, passwordHash, session: disabled === 1 ? null : activeSession(user, session, idle) }
  }

  const add = db.transaction((accounts: readonly SeedAccount[], idle: number): Seeded => {
    let added = 0
    const users: (SeededUser | null)[] = []
    for (const { user, session } of accounts) {
      const { changes } = insertUser.run(bindingsOf(userValues(user)))
      added += changes
      if (session === null) continue
      const isNew = changes === 1
      if (isNew) addSession(session)
      const { id, email, passwordHash } = user
      users.push(isNew ? { id, passwordHash, session } : existing(email, session, idle))
    }
    return { added, users }
  })

  return {
    async add(accounts, idle) {
      // Between two slices, signal handlers run and other processes get the write lock.
      await nextTurn()
      return add.immediate(accounts, idle)
    },
    async list(after, limit) {
      return selectPage.all(after, SEED_EMAILS.before, limit)
    },
    async finish() {
      stamp(db)
      db.pragma('wal_checkpoint(TRUNCATE)')
    },
    async close() {
      db.close()
    },
  }
}
