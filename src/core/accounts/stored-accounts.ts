/** New accounts. PostgreSQL adds one with a single statement: `postgres-accounts.ts`. */
import { rows, type Statement, type Steps, unlessTaken } from '#storage/operations/operation'
import { parameters, valuesOf } from '#storage/operations/parameters'
import { invalidatesNothing, type Write } from '#storage/operations/write'
import type { AuditEvent } from '../audit-log/event.ts'
import { recordStatement } from '../audit-log/stored-events.ts'
import type { Session } from '../auth/session.ts'
import { addSessionStatement } from '../auth/stored-sessions.ts'
import type { NewUser } from '../users/user.ts'
import { USER_COLUMNS, userColumns } from '../users/user-rows.ts'
import type { EmailToken } from './email-token.ts'
import { addTokenStatement } from './stored-email-tokens.ts'

/** Stored with a new account, in the same transaction. */
export interface AccountExtras {
  readonly session?: Session
  readonly emailToken?: EmailToken
}

/** The parameters are {@link userValues}, and then the values of further columns. */
export const insertUser = (...more: readonly string[]): string => {
  const columns = [...USER_COLUMNS, ...more]
  return `INSERT INTO users (${columns.join(', ')}) VALUES (${parameters(columns, 1)})`
}

export const INSERT_USER = insertUser()

export const userValues = (user: NewUser): readonly unknown[] => valuesOf(USER_COLUMNS, userColumns(user))

const addUserStatement = (user: NewUser): Statement => ({ text: INSERT_USER, values: userValues(user) })

/** @throws {Error} if the session belongs to another user. */
export const assertOwnSession = (user: NewUser, { session }: AccountExtras): void => {
  if (session && session.userId !== user.id) throw new Error('The session belongs to another user')
}

/**
 * Adds a user with the first session, in an operation that does more.
 * @returns false if the e-mail is taken: the operation must then end without another statement.
 */
export function* addAccount(user: NewUser, session: Session, event: AuditEvent): Steps<boolean> {
  if ((yield* unlessTaken(addUserStatement(user))) === 'taken') return false
  yield addSessionStatement(session)
  yield recordStatement(event)
  return true
}

export const accountOperations = {
  /** Adds a user. @returns false if the e-mail is taken. */
  *addUser(user: NewUser, event: AuditEvent, extras: AccountExtras): Steps<Write<boolean>> {
    assertOwnSession(user, extras)
    const { session, emailToken } = extras
    const added = yield* rows({
      text: `${INSERT_USER} ON CONFLICT (email) DO NOTHING RETURNING key`,
      values: userValues(user),
    })
    if (added.length === 0) return invalidatesNothing(false)
    if (session) yield addSessionStatement(session)
    if (emailToken) yield addTokenStatement(emailToken)
    yield recordStatement(event)
    return invalidatesNothing(true)
  },
}
