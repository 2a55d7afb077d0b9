/** Writes and reads of users. Sign-ups and imports add them: `stored-accounts.ts` and `stored-imports.ts`. */

import type { Dialect } from '#storage/operations/dialect'
import {
  firstRow,
  type Query,
  query,
  type Statement,
  type Steps,
  USER_KEY,
  unlessTaken,
} from '#storage/operations/operation'
import { endsAccess, invalidates, refusedFor, type Write } from '#storage/operations/write'
import type { OwnedTable } from '#storage/stored-feature'
import { type MethodAmr, removedFactors } from '../accounts/sign-in-methods.ts'
import { featureMethodsColumn } from '../accounts/sign-in-tables.ts'
import { endPendingChanges } from '../accounts/stored-pending-changes.ts'
import type { AuditEvent } from '../audit-log/event.ts'
import { recordStatement, recordUnlessRevoked } from '../audit-log/stored-events.ts'
import { endImpersonationsBy } from '../auth/stored-keys.ts'
import {
  type ActingSession,
  endProofs,
  lowerAmr,
  revokeAllSessions,
  sessionExists,
} from '../auth/stored-sessions.ts'
import { OWN_FIELDS } from './fields.ts'
import type { SignInTables } from './listing.ts'
import { deleteOwned, endWithSessions, type OwnedTables } from './owned-rows.ts'
import { refusalOf, type SessionRefusal } from './refusals.ts'
import type { RemovalRefused, Removed, UserRemovals } from './stored-removals.ts'
import type { User, UserChanges } from './user.ts'
import { LOCK_USERS_TABLE, lockUser } from './user-locks.ts'
import {
  changedColumns,
  selectUser,
  toCredentials,
  toListedUser,
  toUser,
  USER_VALUES,
  type UserRow,
  type UserRowWithHash,
} from './user-rows.ts'

export interface UpdateOptions {
  readonly revokeSessions: boolean
  /** Invalidate all of the user's e-mail tokens, and the mailed code to sign in, in the same transaction. */
  readonly invalidateTokens: boolean
  /** The session or API key with which users change themselves: it must exist, and the user be enabled. `null` for changes by others. */
  readonly credentialId: string | null
  /** Change only a user with one of these versions; `null`: any. */
  readonly versions: readonly number[] | null
}

/** `accountDisabled` and `sessionNotFound` (also for an API key) only with `credentialId`. */
export type UpdateRefusal =
  | 'userNotFound'
  | 'accountDisabled'
  | 'sessionNotFound'
  | 'versionChanged'
  | 'emailTaken'

/** The end of an update of a user. It returns the {@link UserRow}. */
export const RETURNING_USER = `RETURNING ${USER_VALUES}`

/** Invalidates everything mailed that gives access to the account. @param mailed tables of features whose rows were mailed. */
export function* invalidateMails(mailed: readonly OwnedTable[], userId: string): Steps<void> {
  yield {
    text: `DELETE FROM email_tokens WHERE user_key = ${USER_KEY}`,
    values: [userId],
  }
  yield* deleteOwned(mailed, userId)
}

/**
 * Returns no row if the user is missing, is not what the options require, or has these values already. The subquery waits for the lock: an
 * UPDATE that waits would get its transaction id, and so the position of its event (docs/design.md, "Account life cycle"), before its turn.
 */
