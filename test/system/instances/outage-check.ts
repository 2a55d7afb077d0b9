/** Checks after the outages: by the service's responses, and in the database. */
import { query } from '../../support/postgres.ts'
import { bodyOf, calls } from './http.ts'
import type { Instance } from './instance.ts'
import { type Account, identifies } from './outage-load.ts'
import type { PairClient } from './retrying-client.ts'

const CONCURRENCY = 4

/** Each account signs in, and its tokens identify it on both instances. @returns what is lost. */
export const verifyAccounts = async (
  client: PairClient,
  pair: readonly Instance[],
  accounts: readonly Account[],
): Promise<string[]> => {
  const lost: string[] = []
  const verifyToken = async (account: Account, token: string): Promise<void> => {
    for (const instance of pair) {
      const response = await client.attempt(instance, calls.account(token))
      if (response === null || !identifies(response, account))
        lost.push(
          `${account.email}: ${instance.name} responded to its token with ${response?.status} ${response?.text}`,
        )
    }
  }
  const verify = async (account: Account): Promise<void> => {
    const { response } = await client.persist(calls.signIn(account.email, account.password))
    if (response?.status === 200) await verifyToken(account, bodyOf(response).accessToken as string)
    else lost.push(`${account.email}: sign-in returned ${response?.status} ${response?.text}`)
    if (account.token !== null) await verifyToken(account, account.token)
  }
  // The workers share one iterator, so that each account is checked once.
  const rest = accounts.values()
  const worker = async (): Promise<void> => {
    for (const account of rest) await verify(account)
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, worker))
  return lost
}

/** Queries for rows that only a partial write leaves behind. */
const HALVES = {
  'user without a session':
    'SELECT email AS what FROM users WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE user_key = users.key)',
  'user without what sign-up writes':
    "SELECT email AS what FROM users WHERE password_hash NOT LIKE '$argon2id$%'",
  'session without a user':
    'SELECT id AS what FROM sessions WHERE NOT EXISTS (SELECT 1 FROM users WHERE key = sessions.user_key)',
  'last request without a user':
    'SELECT user_key AS what FROM last_requests WHERE NOT EXISTS (SELECT 1 FROM users WHERE key = user_key)',
} as const

export interface DatabaseReport {
  readonly users: number
  readonly duplicates: readonly string[]
  readonly halves: readonly string[]
  /** Accounts that the database lacks, and users that no request created. */
  readonly strays: readonly string[]
}

export const inspectDatabase = async (
  url: string,
  accounts: readonly Account[],
  sent: ReadonlySet<string>,
): Promise<DatabaseReport> => {
  const emails = (await query(url, 'SELECT email FROM users')).map(({ email }) => String(email))
  const stored = new Set(emails)
  // An expression without an index: the unique index that should prevent duplicates is not used.
  const twice = await query(
    url,
    'SELECT lower(trim(email)) AS what FROM users GROUP BY 1 HAVING count(*) > 1',
  )
  const halves: string[] = []
  for (const [what, sql] of Object.entries(HALVES))
    for (const row of await query(url, sql)) halves.push(`${what}: ${row.what}`)
  return {
    users: emails.length,
    duplicates: twice.map(({ what }) => `${what} is there twice`),
    halves,
    strays: [
      ...accounts
        .filter(({ email }) => !stored.has(email))
        .map(({ email }) => `${email} is not in the database`),
      ...emails
        .filter(email => !sent.has(email))
        .map(email => `${email} is in the database without a sign-up`),
    ],
  }
}
