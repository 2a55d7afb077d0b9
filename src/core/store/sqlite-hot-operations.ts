/**
 * The writes of sign-ups and sign-ins, with prepared statements. The event loop turns entities into rows: arrays cross the threads with
 * 28,000 instructions, objects with 74,000. SQLite binds their values by position, without a lookup of each name.
 */

import { valuesOf } from '#storage/operations/parameters'
import { invalidatesNothing, refusedFor, type Write } from '#storage/operations/write'
import type { Connection } from '#storage/sqlite/database'
import type { EmailToken } from '../accounts/email-token.ts'
import type { Session } from '../auth/session.ts'
import { refusalOf, type UserRefusal } from '../users/refusals.ts'
import type { NewUser } from '../users/user.ts'
import {
  EMAIL_TOKEN_COLUMNS,
  EVENT_COLUMNS,
  emailTokenColumns,
  SESSION_COLUMNS,
  sessionColumns,
  USER_COLUMNS,
  userColumns,
} from '../users/user-rows.ts'

/** The values of a row, in the order of its columns. */
type Row = readonly unknown[]

/** A parameter for each column, in their order. */
export const parameters = (columns: readonly string[]): string => columns.map(() => '?').join(', ')

export const insertInto = (table: string, columns: readonly string[]): string =>
  `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${parameters(columns)})`

export const INSERT_USER = insertInto('users', USER_COLUMNS)

/** The key of the user is the first parameter. */
export const INSERT_SESSION = insertInto('sessions', ['user_key', ...SESSION_COLUMNS])

const INSERT_EMAIL_TOKEN = insertInto('email_tokens', ['user_key', ...EMAIL_TOKEN_COLUMNS])

const INSERT_EVENT = insertInto('events', EVENT_COLUMNS)

export const userRow = (user: NewUser): Row => valuesOf(USER_COLUMNS, userColumns(user))

export const sessionRow = (session: Session): Row => valuesOf(SESSION_COLUMNS, sessionColumns(session))

export const emailTokenRow = (token: EmailToken): Row =>
  valuesOf(EMAIL_TOKEN_COLUMNS, emailTokenColumns(token))

/** @returns a function that records an event in the transaction of the change. */
export const prepareRecord = (db: Connection) => {
  const insert = db.prepare<unknown[]>(INSERT_EVENT)
  return (event: Row): void => void insert.run(...event)
}

interface OpeningState {
  readonly key: number
  readonly disabled: number
  readonly password_hash: string
  readonly factors: string | null
}

export const prepareHotOperations = (db: Connection) => {
  const insertUser = db.prepare<unknown[]>(`${INSERT_USER} ON CONFLICT (email) DO NOTHING`)
  const insertSession = db.prepare<unknown[]>(INSERT_SESSION)
  const insertToken = db.prepare<unknown[]>(INSERT_EMAIL_TOKEN)
  const selectState = db.prepare<[string], OpeningState>(
    'SELECT key, disabled, password_hash, factors FROM users WHERE id = ?',
  )
  const record = prepareRecord(db)

  return {
    /** The result is false if the e-mail is taken. */
    addUser(user: Row, event: Row, session: Row | null, emailToken: Row | null): Write<boolean> {
      const { changes, lastInsertRowid: key } = insertUser.run(...user)
      if (changes === 0) return invalidatesNothing(false)
      if (session) insertSession.run(key, ...session)
      if (emailToken) insertToken.run(key, ...emailToken)
      record(event)
      return invalidatesNothing(true)
    },

    /** @param verified the columns `password_hash` and `factors`. */
    openSession(
      userId: string,
      verified: readonly [passwordHash: string, factors: string | null] | null,
      session: Row,
      event: Row,
    ): Write<'opened' | UserRefusal> {
      const user = selectState.get(userId)
      if (user === undefined) return refusedFor(userId, 'userNotFound')
      const isVerified =
        verified === null || (user.password_hash === verified[0] && user.factors === verified[1])
      const state = { disabled: user.disabled, verified: Number(isVerified) }
      const refused = refusalOf(state, { onlyEnabled: true })
      if (refused !== null) return refusedFor(userId, refused)
      insertSession.run(user.key, ...session)
      record(event)
      return invalidatesNothing('opened')
    },
  }
}
