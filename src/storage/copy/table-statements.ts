/**
 * The statements that copy sessions, e-mail tokens and the tables of features, from their declarations. The owner is passed as the id
 * of the user, because the target has keys of its own. In a table without owners, the id is `null`.
 */
import { quoted } from '#core/users/owned-rows'
import type { Statement } from '../postgres/database.ts'
import type { NamedTable, OwnedTable } from '../stored-feature.ts'

/** A column of the target. */
export interface ColumnType {
  readonly name: string
  /** Without a length: a cast to `varchar(10)` would cut values that an insertion refuses. */
  readonly type: string
}

export interface CopiedTable extends NamedTable {
  /** What the keys of its rows begin with in `copied_rows`. */
  readonly mark: string
  /** The columns of the source, with the types of the target. */
  readonly columns: readonly ColumnType[]
}

/**
 * A row of a table: the id of its owner, `null` in a table without owners, and the values of the columns of the table. An
 * integer is a `bigint`.
 */
export type SourceRow = readonly [
  userId: string | null,
  ...values: readonly (string | number | bigint | Buffer | null)[],
]

/** They are copied with their users. */
export const SESSIONS: OwnedTable = { name: 'sessions', owner: 'user_key', key: 'id' }
export const EMAIL_TOKENS: OwnedTable = { name: 'email_tokens', owner: 'user_key', key: 'digest' }

export const columnTypes = ({ name }: NamedTable): Statement => ({
  text: `SELECT attname AS name, format_type(atttypid, -1) AS type FROM pg_attribute
    WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped`,
  values: [quoted(name)],
})

/** The names of the given values, which cannot clash with columns of the table. `u` is the id of the owner. */
const given = (index: number): string => `given.c${index}`

const indexOf = ({ columns }: CopiedTable, column: string): number =>
  columns.findIndex(({ name }) => name === column)

const givenKey = (table: CopiedTable): string => given(indexOf(table, table.key))

const typeOf = ({ columns }: CopiedTable, column: string): string =>
  columns.find(({ name }) => name === column)?.type ?? 'text'

/** The given rows, with the users who own them. */
const givenRows = ({ columns, owner }: CopiedTable): string => {
  const arrays = ['$1::text[]', ...columns.map(({ type }, index) => `$${index + 2}::${type}[]`)]
  const names = ['u', ...columns.map((_, index) => `c${index}`)]
  return `unnest(${arrays.join(', ')}) AS given (${names.join(', ')})${owner === null ? '' : ' JOIN users ON users.id = given.u'}`
}

/** Whether the row of the target has the owner of the given row. */
const hasSameOwner = ({ owner }: CopiedTable): string =>
  owner === null ? 'TRUE' : `own.${quoted(owner)} = users.key`

/** An array for each column. */
const valuesOf = ({ columns }: CopiedTable, rows: readonly SourceRow[]): readonly unknown[][] =>
  ['u', ...columns].map((_, index) => rows.map(row => row[index]))

/** What a row is in the target: the owner is the key of the user there. */
const rowValues = ({ columns, owner }: CopiedTable): string[] =>
  columns.map(({ name }, index) => (name === owner ? 'users.key' : given(index)))

const wasCopied = ({ mark }: CopiedTable, key: string): string =>
  `EXISTS (SELECT 1 FROM copied_rows WHERE copied_rows.id = '${mark}' || ${key}::text)`

/** Adds rows that were never copied. One that was copied and does not exist any more was deleted in the target. */
export const addRows = (table: CopiedTable, rows: readonly SourceRow[]): Statement => ({
  text: `INSERT INTO ${quoted(table.name)} (${table.columns.map(({ name }) => quoted(name)).join(', ')})
    SELECT ${rowValues(table).join(', ')} FROM ${givenRows(table)}
    WHERE NOT EXISTS (SELECT 1 FROM ${quoted(table.name)} AS own WHERE own.${quoted(table.key)} = ${givenKey(table)})
      AND NOT ${wasCopied(table, givenKey(table))}
    ORDER BY ${givenKey(table)} ON CONFLICT DO NOTHING RETURNING 1`,
  values: valuesOf(table, rows),
})

