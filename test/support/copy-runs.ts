/** A copy from one store to the other, and the contents to compare afterwards. */
import Database from 'better-sqlite3'
import { v7 as uuidv7 } from 'uuid'
import type { AccountFeature } from '#core/store/account-feature'
import { allFeatures } from '#features/built-in'
import { type CopyReport, copy } from '#storage/copy/copy'
import { openDatabase } from '#storage/sqlite/database'
import { migrate } from '#storage/sqlite/migrate'
import { type CommandLine, runCli } from './cli.ts'
import { query } from './postgres.ts'

/** Milliseconds to wait for a lock. */
const LOCK_TIMEOUT = 60_000

/** All copied data, in queries that both engines understand. */
const CONTENT = [
  `SELECT id, email, password_hash, first_name, last_name, first_name_key, last_name_key, email_verified, disabled,
     created_at, updated_at, roles, user_metadata, app_metadata, factors, at FROM users LEFT JOIN last_requests ON user_key = key ORDER BY id`,
  'SELECT role, user_created_at, user_id, users.id FROM user_roles JOIN users ON key = user_key ORDER BY role, user_id',
  `SELECT sessions.id, users.id AS user_id, sessions.created_at, expires_at, last_request_at
     FROM sessions JOIN users ON key = user_key ORDER BY sessions.id`,
  `SELECT digest, purpose, users.id AS user_id, email_tokens.email, email_tokens.created_at, expires_at
     FROM email_tokens JOIN users ON key = user_key ORDER BY digest`,
]

const EVENTS = 'SELECT id, at, type, actor_type, actor_id, user_id, ip, details FROM events ORDER BY id'

/** PostgreSQL's driver returns a `bigint` as text. */
const asText = (rows: readonly object[]): (string | null)[][] =>
  rows.map(row => Object.values(row).map(value => (value === null ? null : String(value))))

export const sourceContent = (file: string): unknown => {
  const db = new Database(file, { readonly: true })
  const content = CONTENT.map(text => asText(db.prepare<[], object>(text).all()))
  db.close()
  return content
}

export const targetContent = async (url: string): Promise<unknown> => {
  const content = []
  for (const text of CONTENT) content.push(asText(await query(url, text)))
  return content
}

export const sourceEvents = (file: string): string[] => {
  const db = new Database(file, { readonly: true })
  const events = asText(db.prepare<[], object>(EVENTS).all())
  db.close()
  return events.map(event => JSON.stringify(event))
}

export const targetEvents = async (url: string): Promise<string[]> =>
  asText(await query(url, EVENTS)).map(event => JSON.stringify(event))

/** Every row with the transactions that wrote and locked it. */
export const targetVersions = async (url: string): Promise<unknown> => {
  const versions = []
  for (const table of [
    'users',
    'sessions',
    'last_requests',
    'email_tokens',
    'events',
    'copied_rows',
    'copied_events',
  ]) {
    versions.push(await query(url, `SELECT xmin, xmax, ctid FROM ${table} ORDER BY ctid`))
  }
  return versions
}

/** Makes a source of `count` users, `user0@example.com` and so on, each with a session and a last request. */
export const makeSource = async (file: string, count: number): Promise<void> => {
  await migrate(file, allFeatures())
  const db = openDatabase(file, LOCK_TIMEOUT)
  const addUser = db.prepare(`INSERT INTO users (id, email, password_hash, first_name_key, last_name_key,
    email_verified, disabled, created_at, updated_at) VALUES (?, ?, 'hash', '', '', 0, 0, 1, 1)`)
  const addSession = db.prepare(
    'INSERT INTO sessions (id, user_key, created_at, expires_at, last_request_at) VALUES (?, ?, 1, 2, 1)',
  )
  const note = db.prepare('INSERT INTO last_requests VALUES (?, 1)')
  db.transaction(() => {
    for (let index = 0; index < count; index += 1) {
      const { lastInsertRowid: key } = addUser.run(uuidv7(), `user${index}@example.com`)
      addSession.run(uuidv7(), key)
      note.run(key)
    }
  })()
  db.close()
}

/** Copies in this process. */
export const copyHere = (
  file: string,
  url: string,
  features: readonly AccountFeature[] = allFeatures(),
): Promise<CopyReport> =>
  copy(file, url, { features, signal: new AbortController().signal, onProgress: () => undefined })

export const runCopy = (file: string, url: string): CommandLine =>
  runCli(['copy', '--from', `sqlite:${file}`, '--to', url])
