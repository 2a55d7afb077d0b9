/** UserInfo (OpenID Connect Core §5.3): who has granted a token. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { ServiceError } from '#base/errors'
import { noStore } from '#feature/no-store'
import { ERRORS } from '#features/oauth/definitions'
import { oauthMembers } from '#features/oauth/oauth-errors'
import { userClaims } from '#features/oauth/user-claims'
import { ErrorOf } from '#routes/schemas'

const UserInfo = Type.Object(
  { sub: Type.String() },
  {
    title: 'UserInfo',
    additionalProperties: true,
    description: 'With the claims of the scopes `profile` and `email`',
    examples: [
      { sub: '01936b7e-4a5c-7d3e-9f10-2b3c4d5e6f70', email: 'ann@example.com', email_verified: true },
    ],
  },
)

const userinfo: FastifyPluginAsyncTypebox = async app => {
  if (app.services.oauth === null) return
  app.extendErrors(oauthMembers)
  app.addHook('preSerialization', noStore)

  for (const method of ['GET', 'POST'] as const)
    app.route({
      method,
      url: '',
      schema: {
        operationId: method === 'GET' ? 'getUserInfo' : 'postUserInfo',
        summary: 'Who has granted the access token, which needs the scope openid (OpenID Connect Core §5.3)',
        tags: ['oauth'],
        security: [{ bearer: [] }],
        response: { 200: UserInfo, 401: ErrorOf(ERRORS.invalidToken), 403: ErrorOf(ERRORS.openidRequired) },
      },
      async handler({ principal, accessTokenSource, authenticationFailure }) {
        // Of a token that is bound to a key: it names the nonce that the client needs.
        if (accessTokenSource === 'proof' && authenticationFailure !== null) throw authenticationFailure
        if (principal === null || principal.client === null || accessTokenSource === 'cookie')
          throw new ServiceError(ERRORS.invalidToken, {
            headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
          })
        const scopes = principal.scopes ?? []
        if (!scopes.includes('openid'))
          throw new ServiceError(ERRORS.openidRequired, {
            headers: { 'www-authenticate': 'Bearer error="insufficient_scope", scope="openid"' },
          })
        return userClaims(principal.cachedUser.user, scopes)
      },
    })
}

export default userinfo
