import type { Dialect } from '../operations/dialect.ts'

const advisoryLock = (lock: string, parameter: string): string =>
  `SELECT ${lock}(hashtextextended(CAST(${parameter} AS text), 0))`

const turn = (lock: string, parameter: string): string => `(${advisoryLock(lock, parameter)}) IS NOT NULL`

export const POSTGRES: Dialect = {
  forShare: 'FOR SHARE',
  forKeyShare: 'FOR KEY SHARE',
  forNoKeyUpdate: 'FOR NO KEY UPDATE',
  forUpdate: 'FOR UPDATE',
  forUpdateSkipLocked: 'FOR UPDATE SKIP LOCKED',
  lockUsersTable: 'LOCK TABLE users IN ROW EXCLUSIVE MODE',
  inTurn: parameter => turn('pg_advisory_xact_lock', parameter),
  inSharedTurn: parameter => turn('pg_advisory_xact_lock_shared', parameter),
  lockByName: parameter => advisoryLock('pg_advisory_xact_lock', parameter),
  isOneOf: (column, parameter, type) => `${column} = ANY(CAST(${parameter} AS ${type}[]))`,
  jsonRows(parameter, columns) {
    const types = Object.entries(columns).map(([name, type]) => `${name} ${type}`)
    return `json_to_recordset(CAST(${parameter} AS json)) AS records (${types.join(', ')})`
  },
}
