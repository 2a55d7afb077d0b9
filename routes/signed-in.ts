/** The response to a sign-in, for every method. Hosts import this module as `gatehouse/signed-in`. */
import type { Static } from '@sinclair/typebox'
import type { FastifyReply } from 'fastify'
import type { AuthResult } from '#core/accounts/auth-result'
import { serializeAccount } from '#core/users/serializers'
import type { SignedIn as SignedInSchema } from './schemas.ts'

export const serializeSignedIn = ({
  accessToken,
  expiresAt,
  user,
}: AuthResult): Static<typeof SignedInSchema> => ({
  accessToken,
  expiresAt: new Date(expiresAt).toISOString(),
  user: serializeAccount(user),
})

/**
 * Finishes a request that has signed a user in: sets the cookie of the session.
 * @returns the body of the response, whose schema is `SignedIn`.
 */
export const sendSignedIn = (result: AuthResult, reply: FastifyReply): Static<typeof SignedInSchema> => {
  reply.setAccessToken(result.accessToken, result.expiresAt).header('cache-control', 'no-store')
  return serializeSignedIn(result)
}
