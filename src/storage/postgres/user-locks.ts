/**
 * The rows of users, locked before anything is written: what is judged stays so until the transaction ends, and its events
 * come after those of all who held the lock before.
 */
import type { UserRefusal } from '../../users/user-store.ts'
import type { Run, Statement } from './database.ts'

/** A locked user: whether disabled, and whether the hash that was given is the password's, if one was. */
export interface LockedUser {
  readonly disabled: number
  readonly verified: boolean
}

/** The columns of {@link LockedUser}. @param hash the number of the parameter. */
export const lockedColumns = (hash: number): string =>
  `disabled, $${hash}::text IS NULL OR password_hash = $${hash} AS verified`

/** @param onlyEnabled whether the user has to be enabled. @returns why nothing may be done, `null` where it may. */
export const refusalOf = (user: LockedUser | undefined, onlyEnabled = true): UserRefusal | null => {
  if (user === undefined) return 'userNotFound'
  if (onlyEnabled && user.disabled === 1) return 'accountDisabled'
  return user.verified ? null : 'passwordChanged'
}

/**
 * For transactions that change or remove a user whom they have locked before: a copy into this database locks the table, then
 * users (`src/storage/copy/target.ts`). In the other order the two would wait for each other.
 */
export const LOCK_TABLE: Statement = { text: 'LOCK TABLE users IN ROW EXCLUSIVE MODE', values: [] }

type Strength = 'NO KEY UPDATE' | 'UPDATE'

/** Locks a user. @param strength `UPDATE` for who removes it. */
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