/**
 * Overwrites rows that differ, unless the target's is newer; with equal values of `updatedAt` the source wins, as for users. A row
 * of another user is overwritten only if it was copied: it has changed its owner. Values are compared as text, because some types
 * (`json`) have no operator for equality. Locks rows in the order of their keys.
 */
export const changeRows = (table: CopiedTable, rows: readonly SourceRow[]): Statement => {
  const { name, key, updatedAt = key, columns } = table
  const values = rowValues(table)
  const compared = columns.map((column, index) => ({
    own: `own.${quoted(column.name)}::text`,
    value: `${values[index]}::text`,
  }))
  const selected = values.map((value, index) => `${value} AS c${index}`)
  return {
    text: `WITH differing AS (
      SELECT ${selected.join(', ')} FROM ${givenRows(table)}
      JOIN ${quoted(name)} AS own ON own.${quoted(key)} = ${givenKey(table)}
      WHERE (${hasSameOwner(table)} OR ${wasCopied(table, givenKey(table))})
        AND (own.${quoted(updatedAt)} > ${given(indexOf(table, updatedAt))}) IS NOT TRUE
        AND (${compared.map(({ own }) => own).join(', ')}) IS DISTINCT FROM (${compared.map(({ value }) => value).join(', ')})
      ORDER BY own.${quoted(key)} FOR UPDATE OF own
    )
    UPDATE ${quoted(name)} SET ${columns.map((column, index) => `${quoted(column.name)} = differing.c${index}`).join(', ')}
    FROM differing WHERE ${quoted(name)}.${quoted(key)} = differing.c${indexOf(table, key)} RETURNING 1`,
    values: valuesOf(table, rows),
  }
}

/** Records the rows that are in the target now. Checks for existing records first, so that they are not written. */
export const recordCopiedRows = (table: CopiedTable, rows: readonly SourceRow[]): Statement => ({
  text: `INSERT INTO copied_rows SELECT '${table.mark}' || ${givenKey(table)}::text FROM ${givenRows(table)}
    JOIN ${quoted(table.name)} AS own
      ON own.${quoted(table.key)} = ${givenKey(table)} AND ${hasSameOwner(table)}
    WHERE NOT ${wasCopied(table, givenKey(table))}`,
  values: valuesOf(table, rows),
})

/** Counts the rows that are not in the target although they never were: another row has their key or a unique value. */
export const countConflicts = (table: CopiedTable, rows: readonly SourceRow[]): Statement => ({
  text: `SELECT count(*) AS count FROM ${givenRows(table)} WHERE NOT ${wasCopied(table, givenKey(table))}`,
  values: valuesOf(table, rows),
})

/**
 * Selects the keys of rows that were copied, with the ids of their owners, in the order of keys.
 * @param after the last key of the previous slice; `null` for the first one.
 */
export const copiedKeys = (table: CopiedTable, after: string | null, size: number): Statement => {
  const key = `own.${quoted(table.key)}`
  const [userId, users] =
    table.owner === null
      ? ['NULL::text', '']
      : ['users.id', `JOIN users ON users.key = own.${quoted(table.owner)}`]
  return {
    text: `SELECT ${key}::text AS key, ${userId} AS "userId" FROM ${quoted(table.name)} AS own ${users}
      WHERE ($1::text IS NULL OR ${key} > CAST($1 AS ${typeOf(table, table.key)})) AND ${wasCopied(table, key)}
      ORDER BY ${key} LIMIT $2`,
    values: [after, size],
  }
}

/** Locks rows in the order of their keys. */
export const deleteRows = (table: CopiedTable, keys: readonly string[]): Statement => ({
  text: `WITH missing AS (
      SELECT ${quoted(table.key)} AS key FROM ${quoted(table.name)}
      WHERE ${quoted(table.key)} = ANY($1::${typeOf(table, table.key)}[]) ORDER BY ${quoted(table.key)} FOR UPDATE
    )
    DELETE FROM ${quoted(table.name)} WHERE ${quoted(table.key)} IN (SELECT key FROM missing)
    RETURNING ${quoted(table.key)}::text AS key`,
  values: [keys],
})

/** The values of a column. */
export const valuesIn = (table: CopiedTable, column: string, rows: readonly SourceRow[]): unknown[] =>
  rows.map(row => row[1 + indexOf(table, column)])

