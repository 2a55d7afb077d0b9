/** Last requests, a batch a second. */
import type { SessionLastRequest } from '../../auth/last-requests.ts'
import { invalidatesNothing, type Write } from '../write.ts'
import type { Connection } from './database.ts'

export const prepareLastRequestOperations = (db: Connection) => {
  const raiseUser = db.prepare('UPDATE last_requests SET at = max(at, ?) WHERE user_key = ?')
  const noteFirst = db.prepare(
    'INSERT INTO last_requests (user_key, at) SELECT key, ? FROM users WHERE key = ?',
  )
  const raiseSession = db.prepare(
    'UPDATE sessions SET last_request_at = max(last_request_at, @at) WHERE id = @id',
  )

  return {
    /** @param users key and timestamp in turn. */
    noteLastRequests(users: Float64Array, sessions: readonly SessionLastRequest[]): Write<void> {
      for (let index = 0; index < users.length; index += 2) {
        const [key, at] = [users[index], users[index + 1]]
        if (raiseUser.run(at, key).changes === 0) noteFirst.run(at, key)
      }
      for (const moment of sessions) raiseSession.run(moment)
      return invalidatesNothing(undefined)
    },
  }
}
