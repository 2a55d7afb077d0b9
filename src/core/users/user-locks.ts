/**
 * Locks on users, taken before a write that reads their state. What an operation has checked stays true until it ends, and its events follow
 * those of every operation that held the lock before (`Dialect.inTurn`).
 */
import type { Dialect } from '#storage/operations/dialect'
import { firstRow, type Statement, type Steps } from '#storage/operations/operation'
import type { UserState } from './refusals.ts'

/** The columns of {@link UserState}. @param hash the number of the parameter. */
export const stateColumns = (hash: number): string =>
  `disabled, CASE WHEN CAST($${hash} AS text) IS NULL OR password_hash = $${hash} THEN 1 ELSE 0 END AS verified`

/** Locks the table as an update of a row does, before a user is locked. */
export const LOCK_USERS_TABLE: Statement = { text: dialect => dialect.lockUsersTable, values: [] }

/**
 * Until the operation ends, the user stays what it is (`shared`), or no other operation locks the user. An operation must not lock `shared`
 * first and `change` later: two would deadlock.
 */
type Strength = 'shared' | 'change' | 'remove'

const lockOf = (strength: Strength, dialect: Dialect): { readonly turn: string; readonly lock: string } => {
  if (strength === 'shared') return { turn: dialect.inSharedTurn('$1'), lock: dialect.forShare }
  return {
    turn: dialect.inTurn('$1'),
    lock: strength === 'remove' ? dialect.forUpdate : dialect.forNoKeyUpdate,
  }
}

/** Locks a user, in the order of arrival. @param verifiedHash of the password; `null` if none was. @returns `undefined` for no such user. */
export const lockUser = (
  id: string,
  verifiedHash: string | null = null,
  strength: Strength = 'change',
): Steps<UserState | undefined> =>
  firstRow<UserState>({
    text: dialect => {
      const { turn, lock } = lockOf(strength, dialect)
      return `SELECT ${stateColumns(2)} FROM users WHERE id = $1 AND ${turn} ${lock}`
    },
    values: [id, verifiedHash],
  })
