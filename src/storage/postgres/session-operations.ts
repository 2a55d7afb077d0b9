/** Writes of sessions, and the statements with which other changes of a user open and revoke sessions. */
import type { AuditEvent } from '../../audit-log/event.ts'
import type { Session } from '../../auth/session.ts'
import type { RevokeAllOptions } from '../../auth/session-store.ts'
import type { UserRefusal } from '../../users/user-store.ts'
import { refusalOf, type UserState } from '../refusals.ts'
import { EVENT_COLUMNS, SESSION_COLUMNS, sessionColumns } from '../rows.ts'
import { invalidates, refusedFor } from '../write.ts'
import type { Database, Statement } from './database.ts'
import { eventValues, record } from './event-operations.ts'
import { parameters, valuesOf } from './parameters.ts'
import { lockedColumns, lockUser } from './user-locks.ts'

/** Locks the user. A concurrent change that revokes the user's sessions is either committed before, or sees this session. */
const FIND = `SELECT key, ${lockedColumns(2)} FROM users WHERE id = $1 FOR SHARE`

const INSERT_FOUND = `INSERT INTO sessions (user_key, ${SESSION_COLUMNS.join(', ')})
    SELECT key, ${parameters(SESSION_COLUMNS, 3)} FROM found WHERE disabled = 0 AND verified`

const OPEN_SESSION = `WITH found AS (${FIND}), opened AS (${INSERT_FOUND}), recorded AS (
    INSERT INTO events (${EVENT_COLUMNS.join(', ')})
    SELECT ${parameters(EVENT_COLUMNS, 3 + SESSION_COLUMNS.length)} FROM found WHERE disabled = 0 AND verified
  )
  SELECT disabled, verified FROM found`

const values = (session: Session, verifiedHash: string | null) => [
  session.userId,
  verifiedHash,
  ...valuesOf(SESSION_COLUMNS, sessionColumns(session)),
]

/** Returns the {@link UserState}, if the user exists. */
const openSessionStatement = (
  session: Session,
  verifiedHash: string | null,
  event: AuditEvent,
): Statement => ({
  name: 'open-session',
  text: OPEN_SESSION,
  values: [...values(session, verifiedHash), ...eventValues(event)],
})

/** Opens a session as part of a change with an event of its own. */
export const addSessionStatement = (session: Session): Statement => ({
  name: 'add-session',
  text: `WITH found AS (${FIND}) ${INSERT_FOUND}`,
  values: values(session, null),
})

/** Locks the user first, like every write that revokes sessions. Returns the {@link UserState}, and whether the session existed. */
const REVOKE_SESSION = `WITH found AS (SELECT key, disabled FROM users WHERE id = $1 FOR SHARE), revoked AS (
    DELETE FROM sessions USING found WHERE id = $2 AND user_key = found.key AND disabled = 0 RETURNING id
  )
  SELECT disabled, true AS verified, EXISTS (SELECT FROM revoked) AS revoked FROM found`

/** Locks sessions in the order in which their last requests are written, so that the two cannot deadlock. */
export const REVOKE_SESSIONS = `WITH revoked AS (
    SELECT id FROM sessions WHERE user_key = (SELECT key FROM users WHERE id = $1) AND id IS DISTINCT FROM $2::text
    ORDER BY id FOR UPDATE
  )
  DELETE FROM sessions USING revoked WHERE sessions.id = revoked.id`

export const sessionOperations = (database: Database) => ({
  async openSession(
    session: Session,
    verifiedHash: string | null,
    event: AuditEvent,
  ): Promise<'opened' | UserRefusal> {
    const [user] = await database.writeUncached<UserState>(openSessionStatement(session, verifiedHash, event))
    return refusalOf(user, { onlyEnabled: true }) ?? 'opened'
  },

  async revokeSession(id: string, event: AuditEvent): Promise<'revoked' | 'sessionNotFound' | UserRefusal> {
    return database.transaction<'revoked' | 'sessionNotFound' | UserRefusal>(async run => {
      const statement = { text: REVOKE_SESSION, values: [event.userId, id] }
      const [user] = await run<UserState & { revoked: boolean }>(statement)
      const refused = refusalOf(user, { onlyEnabled: true })
      if (refused !== null) return refusedFor(event.userId, refused)
      if (!user?.revoked) return refusedFor(event.userId, 'sessionNotFound')
      await run(record(event))
      return invalidates(event.userId, 'revoked')
    })
  },

  async revokeSessions(
    event: AuditEvent,
    { exceptId, onlyEnabled }: RevokeAllOptions,
  ): Promise<'revoked' | UserRefusal> {
    return database.transaction<'revoked' | UserRefusal>(async run => {
      // Opening a session takes this lock too: a session is either open by now, or opened after this transaction.
      const refused = refusalOf(await lockUser(run, event.userId), { onlyEnabled })
      if (refused !== null) return refusedFor(event.userId, refused)
      await run({ text: REVOKE_SESSIONS, values: [event.userId, exceptId] })
      await run(record(event))
      return invalidates(event.userId, 'revoked')
    })
  },
})
