/** What the store runs for passkeys. The writer thread of SQLite imports this module. */

import { takePendingChange } from '#core/accounts/stored-pending-changes'
import type { AuditEvent } from '#core/audit-log/event'
import { recordStatement } from '#core/audit-log/stored-events'
import { beginChange, type ChangeHolder } from '#core/auth/stored-sessions'
import type { AccountFeature } from '#core/store/account-feature'
import type { OwnedRow } from '#core/users/owned-rows'
import type { SessionRefusal } from '#core/users/refusals'
import { changeFactors, type OwnFactorChange, setFactor } from '#core/users/stored-factors'
import {
  firstRow,
  type Query,
  query,
  type Statement,
  type Steps,
  USER_KEY,
  unlessTaken,
} from '#storage/operations/operation'
import { invalidatesNothing, refusedFor, type Write } from '#storage/operations/write'
import { type FeatureStore, table } from '#storage/stored-feature'

/** Passkeys of one user. */
export const MAX_PASSKEYS = 20

/** Characters of a public key: RSA keys of up to 6,000 bits. */
export const MAX_PUBLIC_KEY = 1_024

/** Timestamps are milliseconds since the epoch. */
export interface Passkey {
  readonly id: string
  /** base64url; unique among all users. */
  readonly webAuthnId: string
  /** Given by the user. */
  readonly name: string | null
  /** How a browser reaches the authenticator, such as `internal` or `usb`. */
  readonly transports: readonly string[]
  /** Whether it is synchronised among devices, as of its last use. */
  readonly backedUp: boolean
  readonly createdAt: number
  readonly lastUsedAt: number | null
}

export interface PasskeyWithKey extends Passkey {
  /** COSE, base64url. */
  readonly publicKey: string
  /** Counts signatures; 0 for passkeys that do not count. */
  readonly counter: number
}

export interface FoundPasskey {
  readonly id: string
  readonly userId: string
  readonly publicKey: string
}

export interface PasskeyUse {
  readonly id: string
  readonly counter: number
  readonly backedUp: boolean
}

interface PasskeysTable {
  id: string
  user_key: number
  credential_id: string
  public_key: string
  counter: number
  name: string | null
  /** JSON. */
  transports: string
  backed_up: number
  created_at: number
  /** 0 before the first sign-in. */
  last_used_at: number
}

type PasskeyRow = Omit<PasskeysTable, 'user_key' | 'public_key' | 'counter'>

/** A challenge that waits for its signature. */
interface PasskeyChallengesTable {
  /** SHA-256 of the challenge. */
  id: string
  /** The session that adds a passkey; `null` for a sign-in. */
  session_id: string | null
  expires_at: number
}

/** @param holder who adds a passkey; `null` for a sign-in. */
function* addChallenge(
  id: string,
  holder: ChangeHolder | null,
  expiresAt: number,
): Steps<Write<'added' | SessionRefusal>> {
  if (holder !== null) {
    const refused = yield* beginChange({ id, expiresAt }, holder)
    if (refused !== null) return refusedFor(holder.userId, refused)
  }
  yield {
    text: 'INSERT INTO passkey_challenges (id, session_id, expires_at) VALUES ($1, $2, $3)',
    values: [id, holder?.session.id ?? null, expiresAt],
  }
  return invalidatesNothing('added')
}

/**
 * Uses up a challenge: of simultaneous calls, one succeeds.
 * @param session that adds a passkey; `null` for a sign-in.
 */
function* takeChallenge(id: string, session: string | null, at: number): Steps<Write<boolean>> {
  const taken = yield* firstRow({
    text: `DELETE FROM passkey_challenges
      WHERE id = $1 AND session_id IS NOT DISTINCT FROM CAST($2 AS text) AND expires_at > $3 RETURNING id`,
    values: [id, session, at],
  })
  return invalidatesNothing(taken !== undefined)
}

/** @param challenge that the passkey has signed, which was taken: its proof of identity must not have ended. */
const addPasskey = (passkey: PasskeyWithKey, challenge: string, change: OwnFactorChange, event: AuditEvent) =>
  changeFactors(change, event, function* () {
    const { userId, at } = event
    if (!(yield* takePendingChange(challenge, change.session))) return 'wrongNewPasskey'
    const { id, webAuthnId, publicKey, counter, name, transports, backedUp, createdAt } = passkey
    const added = yield* unlessTaken({
      text: `INSERT INTO passkeys
          (id, user_key, credential_id, public_key, counter, name, transports, backed_up, created_at, last_used_at)
        SELECT $2, key, $3, $4, $5, $6, $7, $8, $9, 0 FROM users
        WHERE id = $1 AND (SELECT count(*) FROM passkeys WHERE user_key = users.key) < ${MAX_PASSKEYS} RETURNING id`,
      values: [
        ...[userId, id, webAuthnId, publicKey, counter, name],
        ...[JSON.stringify(transports), Number(backedUp), createdAt],
      ],
    })
    if (added === 'taken') return 'passkeyExists'
    if (added.length === 0) return 'tooManyPasskeys'
    yield* setFactor(userId, 'passkey', true, at)
    return null
  })

/** Records the use of a passkey. Its timestamps never go back, also where clocks differ. */
const useStatement = ({ id, counter, backedUp }: PasskeyUse, { userId, at }: AuditEvent): Statement => ({
  text: `UPDATE passkeys SET counter = $3, backed_up = $4,
      last_used_at = CASE WHEN last_used_at < $5 THEN $5 ELSE last_used_at + 1 END
    WHERE user_key = ${USER_KEY} AND id = $2 AND (counter < $3 OR (counter = 0 AND $3 = 0)) RETURNING id`,
  values: [userId, id, counter, Number(backedUp), at],
})

