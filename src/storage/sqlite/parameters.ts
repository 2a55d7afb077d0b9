/** Named parameters for lists of columns. */

/** The parameters of an `INSERT`, each named after its column. */
export const parameters = (columns: readonly string[]): string =>
  columns.map(column => `@${column}`).join(', ')
