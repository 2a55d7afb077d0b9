/**
 * Locks on the rows of users, taken before a write that reads the user's state. What a transaction has checked stays true until
 * it ends, and its events follow those of every transaction that held the lock before.
 */
import type { Dialect } from './dialect.ts'
import { firstRow, type Statement, type Steps } from './operation.ts'
import type { UserState } from './refusals.ts'

/** The columns of {@link UserState}. @param hash the number of the parameter. */
export const stateColumns = (hash: number): string =>
  `disabled, CASE WHEN CAST($${hash} AS text) IS NULL OR password_hash = $${hash} THEN 1 ELSE 0 END AS verified`

/** See {@link Dialect.lockUsersTable}. */
export const LOCK_USERS_TABLE: Statement = { text: dialect => dialect.lockUsersTable, values: [] }

type Strength = 'forNoKeyUpdate' | 'forUpdate'

/**
 * Locks a user.
 * @param verifiedHash see {@link UserState}.
 * @param strength `forUpdate` to remove the user.
 * @returns `undefined` if the user does not exist.
 */
export const lockUser = (
  id: string,
  verifiedHash: string | null = null,
  strength: Strength = 'forNoKeyUpdate',
): Steps<UserState | undefined> =>
  firstRow<UserState>({
    text: dialect => `SELECT ${stateColumns(2)} FROM users WHERE id = $1 ${dialect[strength]}`,
    values: [id, verifiedHash],
  })
