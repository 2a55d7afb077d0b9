/** What the store runs for identities and flows. The writer thread of SQLite imports this module. */

import { addAccount } from '#core/accounts/stored-accounts'
import { takePendingChange } from '#core/accounts/stored-pending-changes'
import type { AuditEvent } from '#core/audit-log/event'
import { consequenceOf, recordStatement } from '#core/audit-log/stored-events'
import type { Session } from '#core/auth/session'
import { beginChange, type ChangeHolder, type ProvedSession } from '#core/auth/stored-sessions'
import type { AccountFeature } from '#core/store/account-feature'
import type { OwnedRow } from '#core/users/owned-rows'
import type { SessionRefusal } from '#core/users/refusals'
import { changeFactors } from '#core/users/stored-factors'
import type { NewUser } from '#core/users/user'
import { firstRow, type Query, query, type Steps, USER_KEY, unlessTaken } from '#storage/operations/operation'
import { invalidatesNothing, refusedFor, type Write } from '#storage/operations/write'
import { type FeatureStore, table } from '#storage/stored-feature'

/** Identities of one user. */
export const MAX_IDENTITIES = 20

/** A user at a provider. Timestamps are milliseconds since the epoch. */
export interface Identity {
  readonly id: string
  /** The id of the provider in the settings, when it was last used. */
  readonly provider: string
  /** Issuer and subject are unique among all users. */
  readonly issuer: string
  readonly subject: string
  /** The e-mail at the provider, when it was last used. */
  readonly email: string | null
  readonly linkedAt: number
  readonly lastUsedAt: number | null
}

export interface IdentityUse {
  readonly id: string
  readonly provider: string
  readonly email: string | null
}

interface IdentitiesTable {
  id: string
  user_key: number
  issuer: string
  subject: string
  provider: string
  email: string | null
  linked_at: number
  /** 0 before the first sign-in. */
  last_used_at: number
}

/** A browser or program that was sent to a provider. */
export interface Flow {
  /** The digest of the secret that the browser or program keeps. */
  readonly id: string
  readonly state: string
  readonly provider: string
  readonly issuer: string
  /** Encrypted: what the callback needs; and after it, who the provider says the user is. */
  readonly data: string
  /** The session that links an identity; `null` for a sign-in. */
  readonly session: string | null
  /** Whether the callback was processed: what follows is a code, or a link to an account. */
  readonly isVerified: boolean
  readonly expiresAt: number
}

interface FlowsTable {
  id: string
  state: string
  provider: string
  issuer: string
  data: string
  session_id: string | null
  /** Read by the previous release only. */
  needs_code: number
  verified: number
  expires_at: number
}

type FlowRow = Omit<FlowsTable, 'id' | 'needs_code'>

const FLOW_COLUMNS = 'state, provider, issuer, data, session_id, verified, expires_at'

const toFlow = (id: string, row: FlowRow): Flow => ({
  id,
  state: row.state,
  provider: row.provider,
  issuer: row.issuer,
  data: row.data,
  session: row.session_id,
  isVerified: row.verified === 1,
  expiresAt: row.expires_at,
})

/** @param holder who links an identity; `null` for a sign-in. */
function* addFlow(
  flow: Omit<Flow, 'session'>,
  holder: ChangeHolder | null,
): Steps<Write<'added' | SessionRefusal>> {
  if (holder !== null) {
    const refused = yield* beginChange(flow, holder)
    if (refused !== null) return refusedFor(holder.userId, refused)
  }
  yield {
    text: `INSERT INTO identity_flows (id, ${FLOW_COLUMNS}, needs_code) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0)`,
    values: [
      ...[flow.id, flow.state, flow.provider, flow.issuer, flow.data, holder?.session.id ?? null],
      ...[Number(flow.isVerified), flow.expiresAt],
    ],
  }
  return invalidatesNothing('added')
}

/** Uses up a flow whose callback arrives: of simultaneous calls, one succeeds. */
function* takeFlow(id: string, state: string, provider: string, at: number): Steps<Write<Flow | undefined>> {
  const taken = yield* firstRow<FlowRow>({
    text: `DELETE FROM identity_flows
      WHERE id = $1 AND state = $2 AND provider = $3 AND expires_at > $4 AND verified = 0 RETURNING ${FLOW_COLUMNS}`,
    values: [id, state, provider, at],
  })
  return invalidatesNothing(taken && toFlow(id, taken))
}

