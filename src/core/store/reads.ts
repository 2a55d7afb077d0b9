/** Reads by a key, on the event loop. Without joins, see `selectUser`. */

import { type Query, query, type Read, USER_KEY } from '#storage/operations/operation'
import type { EmailToken } from '../accounts/email-token.ts'
import { featureMethodsColumn } from '../accounts/sign-in-tables.ts'
import type { LogPosition } from '../audit-log/listing.ts'
import type { Session } from '../auth/session.ts'
import type { SignInTables } from '../users/listing.ts'
import type { User } from '../users/user.ts'
import {
  SESSION_COLUMNS,
  type SessionRow,
  selectEmailToken,
  selectUser,
  toCredentials,
  toListedUser,
  toSession,
  type UserRow,
  type UserRowWithHash,
} from '../users/user-rows.ts'
import type { CoreOperations } from './operations.ts'

// Constants: composing the text for each query, and hashing it to find the prepared statement, took a third of the query's time.
const userById = (...columns: readonly string[]): string => `${selectUser(...columns)} WHERE id = $1`
const USER_BY_ID = userById()
const USER_BY_EMAIL = `${selectUser('password_hash')} WHERE email = $1`
const ID_BY_EMAIL = 'SELECT id FROM users WHERE email = $1'
const KNOWN_NETWORK = 'SELECT digest FROM known_networks WHERE digest = $1 AND signed_in_at > $2'
const SESSIONS = `SELECT ${SESSION_COLUMNS.join(', ')} FROM sessions
  WHERE user_key = ${USER_KEY} AND expires_at > $2 AND last_request_at > $3
  ORDER BY created_at DESC, id DESC LIMIT $4`
const LAST_SIGN_INS = `SELECT method, max(created_at) AS at FROM sessions
  WHERE user_key = ${USER_KEY} AND method IS NOT NULL GROUP BY method`
const EMAIL_TOKEN = `${selectEmailToken} WHERE digest = $1 AND expires_at > $2`

interface LastSignIn {
  readonly method: string
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** Sorts after every UUID, in every collation. */
const AFTER_EVERY_ID = 'g'

/** The reads of the core. Each group is a part of the store with its name. */
export const CORE_READS = {
  users: {
    /** @param signInTables for `User.featureMethods`. */
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
  },

  accounts: {},

  apiKeys: {},

  adminKeys: {},

  sessions: {
    /**
     * Whether the user has signed in from a network. An open session is not needed.
     * @param digest `networkDigest` of the user's id and the network.
     * @param since the earliest time of the sign-in.
     */
    isKnownNetwork: (digest: string, since: number): Query<boolean> =>
      query(
        { name: 'known-network', text: KNOWN_NETWORK, values: [digest, since] },
        (found: readonly unknown[]) => found.length > 0,
      ),

    /** When the newest session of a user was opened, of those that exist, by the method that opened it. */
    listLastSignIns: (userId: string): Query<readonly LastSignIn[]> =>
      query(
        { name: 'last-sign-ins', text: LAST_SIGN_INS, values: [userId] },
        (found: readonly LastSignIn[]) => found,
      ),

    /** The newest sessions of a user that have neither reached their absolute end nor been idle since `idleSince`, newest first. */
    list: (userId: string, now: number, idleSince: number, limit: number): Query<readonly Session[]> =>
      query(
        { name: 'sessions', text: SESSIONS, values: [userId, now, idleSince, limit] },
        (found: readonly SessionRow[]) => found.map(row => toSession(row, userId)),
      ),
  },

  emailTokens: {
    /** @returns `undefined` also for a token that is used or expired at `now`. */
    find: (digest: string, now: number): Query<EmailToken | undefined> =>
      query(
        { name: 'email-token', text: EMAIL_TOKEN, values: [digest, now] },
        ([token]: readonly EmailToken[]) => token,
      ),
  },

  events: {
    /** The position of an event; `undefined` if the log does not have it any more. */
    findPosition: (id: string): Query<LogPosition | undefined> =>
      query(
        { name: 'event-position', text: 'SELECT position, id FROM events WHERE id = $1', values: [id] },
        ([event]: readonly LogPosition[]) => event,
      ),

    /**
     * A position before the first event at or after an id; `undefined` if there is none. Events whose transactions overlapped became
     * visible in another order than that of their ids: a thousand are compared, so that none is left out.
     */
    findPositionBefore: (id: string): Query<LogPosition | undefined> =>
      query(
        {
          text: `SELECT min(position) AS first FROM
            (SELECT position FROM events WHERE id >= $1 ORDER BY id LIMIT 1000) AS later`,
          values: [id],
        },
        ([row]: readonly { readonly first: number | null }[]) =>
          row?.first == null ? undefined : { position: row.first - 1, id: AFTER_EVERY_ID },
      ),

    /** The number of events after a position. @param limit counts no further, because it takes time in proportion. */
    countAfter: ({ position, id }: LogPosition, limit: number): Query<number> =>
      query(
        {
          text: `SELECT count(*) AS count FROM
            (SELECT id FROM events WHERE (position, id) > ($1, $2) ORDER BY position, id LIMIT $3) AS later`,
          values: [position, id, limit],
        },
        ([row]: readonly { readonly count: number }[]) => Number(row?.count ?? 0),
      ),
  },

  cleanUp: {},
} satisfies Record<keyof CoreOperations, Record<string, Read>>

export type CoreReads = typeof CORE_READS
