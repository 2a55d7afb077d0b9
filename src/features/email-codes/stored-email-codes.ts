/** What the store runs for codes and links that are mailed to sign in. The writer thread of SQLite imports this module. */
import { MAIL_WINDOW } from '#core/accounts/email-token'
import { isUnderAnonymousMailLimit, knownNetworksOf } from '#core/accounts/stored-mail-limits'
import type { AuditEvent } from '#core/audit-log/event'
import { recordStatement } from '#core/audit-log/stored-events'
import type { AccountFeature } from '#core/store/account-feature'
import { refusalOf, type UserRefusal } from '#core/users/refusals'
import { lockUser } from '#core/users/user-locks'
import {
  firstRow,
  type Query,
  query,
  rows,
  type Statement,
  type Steps,
  USER_KEY,
} from '#storage/operations/operation'
import { invalidatesNothing, refusedFor, type Write } from '#storage/operations/write'
import { type FeatureStore, table } from '#storage/stored-feature'

/** Milliseconds for which a code or link works. */
export const LIFETIME = 600_000

/** Comparisons that one code allows to each network from which its user has signed in, and to all others together; and in all. */
const MAX_ATTEMPTS = 5
const MAX_ATTEMPTS_IN_ALL = 15

/**
 * Comparisons with all codes of an account within an hour, while its e-mail is not confirmed: somebody who opened it with the address of another
 * has made networks known, and must not guess more codes for them than a stranger could with five codes. Those of unknown networks leave some
 * for the known ones.
 */
const MAX_UNCONFIRMED_PER_HOUR = 25
const MAX_UNCONFIRMED_OF_STRANGERS = 15

/** A code or link that was mailed. Timestamps are milliseconds since the epoch. */
export interface NewEmailCode {
  /** For a link, the digest of its token. */
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
  /** The /24 of an IPv4 address, the /48 of an IPv6 address. */
  readonly network: string | null
  readonly userAgent: string | null
}

export type PendingEmailCode = Pick<NewEmailCode, 'id' | 'userId' | 'code'>

export interface CountedAttempt {
  /** The codes of the user that it is compared with. */
  readonly codes: readonly PendingEmailCode[]
  /** The digest of the client's network, if the user has signed in from it. */
  readonly network: string | null
}

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
  /** The digest of the network from which it was asked for, if the user had signed in from it. */
  known_network: string | null
  /** The known network of each attempt from one, each with a space behind it. */
  attempted_from: string | null
}

/** The events that count towards the one limit on mails with codes and links. */
const COUNTED = ['email-code.requested', 'magic-link.requested']

/**
 * Stores a code or link, if the user is enabled and the limit of mails is not reached. It takes the place of those that were asked for from the
 * same known network or from unknown ones: a stranger replaces no code of a known network.
 */
function* addEmailCode(
  { id, userId, email, code, askedFrom, createdAt, expiresAt }: NewEmailCode,
  event: AuditEvent,
): Steps<Write<'added' | 'tooManyMails' | UserRefusal>> {
  // Concurrent calls for one user run one after the other, so each counts the events of the earlier ones.
  const refused = refusalOf(yield* lockUser(userId), { onlyEnabled: true })
  if (refused !== null) return refusedFor(userId, refused)
  const knownNetworkOf = yield* knownNetworksOf({ id: userId }, createdAt)
  if (!(yield* isUnderAnonymousMailLimit(event, COUNTED, knownNetworkOf)))
    return invalidatesNothing('tooManyMails')
  const knownNetwork = knownNetworkOf(event.actor.ip)
  // They stay for an hour, because their attempts count.
  yield {
    text: `UPDATE email_codes SET expires_at = $3 WHERE user_key = ${USER_KEY} AND expires_at > $3
      AND (known_network IS NULL OR known_network = CAST($2 AS text))`,
    values: [userId, knownNetwork, createdAt],
  }
  yield {
    text: `INSERT INTO email_codes
        (id, user_key, email, code, attempts, expires_at, updated_at, network, user_agent, known_network)
      SELECT $2, key, $3, $4, 0, $5, $6, CAST($7 AS text), CAST($8 AS text), CAST($9 AS text) FROM users WHERE id = $1`,
    values: [
      ...[userId, id, email, code, expiresAt, createdAt],
      ...[askedFrom?.network ?? null, askedFrom?.userAgent ?? null, knownNetwork],
    ],
  }
  yield recordStatement(event)
  return invalidatesNothing('added')
}

