/** What the store runs for codes that are mailed to sign in. The writer thread of SQLite imports this module. */
import { MAIL_WINDOW, MAX_MAILS } from '../accounts/email-token.ts'
import type { AuditEvent } from '../audit-log/event.ts'
import { countEvents, recordStatement } from '../storage/operations/events.ts'
import { firstRow, type Steps, USER_KEY } from '../storage/operations/operation.ts'
import { refusalOf, type UserRefusal } from '../storage/operations/refusals.ts'
import { lockUser } from '../storage/operations/user-locks.ts'
import { invalidatesNothing, refusedFor, type Write } from '../storage/operations/write.ts'
import { type FeatureStore, type StoredFeature, table } from '../storage/stored-feature.ts'

/** Comparisons that one code allows. */
export const MAX_ATTEMPTS = 5

/** A code that was mailed. Timestamps are milliseconds since the epoch. */
export interface NewEmailCode {
  readonly id: string
  readonly userId: string
  /** The recipient. The code is not valid once the account has another address. */
  readonly email: string
  /** Encrypted: anybody could find eight digits by their hash. */
  readonly code: string
  readonly createdAt: number
  readonly expiresAt: number
}

/** A code that may be compared. */
export type PendingEmailCode = Pick<NewEmailCode, 'id' | 'userId' | 'code'>

interface EmailCodesTable {
  id: string
  user_key: number
  email: string
  code: string
  attempts: number
  expires_at: number
  updated_at: number
}

/** Stores a code in place of the user's former one, if the user is enabled and the limit of mails is not reached. */
function* addEmailCode(
  { id, userId, email, code, createdAt, expiresAt }: NewEmailCode,
  event: AuditEvent,
): Steps<Write<'added' | 'tooManyMails' | UserRefusal>> {
  // Concurrent calls for one user run one after the other, so each counts the events of the earlier ones.
  const refused = refusalOf(yield* lockUser(userId), { onlyEnabled: true })
  if (refused !== null) return refusedFor(userId, refused)
  if ((yield* countEvents(event, createdAt - MAIL_WINDOW + 1)) >= MAX_MAILS)
    return invalidatesNothing('tooManyMails')
  yield {
    text: `DELETE FROM email_codes WHERE user_key = ${USER_KEY}`,
    values: [userId],
  }
  yield {
    text: `INSERT INTO email_codes (id, user_key, email, code, attempts, expires_at, updated_at)
      SELECT $2, key, $3, $4, 0, $5, $6 FROM users WHERE id = $1`,
    values: [userId, id, email, code, expiresAt, createdAt],
  }
  yield recordStatement(event)
  return invalidatesNothing('added')
}

/**
 * Counts an attempt before its code is compared: of simultaneous attempts, no more than {@link MAX_ATTEMPTS} get the code. Every
 * attempt has the same statements and writes a row, also for an address without a code, so that its time does not reveal whether there
 * is one.
 * @param row the one that is written in any case.
 */
function* countAttempt(email: string, row: string, at: number): Steps<Write<PendingEmailCode | undefined>> {
  yield {
    text: `INSERT INTO email_code_attempts (id, attempts) VALUES ($1, 1)
      ON CONFLICT (id) DO UPDATE SET attempts = email_code_attempts.attempts + 1`,
    values: [row],
  }
  const found = yield* firstRow<PendingEmailCode>({
    text: `UPDATE email_codes SET attempts = attempts + 1, updated_at = $2
      WHERE user_key = (SELECT key FROM users WHERE email = $1) AND email = $1 AND expires_at > $2
        AND attempts < ${MAX_ATTEMPTS}
      RETURNING id, (SELECT id FROM users WHERE key = user_key) AS "userId", code`,
    values: [email, at],
  })
  return invalidatesNothing(found)
}

/** Takes back an attempt with the correct code, which was not used up. */
function* uncountAttempt(id: string): Steps<Write<void>> {
  yield { text: 'UPDATE email_codes SET attempts = attempts - 1 WHERE id = $1', values: [id] }
  return invalidatesNothing(undefined)
}

/** Uses up a code. Another e-mail of the user has deleted it. */
function* useEmailCode({ userId, at }: AuditEvent, id: string): Steps<'proved' | 'notProved'> {
  const used = yield* firstRow({
    text: `DELETE FROM email_codes WHERE id = $2 AND expires_at > $3 AND user_key = ${USER_KEY} RETURNING id`,
    values: [userId, id, at],
  })
  return used === undefined ? 'notProved' : 'proved'
}

export const storedEmailCodes = {
  name: 'email-codes',
  module: import.meta.url,
  migrations: {
    '0001_email_codes': {
      async up(db, { text, keyType }) {
        await db.schema
          .createTable('email_codes')
          .addColumn('id', text, column => column.primaryKey())
          .addColumn('user_key', keyType, column =>
            column.notNull().unique().references('users.key').onDelete('cascade'),
          )
          .addColumn('email', text, column => column.notNull())
          .addColumn('code', text, column => column.notNull())
          .addColumn('attempts', 'integer', column => column.notNull())
          .addColumn('expires_at', 'bigint', column => column.notNull())
          .addColumn('updated_at', 'bigint', column => column.notNull())
          .execute()
        await db.schema
          .createIndex('email_codes_by_expires_at')
          .on('email_codes')
          .column('expires_at')
          .execute()
        // Few rows, which say nothing about users: they are neither copied nor removed.
        await db.schema
          .createTable('email_code_attempts')
          .addColumn('id', text, column => column.primaryKey())
          .addColumn('attempts', 'bigint', column => column.notNull())
          .execute()
      },
    },
  },
  tables: {
    email_codes: table<EmailCodesTable>({
      owner: 'user_key',
      key: 'id',
      updatedAt: 'updated_at',
      isMailed: true,
      cleanUp: { column: 'expires_at', after: 0 },
    }),
  },
  operations: { addEmailCode, countAttempt, uncountAttempt },
  signInProofs: { useEmailCode },
} satisfies StoredFeature

export type EmailCodeStore = FeatureStore<typeof storedEmailCodes.operations, Record<never, never>>
