/** Rate limits that instances share, counted in the table `rate_limits`. */
import RateLimiterPostgres from 'rate-limiter-flexible/lib/RateLimiterPostgres.js'
import RLWrapperTimeouts from 'rate-limiter-flexible/lib/RLWrapperTimeouts.js'
import type { OpenRateLimit } from '../rate-limit.ts'
import { fromLimiter, memoryLimiter } from '../rate-limits.ts'
import type { Database, Statement } from './database.ts'

/** Milliseconds until a limit is counted in this process instead. Other statements wait longer for the database. */
const QUERY_TIMEOUT = 1_000

/** The part of a connection that the library uses. */
const client = (database: Database) => ({
  async query(statement: Statement) {
    const rows = await database.writeUncached(statement)
    return { rows, rowCount: rows.length }
  },
})

export const openRateLimit =
  (database: Database): OpenRateLimit =>
  options => {
    const { name, points, seconds, final = false } = options
    const shared = new RateLimiterPostgres({
      storeClient: client(database),
      storeType: 'client',
      tableName: 'rate_limits',
      tableCreated: true,
      clearExpiredByTimeout: false,
      keyPrefix: name,
      points,
      duration: seconds,
      // Otherwise every request of a flood would write the same row.
      inMemoryBlockOnConsumed: final ? points + 1 : 0,
    })
    return fromLimiter(
      new RLWrapperTimeouts({
        limiter: shared,
        timeoutMs: QUERY_TIMEOUT,
        insuranceLimiter: memoryLimiter(options),
      }),
    )
  }
