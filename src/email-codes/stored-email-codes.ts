/** What the store runs for codes and links that are mailed to sign in. The writer thread of SQLite imports this module. */
import { MAIL_WINDOW, MAX_MAILS } from '../accounts/email-token.ts'
import type { AuditEvent } from '../audit-log/event.ts'
import { countEvents, recordStatement } from '../storage/operations/events.ts'
import { firstRow, type Query, query, type Steps, USER_KEY } from '../storage/operations/operation.ts'
import { refusalOf, type UserRefusal } from '../storage/operations/refusals.ts'
import { lockUser } from '../storage/operations/user-locks.ts'
import { invalidatesNothing, refusedFor, type Write } from '../storage/operations/write.ts'
import { type FeatureStore, type StoredFeature, table } from '../storage/stored-feature.ts'

/** Milliseconds for which a code or link works. */
export const LIFETIME = 600_000

/** Comparisons that one code allows. */
export const MAX_ATTEMPTS = 5

/** A code or link that was mailed. Timestamps are milliseconds since the epoch. */
export interface NewEmailCode {
  /** Of a link, the digest of its token. */
  readonly id: string
  readonly userId: string
  /** The recipient. It is not valid once the account has another address. */
  readonly email: string
  /** Encrypted: anybody could find eight digits by their hash. Empty for a link. */
  readonly code: string
  /** Who has asked for a link; `null` for a code. */
  readonly askedFrom: AskedFrom | null
  readonly createdAt: number
  readonly expiresAt: number
}

/** The client that asked for a link, as the page behind the link shows it. */
export interface AskedFrom {
  /** See `networkOf`. */
  readonly network: string | null
  readonly userAgent: string | null
}

/** A code that may be compared. */
export type PendingEmailCode = Pick<NewEmailCode, 'id' | 'userId' | 'code'>

/** A link that is valid. */
export interface PendingMagicLink extends AskedFrom {
  readonly userId: string
  readonly email: string
  readonly createdAt: number
}

interface EmailCodesTable {
  id: string
  user_key: number
  email: string
  code: string
  attempts: number
  expires_at: number
  updated_at: number
  network: string | null
  user_agent: string | null
}

/** The mails share a limit, whichever route sends them. */
const COUNTED = ['email-code.requested', 'magic-link.requested']

/** Stores a code or link in place of the user's former one, if the user is enabled and the limit of mails is not reached. */
function* addEmailCode(
  { id, userId, email, code, askedFrom, createdAt, expiresAt }: NewEmailCode,
  event: AuditEvent,
): Steps<Write<'added' | 'tooManyMails' | UserRefusal>> {
  // Concurrent calls for one user run one after the other, so each counts the events of the earlier ones.
  const refused = refusalOf(yield* lockUser(userId), { onlyEnabled: true })
  if (refused !== null) return refusedFor(userId, refused)
  let sent = 0
  for (const type of COUNTED) sent += yield* countEvents({ ...event, type }, createdAt - MAIL_WINDOW + 1)
  if (sent >= MAX_MAILS) return invalidatesNothing('tooManyMails')
  yield {
    text: `DELETE FROM email_codes WHERE user_key = ${USER_KEY}`,
    values: [userId],
  }
  yield {
    text: `INSERT INTO email_codes (id, user_key, email, code, attempts, expires_at, updated_at, network, user_agent)
      SELECT $2, key, $3, $4, 0, $5, $6, CAST($7 AS text), CAST($8 AS text) FROM users WHERE id = $1`,
    values: [
      ...[userId, id, email, code, expiresAt, createdAt],
      ...[askedFrom?.network ?? null, askedFrom?.userAgent ?? null],
    ],
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
        AND attempts < ${MAX_ATTEMPTS} AND code <> ''
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

/** Uses up a code or link. Another e-mail of the user has deleted it. */
function* useEmailCode({ userId, at }: AuditEvent, id: string): Steps<'proved' | 'notProved'> {
  const used = yield* firstRow({
    text: `DELETE FROM email_codes WHERE id = $2 AND expires_at > $3 AND user_key = ${USER_KEY} RETURNING id`,
    values: [userId, id, at],
  })
  return used === undefined ? 'notProved' : 'proved'
}

/** @param digest of the token. */
const findMagicLink = (digest: string, now: number): Query<PendingMagicLink | undefined> =>
  query(
    {
      name: 'magic-link',
      text: `SELECT users.id AS "userId", email_codes.email AS email, network, user_agent AS "userAgent",
          email_codes.updated_at AS "createdAt"
        FROM email_codes JOIN users ON users.key = user_key
        WHERE email_codes.id = $1 AND code = '' AND expires_at > $2`,
      values: [digest, now],
    },
    ([row]: readonly PendingMagicLink[]) => row,
  )

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
    '0002_magic_links': {
      async up(db, { text }) {
        for (const column of ['network', 'user_agent'])
          await db.schema.alterTable('email_codes').addColumn(column, text).execute()
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
  reads: { findMagicLink },
  signInProofs: { useEmailCode },
} satisfies StoredFeature

export type EmailCodeStore = FeatureStore<typeof storedEmailCodes.operations, typeof storedEmailCodes.reads>
