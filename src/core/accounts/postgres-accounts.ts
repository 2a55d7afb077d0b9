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
import { type AccountExtras, assertOwnSession } from './stored-accounts.ts'
import { EMAIL_TOKEN_COLUMNS, emailTokenColumns } from './stored-email-tokens.ts'

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

/** For an import that the value of a row violates. Nothing was stored. */
const noneIfTaken = (error: unknown): readonly null[] => {
  const cause = error instanceof ServiceError ? (error.cause as { code?: unknown } | undefined) : undefined
  if (cause?.code === UNIQUE_VIOLATION) return []
  throw error
}

export const accountStatements = (database: Database, tables: readonly OwnedTable[]) => {
  /** @returns the indexes of the rows with unique values that other rows have. */
  const takenRows = async (rows: readonly ImportedRow[]): Promise<readonly number[]> => {
    const taken: number[] = []
    for (const [index, { table, values }] of rows.entries()) {
      const conflicts = uniquesOfNewUser(tables, table).map(columns => existsWith(table, columns))
      if (conflicts.length === 0) continue
      const found = await database.read({
        text: `SELECT 1 FROM json_populate_record(NULL::${quoted(table)}, $1::json) AS record WHERE ${conflicts.join(' OR ')}`,
        values: [JSON.stringify(values)],
      })
      if (found.length > 0) taken.push(index)
    }
    return taken
  }

  /** @returns `null` for a user whose conflicting user no longer exists. @throws {ServiceError} if the value of a row is taken. */
  const importTogether = async (
    users: readonly UserWithHash[],
    events: readonly AuditEvent[],
    rowsOfUsers: readonly ImportedRow[],
  ) => {
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

  const importAlone = async (
    user: UserWithHash,
    event: AuditEvent,
    rows: readonly ImportedRow[],
  ): Promise<Imported> => {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const [outcome] = await importTogether([user], [event], rows).catch(noneIfTaken)
      if (outcome) return outcome
      const taken = await takenRows(rows)
      if (taken.length > 0) return { status: 'rowsTaken', rows: taken }
    }
    throw new ServiceError('overloaded')
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
      // Nothing is stored if the value of a row is taken. Alone, each user whose rows do not conflict can be added.
      const outcomes = await importTogether(users, events, rows).catch(noneIfTaken)
      const imported: Imported[] = []
      for (const [index, user] of users.entries()) {
        const own = rows.flatMap(row => (row.user === index ? [{ ...row, user: 0 }] : []))
        imported.push(outcomes[index] ?? (await importAlone(user, events[index] as AuditEvent, own)))
      }
      return imported
    },
  }
}
