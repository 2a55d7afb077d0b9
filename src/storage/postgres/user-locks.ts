/**
 * Locks on the rows of users, taken before a write that reads the user's state. What a transaction has checked stays true until
 * it ends, and its events follow those of every transaction that held the lock before.
 */
import type { UserRefusal } from '../../users/user-store.ts'
import type { Run, Statement } from './database.ts'

/** A locked user: whether disabled (0 or 1), and whether the given hash, if any, is the password's. */
export interface LockedUser {
  readonly disabled: number
  readonly verified: boolean
}

/** The columns of {@link LockedUser}. @param hash the number of the parameter. */
export const lockedColumns = (hash: number): string =>
  `disabled, $${hash}::text IS NULL OR password_hash = $${hash} AS verified`

/**
 * @param options.onlyEnabled whether the user must be enabled.
 * @returns why the write is refused; `null` if it may proceed.
 */
export const refusalOf = (
  user: LockedUser | undefined,
  { onlyEnabled }: { readonly onlyEnabled: boolean },
): UserRefusal | null => {
  if (user === undefined) return 'userNotFound'
  if (onlyEnabled && user.disabled === 1) return 'accountDisabled'
  return user.verified ? null : 'passwordChanged'
}

/**
 * For transactions that lock a user and then change or remove it. A copy into this database locks the table before users
 * (`src/storage/copy/target.ts`); with the opposite order the two would deadlock.
 */
export const LOCK_TABLE: Statement = { text: 'LOCK TABLE users IN ROW EXCLUSIVE MODE', values: [] }

type Strength = 'NO KEY UPDATE' | 'UPDATE'

/**
 * Locks a user.
 * @param verifiedHash see {@link LockedUser}.
 * @param strength `UPDATE` to remove the user.
 */
export const lockUser = async (
  run: Run,
  id: string,
  verifiedHash: string | null = null,
  strength: Strength = 'NO KEY UPDATE',
): Promise<LockedUser | undefined> => {
  const text = `SELECT ${lockedColumns(2)} FROM users WHERE id = $1 FOR ${strength}`
  const [user] = await run<LockedUser>({ text, values: [id, verifiedHash] })
  return user
}
