/**
 * Locks on the rows of users, taken before a write that reads the user's state. What a transaction has checked stays true until
 * it ends, and its events follow those of every transaction that held the lock before.
 */
import type { UserState } from '../refusals.ts'
import type { Run, Statement } from './database.ts'

/** The columns of {@link UserState}. @param hash the number of the parameter. */
export const lockedColumns = (hash: number): string =>
  `disabled, $${hash}::text IS NULL OR password_hash = $${hash} AS verified`

/**
 * For transactions that lock a user and then change or remove it. A copy into this database locks the table before users
 * (`src/storage/copy/target.ts`); with the opposite order the two would deadlock.
 */
export const LOCK_TABLE: Statement = { text: 'LOCK TABLE users IN ROW EXCLUSIVE MODE', values: [] }

type Strength = 'NO KEY UPDATE' | 'UPDATE'

/**
 * Locks a user.
 * @param verifiedHash see {@link UserState}.
 * @param strength `UPDATE` to remove the user.
 */
export const lockUser = async (
  run: Run,
  id: string,
  verifiedHash: string | null = null,
  strength: Strength = 'NO KEY UPDATE',
): Promise<UserState | undefined> => {
  const text = `SELECT ${lockedColumns(2)} FROM users WHERE id = $1 FOR ${strength}`
  const [user] = await run<UserState>({ text, values: [id, verifiedHash] })
  return user
}