/** Uses up a flow after its callback. */
function* useVerifiedFlow(id: string, at: number): Steps<boolean> {
  const used = yield* firstRow({
    text: 'DELETE FROM identity_flows WHERE id = $1 AND verified = 1 AND expires_at > $2 RETURNING id',
    values: [id, at],
  })
  return used !== undefined
}

/** @returns `taken` if the identity is linked to an account, `tooMany` if the user, who is locked, has the most that are allowed. */
function* insertIdentity(userId: string, identity: Identity): Steps<'added' | 'taken' | 'tooMany'> {
  const { id, issuer, subject, provider, email, linkedAt, lastUsedAt } = identity
  const added = yield* unlessTaken({
    text: `INSERT INTO identities (id, user_key, issuer, subject, provider, email, linked_at, last_used_at)
      SELECT $2, key, $3, $4, $5, CAST($6 AS text), $7, $8 FROM users
      WHERE id = $1 AND (SELECT count(*) FROM identities WHERE user_key = users.key) < ${MAX_IDENTITIES} RETURNING id`,
    values: [userId, id, issuer, subject, provider, email, linkedAt, lastUsedAt ?? 0],
  })
  if (added === 'taken') return added
  return added.length === 0 ? 'tooMany' : 'added'
}

/** Opens an account for an identity that no account has, with its first session. */
function* openAccount(
  user: NewUser,
  identity: Identity,
  session: Session,
  event: AuditEvent,
): Steps<Write<'opened' | 'taken'>> {
  if (!(yield* addAccount(user, session, event))) return refusedFor(user.id, 'taken')
  if ((yield* insertIdentity(user.id, identity)) !== 'added') return refusedFor(user.id, 'taken')
  const { id, provider } = identity
  yield recordStatement(consequenceOf(event, 'identity.linked', { identity: id, provider }))
  return invalidatesNothing('opened')
}

/**
 * Links an identity to the account of the event's user, in a session with a proof of identity.
 * @param flow that ends: `begun` in this session, and taken by its callback; or of a sign-in, `verified` by its callback.
 */
const linkIdentity = (
  identity: Identity,
  flow: { readonly id: string; readonly was: 'begun' | 'verified' },
  session: ProvedSession,
  event: AuditEvent,
) =>
  changeFactors({ session, endsOthers: false }, event, function* () {
    const { userId, at } = event
    if (flow.was === 'begun' && !(yield* takePendingChange(flow.id, session))) return 'sessionNotFound'
    if (flow.was === 'verified' && !(yield* useVerifiedFlow(flow.id, at))) return 'flowUsed'
    const added = yield* insertIdentity(userId, identity)
    return added === 'added' ? null : added
  })

/**
 * Records the use of an identity. Its timestamps never go back, also where clocks differ.
 * @param flow after its callback; `null` while the callback is processed, which has used it up.
 */
function* useIdentity(
  { userId, at }: AuditEvent,
  { id, provider, email }: IdentityUse,
  flow: string | null,
): Steps<'proved' | 'notProved'> {
  if (flow !== null && !(yield* useVerifiedFlow(flow, at))) return 'notProved'
  const used = yield* firstRow({
    text: `UPDATE identities SET provider = $3, email = CAST($4 AS text),
        last_used_at = CASE WHEN last_used_at < $5 THEN $5 ELSE last_used_at + 1 END
      WHERE user_key = ${USER_KEY} AND id = $2 RETURNING id`,
    values: [userId, id, provider, email, at],
  })
  return used === undefined ? 'notProved' : 'proved'
}

/** For an identity that {@link addIdentity} links in the same transaction. */
function* useFlow({ at }: AuditEvent, flow: string | null): Steps<'proved' | 'notProved'> {
  return flow === null || (yield* useVerifiedFlow(flow, at)) ? 'proved' : 'notProved'
}

function* addIdentity(newest: AuditEvent, identity: Identity): Steps<'proved' | 'notProved'> {
  if ((yield* insertIdentity(newest.userId, identity)) !== 'added') return 'notProved'
  const { id, provider } = identity
  yield recordStatement(consequenceOf(newest, 'identity.linked', { identity: id, provider }))
  return 'proved'
}