const updateStatement = (
  id: string,
  changes: UserChanges,
  at: number,
  { credentialId, versions }: UpdateOptions,
): Statement => {
  const set = { ...changedColumns(changes), updated_at: at }
  const values = [id, ...Object.values(set)]
  const compare = (operator: string): string[] =>
    Object.keys(set).map((column, index) => `${column} ${operator} $${index + 2}`)
  // Without `updated_at`, the last one.
  const differences = compare('IS DISTINCT FROM').slice(0, -1).join(' OR ') || '1 = 0'
  const isCurrent = ({ isOneOf }: Dialect): string =>
    versions === null ? '' : `AND ${isOneOf('version', `$${values.length + 1}`, 'bigint')}`
  return {
    text: dialect => `UPDATE users SET ${compare('=').join(', ')}, version = version + 1 WHERE key = (
        SELECT key FROM users
        WHERE id = $1 AND ${dialect.inTurn('$1')} ${credentialId === null ? '' : 'AND disabled = 0'} ${isCurrent(dialect)}
          AND (${differences})
        ${dialect.forNoKeyUpdate}
      ) ${RETURNING_USER}`,
    values: versions === null ? values : [...values, versions],
  }
}

/** Whether changes may take access away: those of fields that users write themselves do not. */
const mayEndAccess = (changes: UserChanges): boolean =>
  Object.keys(changes).some(field => !OWN_FIELDS.some(own => own === field))

/** Finds out why an update has changed nothing. @returns the user, locked, if it is not refused. */
function* lockForUpdate(
  id: string,
  { credentialId, versions }: UpdateOptions,
): Steps<UserRow | UpdateRefusal> {
  const user = yield* firstRow<UserRow>({
    text: ({ inTurn, forNoKeyUpdate }) =>
      `${selectUser()} WHERE id = $1 AND ${inTurn('$1')} ${forNoKeyUpdate}`,
    values: [id],
  })
  if (user === undefined) return 'userNotFound'
  if (credentialId !== null && user.disabled === 1) return 'accountDisabled'
  return versions === null || versions.includes(user.version) ? user : 'versionChanged'
}

function* changeUser(
  id: string,
  changes: UserChanges,
  at: number,
  options: UpdateOptions,
): Steps<{ readonly row: UserRow; readonly isChanged: boolean } | UpdateRefusal> {
  const update = updateStatement(id, changes, at, options)
  const first = yield* unlessTaken<UserRow>(update)
  if (first === 'taken') return 'emailTaken'
  if (first[0] !== undefined) return { row: first[0], isChanged: true }
  const found = yield* lockForUpdate(id, options)
  if (typeof found === 'string') return found
  // A concurrent change in between may have made the update possible. The user is locked now.
  const second = yield* unlessTaken<UserRow>(update)
  if (second === 'taken') return 'emailTaken'
  return { row: second[0] ?? found, isChanged: second.length > 0 }
}

/** Ends what an update of a user, who is locked, takes away. */
function* endAccessOf(
  { mailed }: OwnedTables,
  id: string,
  { revokeSessions, invalidateTokens }: UpdateOptions,
): Steps<void> {
  if (revokeSessions) yield* revokeAllSessions(id)
  if (invalidateTokens) yield* invalidateMails(mailed, id)
}

