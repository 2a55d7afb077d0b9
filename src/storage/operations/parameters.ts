/** Numbered parameters for lists of columns: those of a list are consecutive from `first` on. */

/** A parameter for each column, for `VALUES` and `SELECT`. */
export const parameters = (columns: readonly string[], first: number): string =>
  columns.map((_, index) => `$${first + index}`).join(', ')

/** The values of {@link parameters}; all undefined without a row. */
export const valuesOf = <Column extends string>(
  columns: readonly Column[],
  row: Readonly<Record<Column, unknown>> | undefined,
): readonly unknown[] => columns.map(column => row?.[column])