const findVerifiedFlow = (id: string, provider: string, now: number): Query<Flow | undefined> =>
  query(
    {
      name: 'identity-flow',
      text: `SELECT ${FLOW_COLUMNS} FROM identity_flows
        WHERE id = $1 AND provider = $2 AND expires_at > $3 AND verified = 1`,
      values: [id, provider, now],
    },
    ([found]: readonly FlowRow[]) => found && toFlow(id, found),
  )

const findIdentity = (
  issuer: string,
  subject: string,
): Query<{ readonly id: string; readonly userId: string } | undefined> =>
  query(
    {
      name: 'identity',
      text: `SELECT identities.id, users.id AS "userId"
        FROM identities JOIN users ON users.key = identities.user_key WHERE issuer = $1 AND subject = $2`,
      values: [issuer, subject],
    },
    ([found]: readonly { id: string; userId: string }[]) => found,
  )

const IDENTITY_COLUMNS = `identities.id, provider, issuer, subject, identities.email, linked_at AS "linkedAt",
  NULLIF(last_used_at, 0) AS "lastUsedAt"`

/** The identities of a user, newest first. */
const listIdentities = (userId: string): Query<readonly Identity[]> =>
  query(
    {
      name: 'identities',
      text: `SELECT ${IDENTITY_COLUMNS} FROM identities
        WHERE user_key = ${USER_KEY} ORDER BY id DESC LIMIT ${MAX_IDENTITIES}`,
      values: [userId],
    },
    (found: readonly Identity[]) => found,
  )

/** The identities of users, oldest first. */
const listIdentitiesOf = (
  userIds: readonly string[],
): Query<readonly { readonly userId: string; readonly identity: Identity }[]> =>
  query(
    {
      text: ({ isOneOf }) => `SELECT users.id AS "userId", ${IDENTITY_COLUMNS}
        FROM identities JOIN users ON users.key = user_key
        WHERE ${isOneOf('users.id', '$1', 'text')} ORDER BY identities.id`,
      values: [userIds],
    },
    (found: readonly (Identity & { readonly userId: string })[]) =>
      found.map(({ userId, ...identity }) => ({ userId, identity })),
  )

/** The row of an identity that another service has linked. */
export const identityRow = (identity: Identity): OwnedRow => ({
  table: 'identities',
  values: {
    id: identity.id,
    issuer: identity.issuer,
    subject: identity.subject,
    provider: identity.provider,
    email: identity.email,
    linked_at: identity.linkedAt,
    last_used_at: identity.lastUsedAt ?? 0,
  } satisfies Omit<IdentitiesTable, 'user_key'>,
})

export const storedIdentities = {
  name: 'identities',
  module: import.meta.url,
  migrations: {
    '0001_identities': {
      sql: ({ text, keyType }) => [
        `create table "identities" (
          "id" ${text} primary key,
          "user_key" ${keyType} not null references "users" ("key") on delete cascade,
          "issuer" ${text} not null,
          "subject" ${text} not null,
          "provider" ${text} not null,
          "email" ${text},
          "linked_at" bigint not null,
          "last_used_at" bigint not null
        )`,
        'create unique index "identities_by_subject" on "identities" ("subject", "issuer")',
        'create index "identities_by_user_key" on "identities" ("user_key", "id")',
        `create table "identity_flows" (
          "id" ${text} primary key,
          "state" ${text} not null,
          "provider" ${text} not null,
          "issuer" ${text} not null,
          "data" ${text} not null,
          "session_id" ${text},
          "needs_code" integer not null,
          "verified" integer not null,
          "expires_at" bigint not null
        )`,
        'create index "identity_flows_by_expires_at" on "identity_flows" ("expires_at")',
      ],
    },
  },
  tables: {
    identities: table<IdentitiesTable>({
      owner: 'user_key',
      key: 'id',
      updatedAt: 'last_used_at',
      unique: [['issuer', 'subject']],
      grantsAccess: { type: 'identity.removed', detail: 'identity' },
      signsIn: 'identity',
    }),
    identity_flows: table<FlowsTable>({
      owner: null,
      key: 'id',
      cleanUp: { column: 'expires_at', after: 0 },
    }),
  },
  operations: { addFlow, takeFlow, openAccount, linkIdentity },
  signInProofs: { useIdentity, useFlow, addIdentity },
  reads: { findVerifiedFlow, findIdentity, listIdentities, listIdentitiesOf },
} satisfies AccountFeature

export type IdentityStore = FeatureStore<typeof storedIdentities.operations, typeof storedIdentities.reads>
