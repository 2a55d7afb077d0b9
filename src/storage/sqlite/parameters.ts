/** A parameter of its own name for each column, as `INSERT` lists them. */
export const parameters = (columns: readonly string[]): string =>
  columns.map(column => `@${column}`).join(', ')
