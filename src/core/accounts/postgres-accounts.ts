/** The statements that add users on PostgreSQL: a sign-up is one statement, an import one of many users. */

import { ServiceError } from '#base/errors'
import { UNIQUE_VIOLATION } from '#storage/operations/operation'
import { parameters, valuesOf } from '#storage/operations/parameters'
import type { Database, Statement } from '#storage/postgres/database'
import { arrays, arraysOf } from '#storage/postgres/parameters'
import { type OwnedTable, quoted } from '#storage/stored-feature'
import type { AuditEvent } from '../audit-log/event.ts'
import { EVENT_COLUMNS, eventColumns } from '../audit-log/event-rows.ts'
import { eventValues } from '../audit-log/stored-events.ts'
import { SESSION_COLUMNS, sessionColumns } from '../auth/session-rows.ts'
import type { Imported, ImportedRow } from '../store/store.ts'
import { insertOwned, type OwnedRow, uniquesOfNewUser } from '../users/owned-rows.ts'
import type { NewUser, UserWithHash } from '../users/user.ts'
import { factorsColumn, USER_COLUMNS, userColumns } from '../users/user-rows.ts'
import { EMAIL_TOKEN_COLUMNS, emailTokenColumns } from './email-token-rows.ts'
import { type AccountExtras, assertOwnSession } from './stored-accounts.ts'

const SESSION = 1 + USER_COLUMNS.length
const TOKEN = SESSION + SESSION_COLUMNS.length
const EVENT = TOKEN + EMAIL_TOKEN_COLUMNS.length

const ADD_USER = `WITH added AS (
    INSERT INTO users (${USER_COLUMNS.join(', ')}) VALUES (${parameters(USER_COLUMNS, 1)})
    ON CONFLICT (email) DO NOTHING
    RETURNING key
  ), opened AS (
    INSERT INTO sessions (user_key, ${SESSION_COLUMNS.join(', ')})
    SELECT key, ${parameters(SESSION_COLUMNS, SESSION)} FROM added WHERE $${SESSION}::text IS NOT NULL
  ), mailed AS (
    INSERT INTO email_tokens (user_key, ${EMAIL_TOKEN_COLUMNS.join(', ')})
    SELECT key, ${parameters(EMAIL_TOKEN_COLUMNS, TOKEN)} FROM added WHERE $${TOKEN}::text IS NOT NULL
  ), recorded AS (
    INSERT INTO events (${EVENT_COLUMNS.join(', ')}) SELECT ${parameters(EVENT_COLUMNS, EVENT)} FROM added
  )
  SELECT key FROM added`

const addUserStatement = (
  user: NewUser,
  event: AuditEvent,
  { session, emailToken }: AccountExtras,
): Statement => ({
  name: 'add-user',
  text: ADD_USER,
  values: [
    ...valuesOf(USER_COLUMNS, userColumns(user)),
    ...valuesOf(SESSION_COLUMNS, session && sessionColumns(session)),
    ...valuesOf(EMAIL_TOKEN_COLUMNS, emailToken && emailTokenColumns(emailToken)),
    ...eventValues(event),
  ],
})

/** For load tests: `$1` are the rows of users as JSON. */
export const SEED_USERS = `INSERT INTO users (${USER_COLUMNS.join(', ')})
  SELECT ${USER_COLUMNS.join(', ')} FROM json_populate_recordset(NULL::users, $1) ON CONFLICT (email) DO NOTHING`

const GIVEN_COLUMNS = [...USER_COLUMNS, 'factors', 'last_request_at'] as const

const columns = [...USER_COLUMNS, 'factors'].join(', ')

