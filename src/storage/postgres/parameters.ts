/** Numbered parameters for lists of columns: those of a list are consecutive from `first` on. */

/** All other columns are text. */
const NUMERIC_COLUMNS: ReadonlySet<string> = new Set([
  'email_verified',
  'disabled',
  'version',
  'created_at',
  'updated_at',
  'expires_at',
  'last_request_at',
  'at',
])

/** The type of a column, for statements that must state it. */
export const typeOf = (column: string): string => (NUMERIC_COLUMNS.has(column) ? 'bigint' : 'text')

/** A parameter for each column, for `VALUES` and `SELECT`. */
export const parameters = (columns: readonly string[], first: number): string =>
  columns.map((_, index) => `$${first + index}`).join(', ')

/** An array for each column, for `unnest`. */
export const arrays = (columns: readonly string[], first: number): string =>
  columns.map((column, index) => `$${first + index}::${typeOf(column)}[]`).join(', ')

/** The values of {@link parameters}; all undefined without a row. */
export const valuesOf = <Column extends string>(
  columns: readonly Column[],
  row: Readonly<Record<Column, unknown>> | undefined,
): readonly unknown[] => columns.map(column => row?.[column])

/** The values of {@link arrays}. */
export const arraysOf = <Column extends string>(
  columns: readonly Column[],
  rows: readonly Readonly<Record<Column, unknown>>[],
): readonly unknown[][] => columns.map(column => rows.map(row => row[column]))
