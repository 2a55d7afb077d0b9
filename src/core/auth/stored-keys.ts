/** What authentication writes of API keys and admin keys. Their features have the other operations. */

import { firstRow, rows, type Statement, type Steps } from '#storage/operations/operation'
import { endsAccess, invalidatesNothing, type Write } from '#storage/operations/write'
import { impersonatorOfAdministrator } from './admin-key.ts'
import type { CredentialLastRequest } from './last-requests.ts'

/** Never lowers a timestamp. Locks keys in one order, so that two instances cannot deadlock. */
const recordRequestsOf = (
  table: 'api_keys' | 'admin_keys',
  requests: readonly CredentialLastRequest[],
): Statement => ({
  text: ({ jsonRows, forNoKeyUpdate }) => `WITH given AS (
      SELECT id, at FROM ${jsonRows('$1', { id: 'text', at: 'bigint' })}
    ), locked AS (
      SELECT id FROM ${table} WHERE id IN (SELECT id FROM given) ORDER BY id ${forNoKeyUpdate}
    )
    UPDATE ${table} SET last_used_at = given.at FROM given
    WHERE ${table}.id = given.id AND ${table}.id IN (SELECT id FROM locked) AND last_used_at < given.at`,
  values: [JSON.stringify(requests)],
})

/**
 * Ends the impersonated sessions that an admin key has opened, in the order in which instances write them, to prevent deadlocks.
 * @returns the ids of their users.
 */
export function* endImpersonatedSessions(keyId: string): Steps<readonly string[]> {
  const ended = yield* rows<{ user_key: number }>({
    text: ({ forUpdate }) => `WITH opened AS (
        SELECT id FROM sessions WHERE impersonated_by = $1 ORDER BY id ${forUpdate}
      )
      DELETE FROM sessions WHERE id IN (SELECT id FROM opened) RETURNING user_key`,
    values: [keyId],
  })
  if (ended.length === 0) return []
  const users = yield* rows<{ id: string }>({
    text: ({ isOneOf }) => `SELECT id FROM users WHERE ${isOneOf('key', '$1', 'bigint')}`,
    values: [[...new Set(ended.map(session => session.user_key))]],
  })
  return users.map(user => user.id)
}

/** Ends the impersonated sessions that a user has opened as an administrator. @returns the ids of their users. */
export const endImpersonationsBy = (userId: string): Steps<readonly string[]> =>
  endImpersonatedSessions(impersonatorOfAdministrator(userId))

export const apiKeyOperations = {
  *recordRequests(requests: readonly CredentialLastRequest[]): Steps<Write<void>> {
    yield recordRequestsOf('api_keys', requests)
    return invalidatesNothing(undefined)
  },
}

export const adminKeyOperations = {
  *recordRequests(requests: readonly CredentialLastRequest[]): Steps<Write<void>> {
    yield recordRequestsOf('admin_keys', requests)
    return invalidatesNothing(undefined)
  },

  /**
   * For a key that has just opened an impersonated session, which a revocation may not have seen. @returns whether the key has been revoked:
   * its impersonated sessions have ended then.
   */
  *endSessionsIfRevoked(id: string): Steps<Write<boolean>> {
    const found = yield* firstRow({
      text: ({ forKeyShare }) => `SELECT id FROM admin_keys WHERE id = $1 ${forKeyShare}`,
      values: [id],
    })
    if (found !== undefined) return invalidatesNothing(false)
    return endsAccess(yield* endImpersonatedSessions(id), true)
  },
}
