/** What the store runs for authenticator apps and recovery codes. The writer thread of SQLite imports this module. */

import { type MethodAmr, REMOVED_APP } from '#core/accounts/sign-in-methods'
import { takePendingChange } from '#core/accounts/stored-pending-changes'
import type { AuditEvent } from '#core/audit-log/event'
import { recordStatement } from '#core/audit-log/stored-events'
import { beginChange, lowerAmr, type ProvedSession } from '#core/auth/stored-sessions'
import type { AccountFeature } from '#core/store/account-feature'
import type { OwnedRow } from '#core/users/owned-rows'
import type { UserRefusal } from '#core/users/refusals'
import { changeFactors, type OwnFactorChange, setFactor } from '#core/users/stored-factors'
import { lockUser } from '#core/users/user-locks'
import {
  firstRow,
  type Query,
  query,
  type Statement,
  type Steps,
  USER_KEY,
} from '#storage/operations/operation'
import { invalidatesNothing, refusedFor, type Write } from '#storage/operations/write'
import { type FeatureStore, table } from '#storage/stored-feature'

/** The authenticator app of a user. Timestamps are milliseconds since the epoch. */
export interface StoredTotp {
  readonly id: string
  /** Encrypted. */
  readonly secret: string
  /** `null` until the first code has shown that the app has the secret. */
  readonly confirmedAt: number | null
  /** When an unconfirmed secret is removed; `null` afterwards. */
  readonly expiresAt: number | null
  /** The step of the last accepted code. */
  readonly lastStep: number
}

interface TotpTable {
  id: string
  user_key: number
  secret: string
  confirmed_at: number | null
  expires_at: number | null
  last_step: number
  updated_at: number
}

/** A recovery code without the code itself. */
export interface StoredRecoveryCode {
  readonly id: string
  readonly digest: string
}

interface RecoveryCodesTable extends StoredRecoveryCode {
  user_key: number
}

function* isConfirmed(userId: string): Steps<boolean> {
  const found = yield* firstRow({
    text: `SELECT id FROM totp WHERE user_key = ${USER_KEY} AND confirmed_at IS NOT NULL`,
    values: [userId],
  })
  return found !== undefined
}

/** Stores a secret until the same session confirms it. It replaces the one of an earlier call. */
function* beginTotp(
  userId: string,
  { id, secret, expiresAt }: Pick<StoredTotp, 'id' | 'secret'> & { readonly expiresAt: number },
  session: ProvedSession,
  at: number,
): Steps<Write<'done' | 'totpExists' | 'sessionNotFound' | UserRefusal>> {
  const refused = yield* beginChange({ id, expiresAt }, { userId, session })
  if (refused !== null) return refusedFor(userId, refused)
  if (yield* isConfirmed(userId)) return refusedFor(userId, 'totpExists')
  yield { text: `DELETE FROM totp WHERE user_key = ${USER_KEY}`, values: [userId] }
  yield {
    text: `INSERT INTO totp (id, user_key, secret, confirmed_at, expires_at, last_step, updated_at)
      SELECT $2, key, $3, NULL, $4, 0, $5 FROM users WHERE id = $1`,
    values: [userId, id, secret, expiresAt, at],
  }
  return invalidatesNothing('done')
}

function* replaceCodes(userId: string, codes: readonly StoredRecoveryCode[]): Steps<void> {
  yield { text: `DELETE FROM recovery_codes WHERE user_key = ${USER_KEY}`, values: [userId] }
  for (const { id, digest } of codes) {
    yield {
      text: 'INSERT INTO recovery_codes (id, user_key, digest) SELECT $2, key, $3 FROM users WHERE id = $1',
      values: [userId, id, digest],
    }
  }
}

/** @param step of the code that confirms, which is used up by it. */
const confirmTotp = (
  { id, step }: { readonly id: string; readonly step: number },
  codes: readonly StoredRecoveryCode[],
  change: OwnFactorChange,
  event: AuditEvent,
) =>
  changeFactors(change, event, function* () {
    const { userId, at } = event
    const confirmed = yield* firstRow({
      text: `UPDATE totp SET confirmed_at = $3, expires_at = NULL, last_step = $4, updated_at = $3
        WHERE id = $2 AND user_key = ${USER_KEY} AND confirmed_at IS NULL AND expires_at > $3 RETURNING id`,
      values: [userId, id, at, step],
    })
    if (confirmed === undefined || !(yield* takePendingChange(id, change.session))) return 'totpNotBegun'
    yield* replaceCodes(userId, codes)
    yield* setFactor(userId, 'totp', true, at)
    return null
  })

/** @param methods those of the service. */
const removeTotp = (change: OwnFactorChange, event: AuditEvent, methods: readonly MethodAmr[]) =>
  changeFactors(change, event, function* () {
    const { userId, at } = event
    if (!(yield* isConfirmed(userId))) return 'totpNotFound'
    yield { text: `DELETE FROM totp WHERE user_key = ${USER_KEY}`, values: [userId] }
    yield* replaceCodes(userId, [])
    yield* setFactor(userId, 'totp', false, at)
    yield* lowerAmr(userId, REMOVED_APP, methods)
    return null
  })

const replaceRecoveryCodes = (
  codes: readonly StoredRecoveryCode[],
  change: OwnFactorChange,
  event: AuditEvent,
) =>
  changeFactors(change, event, function* () {
    if (!(yield* isConfirmed(event.userId))) return 'totpNotFound'
    yield* replaceCodes(event.userId, codes)
    return null
  })

/**
 * Accepts the code of a step, if none of this or a later step was accepted before: of simultaneous calls with one step, one succeeds.
 * @param secret as it is encrypted from now on.
 */
