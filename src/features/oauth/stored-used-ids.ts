/** Ids that must not be used again until they expire, in the store. The writer thread of SQLite imports this module. */
import { firstRow, type Steps } from '#storage/operations/operation'
import { endsAccess, invalidatesNothing, type Write } from '#storage/operations/write'

/** @returns whether it had not been used. @param expiresAt when nothing with the id is valid any more. */
function* useId(id: string, expiresAt: number): Steps<Write<boolean>> {
  const used = yield* firstRow({
    text: 'INSERT INTO oauth_used_ids (id, expires_at) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING RETURNING id',
    values: [id, expiresAt],
  })
  return invalidatesNothing(used !== undefined)
}

/** Ends one token. @param ownerId the id of its user; for a token of the client's own, of the client. */
function* revokeToken(tokenId: string, expiresAt: number, ownerId: string): Steps<Write<void>> {
  yield {
    text: 'INSERT INTO oauth_used_ids (id, expires_at) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING',
    values: [tokenId, expiresAt],
  }
  return endsAccess(ownerId, undefined)
}

export const usedIdOperations = { useId, revokeToken }
