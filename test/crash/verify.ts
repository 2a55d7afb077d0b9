/** Checks after a crash: by the service's responses, and in the database file. */
import Database from 'better-sqlite3'
import { type Account, fits, settle } from './account.ts'
import type { Client } from './client.ts'

/** Concurrent calls of the checks. */
const CONCURRENCY = 16

const forEach = async <T>(items: readonly T[], check: (item: T) => Promise<void>): Promise<void> => {
  const rest = items.values()
  // The workers share one iterator, so that each item is checked once.
  const worker = async (): Promise<void> => {
    for (const item of rest) await check(item)
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, worker))
}

/** Signs in with every account: the correct password is accepted; a disabled account gets 403. */
export const verifySignIns = async (client: Client, accounts: readonly Account[]): Promise<string[]> => {
  const lost: string[] = []
  await forEach(accounts, async account => {
    const { status, body } = await client.signIn(account.email, account.password)
    if (!(status === 200 || status === 403) || !fits(account.disabled, status === 403)) {
      lost.push(`${account.email}: sign-in returned ${status}`)
      return
    }
    settle(account.disabled, status === 403)
    if (status === 403) return
    const { firstName } = (body?.user ?? {}) as { firstName?: string }
    verifyName(account, firstName, lost)
  })
  return lost
}

/** Uses the tokens that were issued before the crash: their sessions exist, unless the user was disabled. */
export const verifyTokens = async (client: Client, accounts: readonly Account[]): Promise<string[]> => {
  const lost: string[] = []
  await forEach(accounts, async account => {
    if (account.token === null) return
    const { status, body } = await client.account(account.token)
    if (!(status === 200 || status === 401) || !fits(account.disabled, status === 401)) {
      lost.push(`${account.email}: its token returned ${status}`)
      return
    }
    settle(account.disabled, status === 401)
    if (status === 200) verifyName(account, body?.firstName as string, lost)
  })
  return lost
}

const verifyName = (account: Account, firstName: string | undefined, lost: string[]): void => {
  if (firstName !== undefined && fits(account.firstName, firstName)) settle(account.firstName, firstName)
  else lost.push(`${account.email}: is called ${firstName}, not ${account.firstName.acknowledged}`)
}

/** Queries for rows that only a partial write leaves behind. */
const HALVES = {
  'users without a session who are not disabled':
    'SELECT id FROM users WHERE disabled = 0 AND NOT EXISTS (SELECT 1 FROM sessions WHERE user_key = users.key)',
  'disabled users with a session':
    'SELECT id FROM users WHERE disabled = 1 AND EXISTS (SELECT 1 FROM sessions WHERE user_key = users.key)',
  'users without what sign-up writes':
    "SELECT id FROM users WHERE password_hash NOT LIKE '$argon2id$%' OR first_name IS NULL OR first_name_key <> first_name",
  'sessions without a user': 'SELECT id FROM sessions WHERE user_key NOT IN (SELECT key FROM users)',
  'last requests without a user':
    'SELECT user_key FROM last_requests WHERE user_key NOT IN (SELECT key FROM users)',
} as const

export interface FileReport {
  /** Partially written rows, with what is missing. */
  readonly halves: readonly string[]
  /** `ok`, or the errors that SQLite reports. */
  readonly integrity: string
}

/** Reads the database file without changing it. */
export const inspectFile = (file: string): FileReport => {
  const db = new Database(file, { readonly: true, fileMustExist: true, timeout: 5_000 })
  try {
    const halves = Object.entries(HALVES).flatMap(([what, sql]) =>
      db
        .prepare(sql)
        .pluck()
        .all()
        .map(id => `${what}: ${id}`),
    )
    return { halves, integrity: String(db.pragma('integrity_check', { simple: true })) }
  } finally {
    db.close()
  }
}