/** Inserts in the order of e-mails, so that two instances that import the same users cannot deadlock. `lines` has the first line of each user. */
const IMPORT = `WITH given AS (
    SELECT * FROM unnest(${arrays(GIVEN_COLUMNS, 1)})
      WITH ORDINALITY AS given (${GIVEN_COLUMNS.join(', ')}, line)
  ), added AS (
    INSERT INTO users (${columns}) SELECT ${columns} FROM given ORDER BY email COLLATE "C", line
    ON CONFLICT DO NOTHING RETURNING key, id, email
  ), lines AS (
    SELECT DISTINCT ON (key) key, line, last_request_at FROM added JOIN given USING (id, email) ORDER BY key, line
  ), requested AS (
    INSERT INTO last_requests (user_key, at)
    SELECT key, last_request_at FROM lines WHERE last_request_at IS NOT NULL
  ), recorded AS (
    INSERT INTO events (${EVENT_COLUMNS.join(', ')})
    SELECT ${EVENT_COLUMNS.map(column => `event.${column}`).join(', ')}
    FROM unnest(${arrays(EVENT_COLUMNS, GIVEN_COLUMNS.length + 1)})
      WITH ORDINALITY AS event (${EVENT_COLUMNS.join(', ')}, line) JOIN lines USING (line)
  )`

const RETURN_ADDED = 'SELECT id, email FROM added'

const PARAMETERS = GIVEN_COLUMNS.length + EVENT_COLUMNS.length

const byForm = (rows: readonly ImportedRow[]): ImportedRow[][] => [
  ...Map.groupBy(rows, ({ table, values }) => JSON.stringify([table, ...Object.keys(values)])).values(),
]

/**
 * Adds rows of features, which are a JSON parameter: the server converts values to the types of the columns. In the order of the unique
 * columns, after all users, so that two instances do not deadlock.
 */
const addRows = (tables: readonly OwnedTable[], { table, values }: OwnedRow, parameter: number): string => {
  const names = Object.keys(values)
  const sorted = uniquesOfNewUser(tables, table).flat()
  const order =
    sorted.length === 0 ? '' : `ORDER BY ${sorted.map(column => `record.${quoted(column)}`).join(', ')}`
  return `, rows_${parameter} AS (
    ${insertOwned(tables, table, names)}
    SELECT ${['lines.key', ...names.map(name => `record.${quoted(name)}`)].join(', ')}
    FROM json_array_elements($${parameter}::json) AS each (item)
      JOIN lines ON lines.line = (item ->> 'line')::bigint
      CROSS JOIN LATERAL json_populate_record(NULL::${quoted(table)}, item -> 'values') AS record
    ${order}
  )`
}

/** Whether another row has the values of a `record` in these columns. */
const existsWith = (table: string, columns: readonly string[]): string => {
  const equal = columns.map(column => `other.${quoted(column)} = record.${quoted(column)}`)
  return `EXISTS (SELECT FROM ${quoted(table)} AS other WHERE ${equal.join(' AND ')})`
}

const FIND = 'SELECT id, email FROM users WHERE email = ANY($1::text[]) OR id = ANY($2::text[])'

/** Attempts of an import whose conflicting user or row is removed in between. */
const ATTEMPTS = 3

const importStatement = (
  tables: readonly OwnedTable[],
  users: readonly UserWithHash[],
  events: readonly AuditEvent[],
  rows: readonly ImportedRow[],
): Statement => {
  const forms = byForm(rows)
  const parts = forms.map(([row], index) => addRows(tables, row as OwnedRow, PARAMETERS + index + 1))
  return {
    // Prepared without rows of features only: with them, it has many texts.
    ...(parts.length === 0 && { name: 'import' }),
    text: [IMPORT, ...parts, RETURN_ADDED].join('\n  '),
    values: [
      ...arraysOf(
        GIVEN_COLUMNS,
        users.map(user => ({
          ...userColumns(user),
          factors: factorsColumn(user.factors),
          last_request_at: user.lastRequestAt,
        })),
      ),
      ...arraysOf(EVENT_COLUMNS, events.map(eventColumns)),
      ...forms.map(form => JSON.stringify(form.map(({ user, values }) => ({ line: user + 1, values })))),
    ],
  }
}

interface UserIds {
  readonly id: string
  readonly email: string
}

const idsByEmail = (rows: readonly UserIds[]): Map<string, string> =>
  new Map(rows.map(({ id, email }) => [email, id]))

const isUniqueViolation = (error: unknown): boolean =>
  error instanceof ServiceError && (error.cause as { code?: unknown } | undefined)?.code === UNIQUE_VIOLATION

interface Batch {
  readonly users: readonly UserWithHash[]
  readonly events: readonly AuditEvent[]
  readonly rows: readonly ImportedRow[]
}