function* useTotpStep(
  { id, secret }: Pick<StoredTotp, 'id' | 'secret'>,
  step: number,
  at: number,
): Steps<Write<boolean>> {
  const used = yield* firstRow({
    text: `UPDATE totp SET last_step = $2, secret = $3, updated_at = $4
      WHERE id = $1 AND confirmed_at IS NOT NULL AND last_step < $2 RETURNING id`,
    values: [id, step, secret, at],
  })
  return invalidatesNothing(used !== undefined)
}

/** @returns how many codes are left; `null` if the user has no such code. */
function* useRecoveryCode(digest: string, event: AuditEvent): Steps<Write<number | null>> {
  if ((yield* lockUser(event.userId)) === undefined) return invalidatesNothing(null)
  const used = yield* firstRow({
    text: `DELETE FROM recovery_codes WHERE digest = $2 AND user_key = ${USER_KEY} RETURNING id`,
    values: [event.userId, digest],
  })
  if (used === undefined) return invalidatesNothing(null)
  yield recordStatement(event)
  const left = yield* firstRow<{ count: number }>(countStatement(event.userId))
  return invalidatesNothing(left?.count ?? 0)
}

const countStatement = (userId: string): Statement => ({
  text: `SELECT count(*) AS count FROM recovery_codes WHERE user_key = ${USER_KEY}`,
  values: [userId],
})

/** The secret of a user, also an unconfirmed or expired one. */
const findTotp = (userId: string): Query<StoredTotp | undefined> =>
  query(
    {
      name: 'totp',
      text: `SELECT id, secret, confirmed_at AS "confirmedAt", expires_at AS "expiresAt", last_step AS "lastStep"
        FROM totp WHERE user_key = ${USER_KEY}`,
      values: [userId],
    },
    ([found]: readonly StoredTotp[]) => found,
  )

const countRecoveryCodes = (userId: string): Query<number> =>
  query(countStatement(userId), ([row]: readonly { count: number }[]) => row?.count ?? 0)

/** The encrypted secret of a user, of several at once. */
export interface UserSecret {
  readonly userId: string
  readonly secret: string
}

const OF_USERS = 'JOIN users ON users.key = user_key WHERE'

/** The confirmed secrets of users. */
const listSecrets = (userIds: readonly string[]): Query<readonly UserSecret[]> =>
  query(
    {
      text: ({ isOneOf }) => `SELECT users.id AS "userId", secret FROM totp ${OF_USERS}
        ${isOneOf('users.id', '$1', 'text')} AND confirmed_at IS NOT NULL`,
      values: [userIds],
    },
    (rows: readonly UserSecret[]) => rows,
  )

/** The recovery codes of users, in an order that does not reveal that of the codes. */
const listRecoveryCodes = (
  userIds: readonly string[],
): Query<readonly { readonly userId: string; readonly digest: string }[]> =>
  query(
    {
      text: ({ isOneOf }) => `SELECT users.id AS "userId", digest FROM recovery_codes ${OF_USERS}
        ${isOneOf('users.id', '$1', 'text')} ORDER BY digest`,
      values: [userIds],
    },
    (rows: readonly { userId: string; digest: string }[]) => rows,
  )

/** The row of a secret that another service has confirmed. */
export const confirmedTotpRow = (id: string, secret: string, at: number): OwnedRow => ({
  table: 'totp',
  values: {
    id,
    secret,
    confirmed_at: at,
    expires_at: null,
    last_step: 0,
    updated_at: at,
  } satisfies Omit<TotpTable, 'user_key'>,
})

export const recoveryCodeRow = ({ id, digest }: StoredRecoveryCode): OwnedRow => ({
  table: 'recovery_codes',
  values: { id, digest } satisfies Omit<RecoveryCodesTable, 'user_key'>,
})

export const storedTotp = {
  name: 'totp',
  module: import.meta.url,
  migrations: {
    '0001_totp': {
      sql: ({ text, keyType }) => [
        `create table "totp" (
          "id" ${text} primary key,
          "user_key" ${keyType} not null unique references "users" ("key") on delete cascade,
          "secret" ${text} not null,
          "confirmed_at" bigint,
          "expires_at" bigint,
          "last_step" bigint not null,
          "updated_at" bigint not null
        )`,
        'create index "totp_by_expires_at" on "totp" ("expires_at")',
        `create table "recovery_codes" (
          "id" ${text} primary key,
          "user_key" ${keyType} not null references "users" ("key") on delete cascade,
          "digest" ${text} not null
        )`,
        'create index "recovery_codes_by_user_key" on "recovery_codes" ("user_key", "digest")',
      ],
    },
  },
  tables: {
    totp: table<TotpTable>({
      owner: 'user_key',
      key: 'id',
      updatedAt: 'updated_at',
      isFactor: true,
      cleanUp: { column: 'expires_at', after: 0 },
    }),
    recovery_codes: table<RecoveryCodesTable>({ owner: 'user_key', key: 'id', isFactor: true }),
  },
  factor: {
    name: 'totp',
    users: 'SELECT user_key FROM totp WHERE confirmed_at IS NOT NULL',
    removal: 'totp.removed',
  },
  operations: {
    beginTotp,
    confirmTotp,
    removeTotp,
    replaceRecoveryCodes,
    useTotpStep,
    useRecoveryCode,
  },
  reads: { findTotp, countRecoveryCodes, listSecrets, listRecoveryCodes },
} satisfies AccountFeature

export type TotpStore = FeatureStore<typeof storedTotp.operations, typeof storedTotp.reads>