export const userOperations = (tables: OwnedTables, removals: UserRemovals) => ({
  /** @returns the user, or why nothing changed. A user who has these values already keeps the version, without an event. */
  *update(
    id: string,
    changes: UserChanges,
    event: AuditEvent,
    options: UpdateOptions,
  ): Steps<Write<User | UpdateRefusal>> {
    const changed = yield* changeUser(id, changes, event.at, options)
    if (typeof changed === 'string') return refusedFor(id, changed)
    const { row, isChanged } = changed
    // Also without a change: another request may have made it, and still wait for other processes.
    if (!isChanged) return (mayEndAccess(changes) ? endsAccess : refusedFor)(id, toUser(row))
    // A separate statement: it sees the sessions of transactions that held the user's lock before.
    yield* endAccessOf(tables, id, options)
    if (!(yield* recordUnlessRevoked(options.credentialId, event))) return refusedFor(id, 'sessionNotFound')
    if (options.revokeSessions) yield* endWithSessions(tables.endWithSessions, event)
    if (!mayEndAccess(changes)) return invalidates(id, toUser(row))
    return endsAccess([id, ...(yield* endImpersonationsBy(id))], toUser(row))
  },

  /**
   * Deletes a user with everything that belongs to them, and the addresses in their events. The event becomes the user's newest.
   * @param session in which the user, who must be enabled, deletes the account; `null` if an administrator does.
   */
  *remove(
    event: AuditEvent,
    session: ActingSession | null,
  ): Steps<Write<Removed | RemovalRefused | SessionRefusal>> {
    const { userId } = event
    yield LOCK_USERS_TABLE
    yield* removals.lock(userId)
    const user = yield* lockUser(userId, null, 'remove')
    const refused = refusalOf(user, { onlyEnabled: session !== null })
    // A request that has removed the user may still wait for other processes.
    if (refused === 'userNotFound') return endsAccess(userId, refused)
    if (refused !== null) return refusedFor(userId, refused)
    if (session !== null && !(yield* sessionExists(session, userId)))
      return refusedFor(userId, 'sessionNotFound')
    const removed = yield* removals.remove(event, session === null ? 'others' : 'user')
    if ('refusal' in removed) return refusedFor(userId, removed)
    const impersonated = yield* endImpersonationsBy(userId)
    return endsAccess([...removed.evicts, ...impersonated], { outcomes: removed.outcomes })
  },

  /** Removes every factor of the event's user, also unconfirmed ones, and every proof of identity. @param methods all of the service. */
  *removeFactors(
    event: AuditEvent,
    methods: readonly MethodAmr[],
  ): Steps<Write<'removed' | 'none' | 'userNotFound'>> {
    const { userId, at } = event
    if ((yield* lockUser(userId)) === undefined) return refusedFor(userId, 'userNotFound')
    yield* deleteOwned(tables.factors, userId)
    const changed = yield* firstRow({
      text: `UPDATE users SET factors = NULL, updated_at = $2, version = version + 1
        WHERE id = $1 AND factors IS NOT NULL RETURNING id`,
      values: [userId, at],
    })
    // Unconfirmed factors are removed all the same.
    if (changed === undefined) {
      yield* endPendingChanges(userId, null)
      // A request that has removed them may still wait for other processes.
      return endsAccess(userId, 'none')
    }
    // A factor that is gone may have been the proof of any of them.
    yield* endProofs(userId, null)
    yield* lowerAmr(userId, removedFactors(tables.factors.flatMap(({ signsIn }) => signsIn ?? [])), methods)
    const impersonated = yield* endImpersonationsBy(userId)
    yield recordStatement(event)
    return endsAccess([userId, ...impersonated], 'removed')
  },
})

// Constants: composing the text, and hashing it to find the prepared statement, took a third of the query's time.
const userById = (...columns: readonly string[]): string => `${selectUser(...columns)} WHERE id = $1`
const USER_BY_ID = userById()
const USER_BY_EMAIL = `${selectUser('password_hash')} WHERE email = $1`
const ID_BY_EMAIL = 'SELECT id FROM users WHERE email = $1'

/** Reads by a key, on the event loop. Without joins, see `selectUser`. */
export const userReads = {
  find: (id: string, signInTables?: SignInTables): Query<User | undefined> =>
    query(
      signInTables === undefined
        ? { name: 'user', text: USER_BY_ID, values: [id] }
        : {
            name: 'user-with-methods',
            text: userById(featureMethodsColumn(signInTables)),
            values: [id],
          },
      ([row]: readonly UserRow[]) => row && toListedUser(row),
    ),

  findByEmail: (email: string): Query<ReturnType<typeof toCredentials> | undefined> =>
    query(
      { name: 'user-by-email', text: USER_BY_EMAIL, values: [email] },
      ([row]: readonly UserRowWithHash[]) => row && toCredentials(row),
    ),

  findId: (email: string): Query<string | undefined> =>
    query(
      { name: 'user-id', text: ID_BY_EMAIL, values: [email] },
      ([row]: readonly { readonly id: string }[]) => row?.id,
    ),
}
