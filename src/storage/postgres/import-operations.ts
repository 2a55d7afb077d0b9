/** Imports many users with one statement. */
import type { Imported } from '../../accounts/bulk-user-store.ts'
import type { AuditEvent } from '../../audit-log/event.ts'
import { ServiceError } from '../../errors.ts'
import type { UserWithHash } from '../../users/user.ts'
import { EVENT_COLUMNS, eventColumns, USER_COLUMNS, userColumns } from '../rows.ts'
import type { Database, Statement } from './database.ts'
import { arrays, arraysOf } from './parameters.ts'

const GIVEN_COLUMNS = [...USER_COLUMNS, 'last_request_at'] as const

const columns = USER_COLUMNS.join(', ')

/** Inserts in the order of e-mails, so that two instances that import the same users cannot deadlock. */
const IMPORT = `WITH given AS (
    SELECT * FROM unnest(${arrays(GIVEN_COLUMNS, 1)})
      WITH ORDINALITY AS given (${GIVEN_COLUMNS.join(', ')}, line)
  ), added AS (
    INSERT INTO users (${columns}) SELECT ${columns} FROM given ORDER BY email COLLATE "C", line
    ON CONFLICT DO NOTHING RETURNING key, id, email
  ), requested AS (
    INSERT INTO last_requests (user_key, at)
    SELECT DISTINCT ON (key) key, last_request_at FROM added JOIN given USING (id, email)
    WHERE last_request_at IS NOT NULL ORDER BY key, line
  ), recorded AS (
    INSERT INTO events (${EVENT_COLUMNS.join(', ')})
    SELECT event.* FROM unnest(${arrays(EVENT_COLUMNS, GIVEN_COLUMNS.length + 1)})
      AS event (${EVENT_COLUMNS.join(', ')}) JOIN added ON added.id = event.user_id
  )
  SELECT id, email FROM added`

const FIND = 'SELECT id, email FROM users WHERE email = ANY($1::text[]) OR id = ANY($2::text[])'

/** How often an import is attempted if the conflicting user is removed in between. */
const ATTEMPTS = 3

const importStatement = (users: readonly UserWithHash[], events: readonly AuditEvent[]): Statement => ({
  name: 'import',
  text: IMPORT,
  values: [
    ...arraysOf(
      GIVEN_COLUMNS,
      users.map(user => ({ ...userColumns(user), last_request_at: user.lastRequestAt })),
    ),
    ...arraysOf(EVENT_COLUMNS, events.map(eventColumns)),
  ],
})

interface UserIds {
  readonly id: string
  readonly email: string
}

const idsByEmail = (rows: readonly UserIds[]): Map<string, string> =>
  new Map(rows.map(({ id, email }) => [email, id]))

export const importOperations = (database: Database) => {
  /** @returns `null` for a user whose conflicting user no longer exists. */
  const attempt = async (
    users: readonly UserWithHash[],
    events: readonly AuditEvent[],
  ): Promise<readonly (Imported | null)[]> => {
    const added = idsByEmail(await database.writeUncached<UserIds>(importStatement(users, events)))
    if (added.size === users.length) return users.map(() => ({ status: 'created' }))
    // A separate statement: it sees users that another transaction was adding when the first one conflicted with them.
    const others = users.filter(({ email }) => !added.has(email))
    const values = [others.map(({ email }) => email), others.map(({ id }) => id)]
    const rows = await database.read<UserIds>({ name: 'import-found', text: FIND, values })
    const found = idsByEmail(rows)
    const ids = new Set([...rows.map(({ id }) => id), ...added.values()])
    return users.map(({ id, email }) => {
      if (added.get(email) === id) {
        // If the same user occurs twice, the second one exists already.
        added.delete(email)
        found.set(email, id)
        return { status: 'created' }
      }
      const existing = added.get(email) ?? found.get(email)
      if (existing !== undefined) return { status: 'exists', id: existing }
      return ids.has(id) ? { status: 'idTaken' } : null
    })
  }

  return {
    async importUsers(
      users: readonly UserWithHash[],
      events: readonly AuditEvent[],
    ): Promise<readonly Imported[]> {
      const outcomes = [...(await attempt(users, events))]
      for (let attempts = 1; attempts < ATTEMPTS; attempts += 1) {
        // The conflicting users have been removed since.
        const remaining = users.flatMap((_, index) => (outcomes[index] === null ? [index] : []))
        if (remaining.length === 0) break
        const again = await attempt(
          remaining.map(index => users[index] as UserWithHash),
          remaining.map(index => events[index] as AuditEvent),
        )
        for (const [position, index] of remaining.entries()) outcomes[index] = again[position] ?? null
      }
      return outcomes.map(outcome => {
        if (outcome === null) throw new ServiceError('overloaded')
        return outcome
      })
    },
  }
}
