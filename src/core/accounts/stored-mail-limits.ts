/**
 * Limits on mails for which anybody can ask. Requests from networks of the user's sign-ins count apart, so that strangers cannot use up the
 * mails of the owner.
 */

import { firstIdAt } from '#base/ids'
import { rows, type Steps } from '#storage/operations/operation'
import type { AuditEvent } from '../audit-log/event.ts'
import { KNOWN_FOR, networkDigest } from '../rate-limits/known-networks.ts'
import { MAIL_WINDOW, MAX_MAILS, MAX_MAILS_IN_ALL } from './email-token.ts'

/** The digest of a client's network, if the user has signed in from it; else `null`. The address is in canonical form. */
type KnownNetworkOf = (ip: string | null) => string | null

/** One statement, whether or not there is such a user. */
export function* knownNetworksOf(
  user: { readonly id: string } | { readonly email: string },
  now: number,
): Steps<KnownNetworkOf> {
  const [column, value] = 'id' in user ? ['id', user.id] : ['email', user.email]
  const found = yield* rows<{ id: string; digest: string | null }>({
    name: `known-networks-by-${column}`,
    text: `SELECT id, digest FROM users LEFT JOIN known_networks ON user_key = key AND signed_in_at > $2
      WHERE ${column} = $1`,
    values: [value, now - KNOWN_FOR],
  })
  const userId = found[0]?.id ?? ''
  const digests = new Set(found.map(({ digest }) => digest))
  return ip => {
    const digest = networkDigest(userId, ip)
    return digests.has(digest) ? digest : null
  }
}

/**
 * Whether the user, who must be locked, may be mailed once more. Events of the types `countedBy` record the mails, with the addresses of who
 * asked.
 */
export function* isUnderAnonymousMailLimit(
  { userId, actor, at }: AuditEvent,
  countedBy: readonly string[],
  knownNetworkOf: KnownNetworkOf,
): Steps<boolean> {
  const mailed = yield* rows<{ ip: string | null }>({
    text: ({ isOneOf }) =>
      `SELECT ip FROM events WHERE user_id = $1 AND id >= $2 AND ${isOneOf('type', '$3', 'text')}`,
    values: [userId, firstIdAt(at - MAIL_WINDOW + 1), countedBy],
  })
  const network = knownNetworkOf(actor.ip)
  const alike = mailed.filter(({ ip }) => knownNetworkOf(ip) === network)
  return alike.length < MAX_MAILS && mailed.length < MAX_MAILS_IN_ALL
}