/** The values of a session's `amr` in both stores, in the order of the target. */
const COMMON_AMR = `(SELECT string_agg(value, ' ' ORDER BY place)
  FROM unnest(string_to_array(sessions.amr, ' ')) WITH ORDINALITY AS own (value, place)
  WHERE value = ANY(string_to_array(given.amr, ' ')))`

const AUTHENTICATED_AT = 'coalesce(sessions.authenticated_at, sessions.created_at)'
const GIVEN_AUTHENTICATED_AT = 'coalesce(given.authenticated_at, sessions.created_at)'

/**
 * Leaves sessions of the target no stronger than in the source: with what was proved in both stores, at the earlier time. What either store
 * has lowered stays so; a proof in one store only has to be repeated. Locks sessions in the order of ids, as instances do.
 * @returns the ids of the users.
 */
export const lowerSessions = (table: CopiedTable, rows: readonly SourceRow[]): Statement => ({
  name: 'copy-lower-sessions',
  text: `WITH stronger AS (
      SELECT given.* FROM unnest($1::text[], $2::text[], $3::bigint[]) AS given (id, amr, authenticated_at)
      JOIN sessions ON sessions.id = given.id
      WHERE sessions.amr IS DISTINCT FROM ${COMMON_AMR} OR ${AUTHENTICATED_AT} > ${GIVEN_AUTHENTICATED_AT}
      ORDER BY sessions.id FOR NO KEY UPDATE OF sessions
    ), lowered AS (
      UPDATE sessions SET amr = ${COMMON_AMR}, authenticated_at = least(${AUTHENTICATED_AT}, ${GIVEN_AUTHENTICATED_AT})
      FROM stronger AS given WHERE sessions.id = given.id RETURNING user_key
    )
    SELECT DISTINCT users.id FROM lowered JOIN users ON users.key = user_key`,
  values: ['id', 'amr', 'authenticated_at'].map(column => valuesIn(table, column, rows)),
})

/** Only updates: a session that an instance ends at the same time is not added again. */
export const raiseSessions = (table: CopiedTable, rows: readonly SourceRow[]): Statement => ({
  name: 'copy-raise-sessions',
  text: `UPDATE sessions SET last_request_at = given.at FROM unnest($1::text[], $2::bigint[]) AS given (id, at)
    WHERE sessions.id = given.id AND sessions.last_request_at < given.at RETURNING sessions.id`,
  values: [valuesIn(table, 'id', rows), valuesIn(table, 'last_request_at', rows)],
})

/**
 * Deletes rows of these users that the source does not have (any more). Locks rows in the order of keys, as instances do, to
 * prevent deadlocks.
 * @param scope `all`: also rows that were created in the target, as a disabling or a new password does; `copied`: only rows that
 * were copied.
 * @param inSource the keys of the rows that the source has.
 */
export const removeMissing = (
  table: CopiedTable & OwnedTable,
  scope: 'all' | 'copied',
  userIds: readonly string[],
  inSource: readonly unknown[],
): Statement => {
  const { name, owner } = table
  const key = `own.${quoted(table.key)}`
  return {
    name: `copy-remove-missing-${name}-${scope}`,
    text: `WITH missing AS (
      SELECT ${key} AS key, users.id AS user_id FROM ${quoted(name)} AS own JOIN users ON users.key = own.${quoted(owner)}
      WHERE users.id = ANY($1::text[])
        AND NOT EXISTS (SELECT 1 FROM unnest($2::text[]) AS given (key) WHERE given.key = ${key})
        ${scope === 'copied' ? `AND ${wasCopied(table, key)}` : ''}
      ORDER BY ${key} FOR UPDATE OF own
    )
    DELETE FROM ${quoted(name)} AS own USING missing WHERE ${key} = missing.key RETURNING missing.user_id AS id`,
    values: [userIds, inSource],
  }
}

/** Deletes the rows of users before their users: a table need not have `ON DELETE CASCADE`. */
export const deleteRowsOf = ({ name, owner }: OwnedTable, userKeys: readonly number[]): Statement => ({
  text: `DELETE FROM ${quoted(name)} WHERE ${quoted(owner)} = ANY($1::bigint[])`,
  values: [userKeys],
})