const part = ({ users, events, rows }: Batch, indexes: readonly number[]): Batch => ({
  users: indexes.map(index => users[index] as UserWithHash),
  events: indexes.map(index => events[index] as AuditEvent),
  rows: rows.flatMap(row => {
    const user = indexes.indexOf(row.user)
    return user === -1 ? [] : [{ ...row, user }]
  }),
})

export const accountStatements = (database: Database, tables: readonly OwnedTable[]) => {
  /** @returns the indexes of the rows with unique values that other rows have. */
  const takenRows = async (rows: readonly ImportedRow[]): Promise<readonly number[]> => {
    const taken: number[] = []
    const numbered = rows.map((row, index) => ({ ...row, index }))
    for (const [table, ofTable] of Map.groupBy(numbered, row => row.table)) {
      const uniques = uniquesOfNewUser(tables, table)
      if (uniques.length === 0) continue
      const found = await database.read<{ index: number }>({
        text: `SELECT (item ->> 'index')::int AS index FROM json_array_elements($1::json) AS each (item)
            CROSS JOIN LATERAL json_populate_record(NULL::${quoted(table)}, item -> 'values') AS record
          WHERE ${uniques.map(columns => existsWith(table, columns)).join(' OR ')}`,
        values: [JSON.stringify(ofTable.map(({ index, values }) => ({ index, values })))],
      })
      taken.push(...found.map(({ index }) => index))
    }
    return taken.toSorted((one, other) => one - other)
  }

  /** @returns `null` for a user whose conflicting user or row no longer exists. */
  const attempt = async (batch: Batch): Promise<readonly (Imported | null)[]> => {
    try {
      return await attemptTogether(batch)
    } catch (error) {
      if (!isUniqueViolation(error)) throw error
    }
    // Nothing was stored. Alone, each user whose rows do not conflict can be added.
    const outcomes: (Imported | null)[] = []
    for (const index of batch.users.keys()) outcomes.push(await attemptAlone(part(batch, [index])))
    return outcomes
  }

  const attemptAlone = async (batch: Batch): Promise<Imported | null> => {
    try {
      const [outcome] = await attemptTogether(batch)
      return outcome ?? null
    } catch (error) {
      if (!isUniqueViolation(error)) throw error
    }
    const rows = await takenRows(batch.rows)
    return rows.length === 0 ? null : { status: 'rowsTaken', rows }
  }

  /** @returns `null` for a user whose conflicting user no longer exists. @throws {ServiceError} if the value of a row is taken. */
  const attemptTogether = async ({ users, events, rows: rowsOfUsers }: Batch) => {
    const statement = importStatement(tables, users, events, rowsOfUsers)
    const added = idsByEmail(await database.writeUncached<UserIds>(statement))
    if (added.size === users.length) return users.map(() => ({ status: 'created' as const }))
    // A separate statement: it sees users that another transaction was adding when the first one conflicted with them.
    const others = users.filter(({ email }) => !added.has(email))
    const values = [others.map(({ email }) => email), others.map(({ id }) => id)]
    const rows = await database.read<UserIds>({ name: 'import-found', text: FIND, values })
    const found = idsByEmail(rows)
    const ids = new Set([...rows.map(({ id }) => id), ...added.values()])
    return users.map(({ id, email }): Imported | null => {
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
    async addUser(user: NewUser, event: AuditEvent, extras: AccountExtras): Promise<boolean> {
      assertOwnSession(user, extras)
      return (await database.writeUncached(addUserStatement(user, event, extras))).length === 1
    },

    async importUsers(
      users: readonly UserWithHash[],
      events: readonly AuditEvent[],
      rows: readonly ImportedRow[],
    ): Promise<readonly Imported[]> {
      const batch = { users, events, rows }
      const outcomes = [...(await attempt(batch))]
      for (let attempts = 1; attempts < ATTEMPTS; attempts += 1) {
        // The conflicting users or rows have been removed since.
        const remaining = users.flatMap((_, index) => (outcomes[index] === null ? [index] : []))
        if (remaining.length === 0) break
        const again = await attempt(part(batch, remaining))
        for (const [position, index] of remaining.entries()) outcomes[index] = again[position] ?? null
      }
      return outcomes.map(outcome => {
        if (outcome === null) throw new ServiceError('overloaded')
        return outcome
      })
    },
  }
}
