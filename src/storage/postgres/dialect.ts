import type { Dialect } from '../operations/dialect.ts'

export const POSTGRES: Dialect = {
  forShare: 'FOR SHARE',
  forKeyShare: 'FOR KEY SHARE',
  forNoKeyUpdate: 'FOR NO KEY UPDATE',
  forUpdate: 'FOR UPDATE',
  forUpdateSkipLocked: 'FOR UPDATE SKIP LOCKED',
  lockUsersTable: 'LOCK TABLE users IN ROW EXCLUSIVE MODE',
  isOneOf: (column, parameter, type) => `${column} = ANY(CAST(${parameter} AS ${type}[]))`,
}