/**
 * Notes the use of a passkey, if it still exists and its counter has grown: else two devices may have the private key (WebAuthn §6.1.1).
 * @param regressed recorded if the counter has not grown.
 */
function* usePasskey(
  event: AuditEvent,
  use: PasskeyUse,
  regressed: AuditEvent,
): Steps<'proved' | 'notProved' | 'recorded'> {
  if ((yield* firstRow(useStatement(use, event))) !== undefined) return 'proved'
  const found = yield* firstRow({
    text: `SELECT id FROM passkeys WHERE user_key = ${USER_KEY} AND id = $2`,
    values: [event.userId, use.id],
  })
  if (found === undefined) return 'notProved'
  yield recordStatement(regressed)
  return 'recorded'
}

const findPasskey = (webAuthnId: string): Query<FoundPasskey | undefined> =>
  query(
    {
      name: 'passkey',
      text: `SELECT passkeys.id, users.id AS "userId", public_key AS "publicKey"
        FROM passkeys JOIN users ON users.key = passkeys.user_key WHERE credential_id = $1`,
      values: [webAuthnId],
    },
    ([found]: readonly FoundPasskey[]) => found,
  )

const toPasskey = (row: PasskeyRow): Passkey => ({
  id: row.id,
  webAuthnId: row.credential_id,
  name: row.name,
  transports: JSON.parse(row.transports) as string[],
  backedUp: row.backed_up === 1,
  createdAt: row.created_at,
  lastUsedAt: row.last_used_at === 0 ? null : row.last_used_at,
})

type PortableRow = Omit<PasskeysTable, 'user_key'> & { readonly userId: string }

/** The passkeys of users with what another service needs, oldest first. */
const listPasskeysOf = (
  userIds: readonly string[],
): Query<readonly { readonly userId: string; readonly passkey: PasskeyWithKey }[]> =>
  query(
    {
      text: ({
        isOneOf,
      }) => `SELECT users.id AS "userId", passkeys.id, credential_id, public_key, counter, name,
          transports, backed_up, passkeys.created_at, last_used_at
        FROM passkeys JOIN users ON users.key = user_key
        WHERE ${isOneOf('users.id', '$1', 'text')} ORDER BY passkeys.id`,
      values: [userIds],
    },
    (found: readonly PortableRow[]) =>
      found.map(row => ({
        userId: row.userId,
        passkey: { ...toPasskey(row), publicKey: row.public_key, counter: row.counter },
      })),
  )

/** The row of a passkey that another service has registered. */
export const passkeyRow = (passkey: PasskeyWithKey): OwnedRow => ({
  table: 'passkeys',
  values: {
    id: passkey.id,
    credential_id: passkey.webAuthnId,
    public_key: passkey.publicKey,
    counter: passkey.counter,
    name: passkey.name,
    transports: JSON.stringify(passkey.transports),
    backed_up: Number(passkey.backedUp),
    created_at: passkey.createdAt,
    last_used_at: passkey.lastUsedAt ?? 0,
  } satisfies Omit<PasskeysTable, 'user_key'>,
})

/** The passkeys of a user, newest first. */
const listPasskeys = (userId: string): Query<readonly Passkey[]> =>
  query(
    {
      name: 'passkeys',
      text: `SELECT id, credential_id, name, transports, backed_up, created_at, last_used_at
        FROM passkeys WHERE user_key = ${USER_KEY} ORDER BY id DESC LIMIT ${MAX_PASSKEYS}`,
      values: [userId],
    },
    (found: readonly PasskeyRow[]) => found.map(toPasskey),
  )

export const storedPasskeys = {
  name: 'passkeys',
  module: import.meta.url,
  migrations: {
    '0001_passkeys': {
      sql: ({ text, keyType }) => [
        `create table "passkeys" (
          "id" ${text} primary key,
          "user_key" ${keyType} not null references "users" ("key") on delete cascade,
          "credential_id" ${text} not null unique,
          "public_key" ${text} not null,
          "counter" bigint not null,
          "name" text,
          "transports" text not null,
          "backed_up" integer not null,
          "created_at" bigint not null,
          "last_used_at" bigint not null
        )`,
        'create index "passkeys_by_user_key" on "passkeys" ("user_key", "id")',
        `create table "passkey_challenges" (
          "id" ${text} primary key,
          "session_id" ${text},
          "expires_at" bigint not null
        )`,
        'create index "passkey_challenges_by_expires_at" on "passkey_challenges" ("expires_at")',
      ],
    },
  },
  tables: {
    passkeys: table<PasskeysTable>({
      owner: 'user_key',
      key: 'id',
      updatedAt: 'last_used_at',
      unique: 'credential_id',
      isFactor: true,
      grantsAccess: { type: 'passkey.removed', detail: 'passkey' },
      signsIn: 'passkey',
    }),
    passkey_challenges: table<PasskeyChallengesTable>({
      owner: null,
      key: 'id',
      cleanUp: { column: 'expires_at', after: 0 },
    }),
  },
  factor: { name: 'passkey', users: 'SELECT user_key FROM passkeys' },
  operations: { addChallenge, takeChallenge, addPasskey },
  signInProofs: { usePasskey },
  reads: { findPasskey, listPasskeys, listPasskeysOf },
} satisfies AccountFeature

export type PasskeyStore = FeatureStore<typeof storedPasskeys.operations, typeof storedPasskeys.reads>
