/** Where clients send browsers to sign out (OpenID Connect RP-Initiated Logout 1.0). */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { LogoutParameters, LogoutRequest } from '#features/oauth/logout'
import { logoutPage } from '#features/oauth/logout-pages'
import { leavingPage } from '#features/oauth/pages'
import { signedOutPage } from '#http/pages/between-steps'
import { actorOf } from '#routes/request-context'
import { Parameter } from '../../../endpoint-schemas.ts'

const Parameters = Type.Object(
  {
    id_token_hint: Parameter(8_192, 'An ID token of the client'),
    client_id: Parameter(256, 'The id of the client'),
    post_logout_redirect_uri: Parameter(2_048, 'One that is registered'),
    state: Parameter(2_048, 'Comes back to the client'),
  },
  { additionalProperties: true },
)

/** Without the parameters that the service ignores. */
const known = ({ id_token_hint, client_id, post_logout_redirect_uri, state }: LogoutParameters) => ({
  ...{ id_token_hint, client_id, post_logout_redirect_uri, state },
})

const logout: FastifyPluginAsyncTypebox = async app => {
  const { oauth, sessions } = app.services
  if (oauth === null || !app.config.hasPages) return
  const { logout: requests } = oauth
  app.servePages()

  const isSignedIn = ({ accessTokenSource, principal, accessTokens }: FastifyRequest): boolean =>
    accessTokenSource === 'cookie' && (principal !== null || accessTokens !== null)

  /** Ends what is left of the session, and leads back to the client. */
  const finish = async (request: FastifyRequest, reply: FastifyReply, { target }: LogoutRequest) => {
    if (isSignedIn(request)) {
      for (const session of await app.requestAuthentication.sessionsOf(request))
        await sessions.signOut(session.cachedUser.user.id, session.credentialId, actorOf(session, request))
      reply.clearAccessToken()
    }
    return reply.sendPage(context =>
      target === null ? signedOutPage(context) : leavingPage(context, target),
    )
  }

  app.get('', { schema: { hide: true, querystring: Parameters } }, async (request, reply) => {
    const parameters = known(request.validatedData.query)
    const asked = await requests.read(parameters)
    const { principal } = request
    const user = principal?.cachedUser.user
    // A client that has an ID token of the user need not ask, unless an administrator acts as the user.
    const isAgreed = user !== undefined && user.id === asked.userId && principal?.impersonatedBy === null
    if (!isSignedIn(request) || isAgreed) return finish(request, reply, asked)
    const { client } = asked
    return reply.sendPage(context =>
      logoutPage(context, { email: user?.email ?? null, client: client?.name ?? null, parameters }),
    )
  })

  // A form of the client's site comes without the cookie, so it changes nothing: the browser comes again.
  app.post(
    '',
    { config: { isOpenToSites: true }, schema: { hide: true, body: Parameters } },
    async (request, reply) => {
      const parameters = Object.entries(known(request.validatedData.body)).filter(
        (entry): entry is [string, string] => entry[1] !== undefined,
      )
      return reply.redirectToPage(`oauth/logout?${new URLSearchParams(parameters)}`)
    },
  )

  app.post('/decision', { schema: { hide: true, body: Parameters } }, async (request, reply) =>
    finish(request, reply, await requests.read(known(request.validatedData.body))),
  )
}

export default logout
