/** The page on which a user decides what a client may do. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { FastifyRequest } from 'fastify'
import { consentPage, leavingPage } from '#features/oauth/pages'
import { localesOf, returnToPage, SIGN_IN_AGAIN, withLocales, withReturn } from '#http/pages/return-links'
import { FormText, linkedPage, pageForm } from '#routes/schemas'

/** The page to sign in, with the e-mail that the client expects. */
const signInPath = ({
  isAgain,
  loginHint,
}: {
  readonly isAgain: boolean
  readonly loginHint: string | null
}) => {
  const query = [
    ...(isAgain ? [SIGN_IN_AGAIN] : []),
    ...(loginHint === null ? [] : [`email=${encodeURIComponent(loginHint)}`]),
  ]
  return query.length === 0 ? 'sign-in' : `sign-in?${query.join('&')}`
}

const consent: FastifyPluginAsyncTypebox = async app => {
  const { oauth } = app.services
  if (oauth === null || !app.config.hasPages) return
  const { authorizations } = oauth
  app.servePages()

  const sessionOf = ({ accessTokenSource, principal }: FastifyRequest) =>
    accessTokenSource === 'cookie' ? principal : null

  app.get('', linkedPage({ request: Type.String({ maxLength: 128 }) }), async (request, reply) => {
    const { request: token } = request.validatedData.query
    const need = await authorizations.need(token, sessionOf(request))
    if (need.kind === 'client') return reply.header('cache-control', 'no-store').redirect(need.url, 303)
    const locales = localesOf(request.validatedData.query, null, app.config.publicUrl)
    const own = withLocales(`oauth/consent?request=${encodeURIComponent(token)}`, locales)
    const back = returnToPage(own, app.config.publicUrl)
    if (need.kind === 'proof') return reply.redirectToPage(withReturn('security/proof', back))
    if (need.kind === 'signIn') return reply.redirectToPage(withReturn(signInPath(need), back))
    const { client, scopes, organizations } = need
    const { redirectUri } = need.request
    const { email } = request.requirePrincipal().cachedUser.user
    return reply.sendPage(context =>
      consentPage(context, {
        request: token,
        client,
        redirectUri,
        scopes,
        organizations,
        email,
        back,
        locales,
      }),
    )
  })

  app.post(
    '',
    pageForm({ request: FormText, decision: FormText, organization: Type.Optional(FormText) }),
    async (request, reply) => {
      const { request: token, decision, organization } = request.validatedData.body
      const url = await (decision === 'allow'
        ? authorizations.allow(token, sessionOf(request), organization || null)
        : authorizations.deny(token))
      return reply.sendPage(context => leavingPage(context, url))
    },
  )
}

export default consent
