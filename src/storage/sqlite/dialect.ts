import type { Dialect } from '../operations/dialect.ts'

/** Arrays are bound as JSON, see `parameters.ts`. */
export const SQLITE: Dialect = {
  forShare: '',
  forKeyShare: '',
  forNoKeyUpdate: '',
  forUpdate: '',
  forUpdateSkipLocked: '',
  lockUsersTable: '',
  isOneOf: (column, parameter) => `${column} IN (SELECT value FROM json_each(${parameter}))`,
}
