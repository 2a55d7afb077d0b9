/** Parameters for many rows: an array for each column. They are numbered consecutively from `first` on. */

/** All other columns are text. */
const NUMERIC_COLUMNS: ReadonlySet<string> = new Set([
  'email_verified',
  'disabled',
  'version',
  'created_at',
  'updated_at',
  'expires_at',
  'last_request_at',
  'authenticated_at',
  'at',
])

/** The type of a column, for statements that must state it. */
export const typeOf = (column: string): string => (NUMERIC_COLUMNS.has(column) ? 'bigint' : 'text')

/** An array for each column, for `unnest`. */
export const arrays = (columns: readonly string[], first: number): string =>
  columns.map((column, index) => `$${first + index}::${typeOf(column)}[]`).join(', ')

/** The values of {@link arrays}. */
export const arraysOf = <Column extends string>(
  columns: readonly Column[],
  rows: readonly Readonly<Record<Column, unknown>>[],
): readonly unknown[][] => columns.map(column => rows.map(row => row[column]))
