/** Writes the timestamps of last requests, in one batch a second. */
import type { CredentialLastRequest } from '../../auth/last-requests.ts'
import { invalidatesNothing, type Write } from '../operations/write.ts'
import type { Connection } from './database.ts'

export const prepareLastRequestOperations = (db: Connection) => {
  const raiseUserTimestamp = db.prepare('UPDATE last_requests SET at = max(at, ?) WHERE user_key = ?')
  const insertUserTimestamp = db.prepare(
    'INSERT INTO last_requests (user_key, at) SELECT key, ? FROM users WHERE key = ?',
  )
  const raiseSessionTimestamp = db.prepare(
    'UPDATE sessions SET last_request_at = max(last_request_at, @at) WHERE id = @id',
  )

  return {
    /** @param users pairs of key and timestamp (milliseconds since the epoch), flattened. */
    noteLastRequests(users: Float64Array, sessions: readonly CredentialLastRequest[]): Write<void> {
      for (let index = 0; index < users.length; index += 2) {
        const [key, at] = [users[index], users[index + 1]]
        if (raiseUserTimestamp.run(at, key).changes === 0) insertUserTimestamp.run(at, key)
      }
      for (const session of sessions) raiseSessionTimestamp.run(session)
      return invalidatesNothing(undefined)
    },
  }
}
