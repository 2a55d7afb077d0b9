/** Statements know their parameters by numbers: those of some columns follow each other, from `first` on. */

const NUMBERS: ReadonlySet<string> = new Set([
  'email_verified',
  'disabled',
  'version',
  'created_at',
  'updated_at',
  'expires_at',
  'last_request_at',
  'at',
])

/** A column's type where nothing but the statement tells it. */
export const typeOf = (column: string): string => (NUMBERS.has(column) ? 'bigint' : 'text')

/** A parameter for each column, as `INSERT` lists them. */
export const parameters = (columns: readonly string[], first: number): string =>
  columns.map((_, index) => `$${first + index}`).join(', ')

/** An array for each column, as `unnest` takes them. */
export const arrays = (columns: readonly string[], first: number): string =>
  columns.map((column, index) => `$${first + index}::${typeOf(column)}[]`).join(', ')

/** The values of {@link parameters}: of no row, none of them given. */
export const valuesOf = <Column extends string>(
  columns: readonly Column[],
  row: Readonly<Record<Column, unknown>> | undefined,
): readonly unknown[] => columns.map(column => row?.[column])

/** The values of {@link arrays}. */
export const arraysOf = <Column extends string>(
  columns: readonly Column[],
  rows: readonly Readonly<Record<Column, unknown>>[],
): readonly unknown[][] => columns.map(column => rows.map(row => row[column]))
