/** Parameters of statements. */

/** A parameter for each column, in their order. */
export const parameters = (columns: readonly string[]): string => columns.map(() => '?').join(', ')

const bindingOf = (value: unknown): unknown => {
  if (typeof value === 'boolean') return Number(value)
  if (Array.isArray(value)) return JSON.stringify(value)
  return value ?? null
}

/** The values of `$1`, `$2`, …: SQLite takes them for parameters with the names `1`, `2`, …. Arrays become JSON, see `SQLITE`. */
export const bindingsOf = (values: readonly unknown[]): Readonly<Record<number, unknown>> => {
  const bindings: Record<number, unknown> = {}
  for (const [index, value] of values.entries()) bindings[index + 1] = bindingOf(value)
  return bindings
}
