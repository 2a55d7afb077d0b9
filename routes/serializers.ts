/** TimeSlicer what the service knows into what its answers say. */

import type { Static } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { SignedIn } from '../src/accounts/auth-result.ts'
import type { CachedUser } from '../src/auth/principal.ts'
import { serializeAccount, toIso } from '../src/users/serializers.ts'
import type { User } from '../src/users/user.ts'
import type { SignedIn as SignedInSchema } from './schemas.ts'

export { serializeSession } from '../src/accounts/serializers.ts'
export { serializeEvent } from '../src/audit-log/serializers.ts'
export { serializeAccount, serializeAdminUser, serializeProfile } from '../src/users/serializers.ts'

/** The JSON of an account up to the timestamp of the last request, which stands last. */
const textBeforeMoment = (user: User): string =>
  Buffer.from(JSON.stringify(serializeAccount(user, null)).slice(0, -'null}'.length)).toString()

/** Sends what {@link serializeAccount} says of an identified user; its JSON is made once, but for the timestamp. */
export const sendAccount = (reply: FastifyReply, cachedUser: CachedUser): void => {
  cachedUser.accountText ??= textBeforeMoment(cachedUser.user)
  reply
    .header('cache-control', 'no-store')
    .header('etag', `"${cachedUser.user.version}"`)
    .type('application/json; charset=utf-8')
    .send(`${cachedUser.accountText}"${toIso(cachedUser.lastRequestAt)}"}`)
}

export const serializeSignedIn = ({
  accessToken,
  expiresAt,
  user,
}: SignedIn): Static<typeof SignedInSchema> => ({
  accessToken,
  expiresAt: new Date(expiresAt).toISOString(),
  user: serializeAccount(user),
})

/** The answer to whoever has signed in, with the token in the cookie too. */
export const sendSignedIn = (signedIn: SignedIn, reply: FastifyReply): Static<typeof SignedInSchema> => {
  reply.setAccessToken(signedIn.accessToken, signedIn.expiresAt).header('cache-control', 'no-store')
  return serializeSignedIn(signedIn)
}

/** The `Link` to the next page (RFC 8288): the same route and query with another cursor. */
export const linkToNext = (request: FastifyRequest, reply: FastifyReply, nextCursor: string | null): void => {
  if (nextCursor === null) return
  const parameters = new URLSearchParams(request.url.split('?', 2)[1])
  parameters.set('cursor', nextCursor)
  reply.header('link', `<${request.routeOptions.url}?${parameters}>; rel="next"`)
}
