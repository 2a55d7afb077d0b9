import type { Dialect } from '../operations/dialect.ts'

/** Arrays are bound as JSON, see `parameters.ts`. */
export const SQLITE: Dialect = {
  forShare: '',
  forKeyShare: '',
  forNoKeyUpdate: '',
  forUpdate: '',
  forUpdateSkipLocked: '',
  lockUsersTable: '',
  inTurn: () => 'TRUE',
  inSharedTurn: () => 'TRUE',
  isOneOf: (column, parameter) => `${column} IN (SELECT value FROM json_each(${parameter}))`,
}