/** The text to which each attempt from a known network adds it. */
const ATTEMPTED_FROM = "COALESCE(attempted_from, '')"

/** Whether a code may be compared once more. `$3` is the known network of the attempt; `NULL` if there is none. */
const MAY_BE_COMPARED = `(attempts < ${MAX_ATTEMPTS} OR attempts < ${MAX_ATTEMPTS_IN_ALL}
  AND length(${ATTEMPTED_FROM}) - length(replace(${ATTEMPTED_FROM}, CAST($3 AS text) || ' ', ''))
    < ${MAX_ATTEMPTS} * length(CAST($3 AS text) || ' '))`

const lockRecent: Statement['text'] = ({ forUpdate }) =>
  `SELECT attempts, attempted_from AS "attemptedFrom", expires_at AS "expiresAt",
      (SELECT email_verified FROM users WHERE key = user_key) AS "emailVerified"
    FROM email_codes WHERE user_key = (SELECT key FROM users WHERE email = $1) AND updated_at > $2 AND code <> ''
    ORDER BY id ${forUpdate}`

interface CountedCode {
  readonly attempts: number
  readonly attemptedFrom: string | null
  readonly expiresAt: number
  readonly emailVerified: number
}

/**
 * Whether the limits of an hour allow another attempt, which is compared with every valid code. It locks the codes, so that of simultaneous
 * attempts each counts the earlier ones.
 * @param network the known network of the attempt; `null` if there is none.
 */
function* hasAttemptsLeft(email: string, network: string | null, at: number): Steps<boolean> {
  const recent = yield* rows<CountedCode>({ text: lockRecent, values: [email, at - MAIL_WINDOW] })
  if (recent[0]?.emailVerified !== 0) return true
  let [ofAll, ofStrangers] = [0, 0]
  for (const { attempts, attemptedFrom, expiresAt } of recent) {
    const next = expiresAt > at ? 1 : 0
    ofAll += attempts + next
    ofStrangers += attempts + next - ((attemptedFrom ?? '').split(' ').length - 1)
  }
  return (
    ofAll <= MAX_UNCONFIRMED_PER_HOUR && (network !== null || ofStrangers <= MAX_UNCONFIRMED_OF_STRANGERS)
  )
}

/**
 * Counts an attempt before the codes of the user are compared: of simultaneous attempts, no more than the limit get a code. Strangers
 * cannot use up the attempts of known networks. Every attempt has the same statements and writes a row, also for an address without a code,
 * so that its time does not reveal whether there is one.
 * @param row the one that is written in any case.
 * @param ip of the client, in canonical form.
 */
function* countAttempt(
  email: string,
  row: string,
  ip: string | null,
  at: number,
): Steps<Write<CountedAttempt>> {
  yield {
    text: `INSERT INTO email_code_attempts (id, attempts) VALUES ($1, 1)
      ON CONFLICT (id) DO UPDATE SET attempts = email_code_attempts.attempts + 1`,
    values: [row],
  }
  const network = (yield* knownNetworksOf({ email }, at))(ip)
  const isAllowed = yield* hasAttemptsLeft(email, network, at)
  const codes = yield* rows<PendingEmailCode>({
    text: `UPDATE email_codes SET attempts = attempts + 1, updated_at = $2,
        attempted_from = ${ATTEMPTED_FROM} || COALESCE(CAST($3 AS text) || ' ', '')
      WHERE user_key = (SELECT key FROM users WHERE email = $1) AND email = $1 AND expires_at > $2
        AND code <> '' AND CAST($4 AS integer) = 1 AND ${MAY_BE_COMPARED}
      RETURNING id, (SELECT id FROM users WHERE key = user_key) AS "userId", code`,
    values: [email, at, network, Number(isAllowed)],
  })
  return invalidatesNothing({ codes, network })
}

