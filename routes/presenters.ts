/** Turns what the service knows into what its answers say. */

import type { Static } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { SignedIn } from '../src/accounts/signed-in.ts'
import type { KnownUser } from '../src/auth/identity.ts'
import type { User } from '../src/users/user.ts'
import { presentAccount, toIso } from '../src/users/views.ts'
import type { SignedIn as SignedInSchema } from './schemas.ts'

export { presentSession } from '../src/accounts/views.ts'
export { presentAccount, presentAdminUser, presentEvent, presentProfile } from '../src/users/views.ts'

/** The JSON of an account up to the moment of the last request, which stands last. */
const textBeforeMoment = (user: User): string =>
  Buffer.from(JSON.stringify(presentAccount(user, null)).slice(0, -'null}'.length)).toString()

/** Sends what {@link presentAccount} says of an identified user; its JSON is made once, but for the moment. */
export const sendAccount = (reply: FastifyReply, known: KnownUser): void => {
  known.accountText ??= textBeforeMoment(known.user)
  reply
    .header('cache-control', 'no-store')
    .header('etag', `"${known.user.version}"`)
    .type('application/json; charset=utf-8')
    .send(`${known.accountText}"${toIso(known.lastRequestAt)}"}`)
}

export const presentSignedIn = ({
  accessToken,
  expiresAt,
  user,
}: SignedIn): Static<typeof SignedInSchema> => ({
  accessToken,
  expiresAt: new Date(expiresAt).toISOString(),
  user: presentAccount(user),
})

/** The answer to whoever has signed in, with the token in the cookie too. */
export const handOver = (signedIn: SignedIn, reply: FastifyReply): Static<typeof SignedInSchema> => {
  reply.setAccessToken(signedIn.accessToken, signedIn.expiresAt).header('cache-control', 'no-store')
  return presentSignedIn(signedIn)
}

/** The `Link` to the next page (RFC 8288): the same route and query with another cursor. */
export const linkToNext = (request: FastifyRequest, reply: FastifyReply, nextCursor: string | null): void => {
  if (nextCursor === null) return
  const parameters = new URLSearchParams(request.url.split('?', 2)[1])
  parameters.set('cursor', nextCursor)
  reply.header('link', `<${request.routeOptions.url}?${parameters}>; rel="next"`)
}
