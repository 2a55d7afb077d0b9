/** What the store runs for sign-ups that wait for a confirmation. The writer thread of SQLite imports this module. */

import { firstRow, type Query, query, rows, type Steps } from '#storage/operations/operation'
import { parameters } from '#storage/operations/parameters'
import { invalidatesNothing, refusedFor, type Write } from '#storage/operations/write'
import { type FeatureStore, type StoredFeature, table } from '#storage/stored-feature'
import { MAIL_WINDOW, MAX_MAILS } from '../accounts/email-token.ts'
import { addAccount } from '../accounts/stored-accounts.ts'
import type { AuditEvent } from '../audit-log/event.ts'
import { recordWithHolder } from '../audit-log/stored-events.ts'
import type { Session } from '../auth/session.ts'
import { newSignUpFields, type SignUpFields } from '../users/fields.ts'
import type { NewUser } from '../users/user.ts'

/** A sign-up without an account yet. Timestamps are milliseconds since the epoch. */
export interface PendingSignUp {
  /** `digestOf` the token. */
  readonly digest: string
  /** In canonical form. */
  readonly email: string
  readonly passwordHash: string
  readonly fields: SignUpFields
  readonly createdAt: number
  readonly expiresAt: number
}

interface PendingSignUpsTable {
  digest: string
  email: string
  password_hash: string
  /** Sign-ups that were stored before there was `fields` have the names here. */
  first_name: string | null
  last_name: string | null
  created_at: number
  expires_at: number
  fields: string | null
}

const COLUMNS = [
  'digest',
  'email',
  'password_hash',
  'fields',
  'created_at',
  'expires_at',
] as const satisfies readonly (keyof PendingSignUpsTable)[]

/**
 * Stores a sign-up. For an address that has an account it runs the same statements and writes the same rows, so that neither its time nor its
 * cost reveals the account. @param repeated the type of the event for an address with an account.
 */
function* addPendingSignUp(
  { digest, email, passwordHash, fields, createdAt, expiresAt }: PendingSignUp,
  event: AuditEvent<null>,
  repeated: string,
): Steps<Write<{ readonly maySend: boolean; readonly hasAccount: boolean }>> {
  // Simultaneous sign-ups with one address count each other.
  yield { text: ({ lockByName }) => lockByName('$1'), values: [`sign-up:${email}`] }
  const recorded = yield* firstRow<{ holder: string | null }>(recordWithHolder(email, event, repeated))
  const added = yield* firstRow({
    text: `INSERT INTO pending_sign_ups (${COLUMNS.join(', ')})
      SELECT ${parameters(COLUMNS, 1)}
      WHERE (SELECT count(*) FROM pending_sign_ups WHERE email = $2 AND created_at > $7) < ${MAX_MAILS}
      RETURNING digest`,
    values: [
      digest,
      email,
      passwordHash,
      JSON.stringify(fields),
      createdAt,
      expiresAt,
      createdAt - MAIL_WINDOW,
    ],
  })
  return invalidatesNothing({ maySend: added !== undefined, hasAccount: (recorded?.holder ?? null) !== null })
}

/** Locked in the order of their digests. @returns the digests of those that had not expired. */
function* takeOfEmail(email: string, now: number): Steps<readonly string[]> {
  const taken = yield* rows<{ digest: string; expires_at: number }>({
    text: ({ forUpdate }) => `WITH of_email AS (
        SELECT digest FROM pending_sign_ups WHERE email = $1 ORDER BY digest ${forUpdate}
      )
      DELETE FROM pending_sign_ups WHERE digest IN (SELECT digest FROM of_email) RETURNING digest, expires_at`,
    values: [email],
  })
  return taken.filter(({ expires_at }) => expires_at > now).map(({ digest }) => digest)
}

/** Opens the account of a sign-up, with a session; the others with its e-mail end. Of simultaneous calls for one address, one succeeds. */
function* openAccount(
  digest: string,
  user: NewUser,
  session: Session,
  event: AuditEvent,
): Steps<Write<'opened' | 'notFound' | 'emailTaken'>> {
  if (!(yield* takeOfEmail(user.email, event.at)).includes(digest)) return refusedFor(user.id, 'notFound')
  if (!(yield* addAccount(user, session, event))) return refusedFor(user.id, 'emailTaken')
  return invalidatesNothing('opened')
}

function* removePendingSignUp(digest: string): Steps<Write<boolean>> {
  const removed = yield* firstRow({
    text: 'DELETE FROM pending_sign_ups WHERE digest = $1 RETURNING digest',
    values: [digest],
  })
  return invalidatesNothing(removed !== undefined)
}

const toPendingSignUp = (row: PendingSignUpsTable): PendingSignUp => ({
  digest: row.digest,
  email: row.email,
  passwordHash: row.password_hash,
  fields: newSignUpFields(
    row.fields === null ? { firstName: row.first_name, lastName: row.last_name } : JSON.parse(row.fields),
  ),
  createdAt: row.created_at,
  expiresAt: row.expires_at,
})

const findPendingSignUp = (digest: string, now: number): Query<PendingSignUp | undefined> =>
  query(
    {
      name: 'pending-sign-up',
      text: `SELECT ${COLUMNS.join(', ')}, first_name, last_name FROM pending_sign_ups
        WHERE digest = $1 AND expires_at > $2`,
      values: [digest, now],
    },
    ([row]: readonly PendingSignUpsTable[]) => row && toPendingSignUp(row),
  )

export const storedPendingSignUps = {
  name: 'pending-sign-ups',
  module: import.meta.url,
  migrations: {
    '0001_pending_sign_ups': {
      sql: ({ text }) => [
        `create table "pending_sign_ups" (
          "digest" ${text} primary key,
          "email" ${text} not null,
          "password_hash" ${text} not null,
          "first_name" ${text},
          "last_name" ${text},
          "created_at" bigint not null,
          "expires_at" bigint not null
        )`,
        'create index "pending_sign_ups_by_email" on "pending_sign_ups" ("email", "created_at")',
        'create index "pending_sign_ups_by_expires_at" on "pending_sign_ups" ("expires_at")',
      ],
    },
    '0002_fields': {
      sql: ({ text }) => [`alter table "pending_sign_ups" add column "fields" ${text}`],
    },
  },
  tables: {
    pending_sign_ups: table<PendingSignUpsTable>({
      owner: null,
      key: 'digest',
      cleanUp: { column: 'expires_at', after: 0 },
    }),
  },
  operations: { addPendingSignUp, openAccount, removePendingSignUp },
  reads: { findPendingSignUp },
} satisfies StoredFeature

export type PendingSignUpStore = FeatureStore<
  typeof storedPendingSignUps.operations,
  typeof storedPendingSignUps.reads
>