/**
 * Takes back an attempt with the correct code, which was not used up.
 * @param network the digest that was counted, if any. Its earlier attempts do not count any more either: it has the code.
 */
function* uncountAttempt(id: string, network: string | null): Steps<Write<void>> {
  yield {
    text: `UPDATE email_codes SET attempts = attempts - 1,
      attempted_from = COALESCE(replace(attempted_from, CAST($2 AS text) || ' ', ''), attempted_from) WHERE id = $1`,
    values: [id, network],
  }
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

/** The columns of the release that had one code for each user. */
const FORMER_COLUMNS =
  '"id", "user_key", "email", "code", "attempts", "expires_at", "updated_at", "network", "user_agent"'

/** SQLite removes no constraint of a table: the rows move to another one. */
const rebuildWithoutUnique = (text: string, keyType: string): readonly string[] => [
  `create table "email_codes_rebuilt" (
    "id" ${text} primary key,
    "user_key" ${keyType} not null references "users" ("key") on delete cascade,
    "email" ${text} not null,
    "code" ${text} not null,
    "attempts" integer not null,
    "expires_at" bigint not null,
    "updated_at" bigint not null,
    "network" ${text},
    "user_agent" ${text}
  )`,
  `insert into "email_codes_rebuilt" (${FORMER_COLUMNS}) select ${FORMER_COLUMNS} from "email_codes"`,
  'drop table "email_codes"',
  'alter table "email_codes_rebuilt" rename to "email_codes"',
  'create index "email_codes_by_expires_at" on "email_codes" ("expires_at")',
]

export const storedEmailCodes = {
  name: 'email-codes',
  module: import.meta.url,
  migrations: {
    '0001_email_codes': {
      sql: ({ text, keyType }) => [
        `create table "email_codes" (
          "id" ${text} primary key,
          "user_key" ${keyType} not null unique references "users" ("key") on delete cascade,
          "email" ${text} not null,
          "code" ${text} not null,
          "attempts" integer not null,
          "expires_at" bigint not null,
          "updated_at" bigint not null
        )`,
        'create index "email_codes_by_expires_at" on "email_codes" ("expires_at")',
        // Few rows, which say nothing about users: they are neither copied nor removed.
        `create table "email_code_attempts" (
          "id" ${text} primary key,
          "attempts" bigint not null
        )`,
      ],
    },
    '0002_magic_links': {
      sql: ({ text }) => [
        `alter table "email_codes" add column "network" ${text}`,
        `alter table "email_codes" add column "user_agent" ${text}`,
      ],
    },
    // A user has one code for each known network, and one for all others. Instances of 0.3.0 write one for each user.
    '0003_known_networks': {
      sql: ({ engine, text, keyType }) => [
        ...(engine === 'postgres'
          ? ['alter table "email_codes" drop constraint "email_codes_user_key_key"']
          : rebuildWithoutUnique(text, keyType)),
        `alter table "email_codes" add column "known_network" ${text}`,
        `alter table "email_codes" add column "attempted_from" ${text}`,
        'create index "email_codes_by_user_key" on "email_codes" ("user_key")',
      ],
    },
  },
  tables: {
    email_codes: table<EmailCodesTable>({
      owner: 'user_key',
      key: 'id',
      updatedAt: 'updated_at',
      isMailed: true,
      cleanUp: { column: 'expires_at', after: MAIL_WINDOW },
    }),
  },
  operations: { addEmailCode, countAttempt, uncountAttempt },
  reads: { findMagicLink },
  signInProofs: { useEmailCode },
} satisfies AccountFeature

export type EmailCodeStore = FeatureStore<typeof storedEmailCodes.operations, typeof storedEmailCodes.reads>
