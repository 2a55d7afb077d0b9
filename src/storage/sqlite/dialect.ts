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
  lockByName: () => '',
  isOneOf: (column, parameter) => `${column} IN (SELECT value FROM json_each(${parameter}))`,
  jsonRows(parameter, columns) {
    const values = Object.keys(columns).map(name => `value ->> '${name}' AS ${name}`)
    return `(SELECT ${values.join(', ')} FROM json_each(${parameter})) AS records`
  },
}
