/** The page and the button to sign out. Opening the page changes nothing: any site can link to it. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { continuePage, signedOutPage, signOutPage } from '#http/pages/between-steps'
import { sessionUserOf } from '../../request-context.ts'
import { linkedPage, pageForm } from '../../schemas.ts'

const signOut: FastifyPluginAsyncTypebox = async app => {
  if (!app.config.hasPages) return
  app.servePages()

  app.get('', linkedPage({}), (request, reply) => {
    const user = request.accessTokenSource === 'cookie' ? sessionUserOf(request) : null
    return reply.sendPage(context =>
      user === null && !context.hasSeveralUsers ? signedOutPage(context) : signOutPage(context, user?.email),
    )
  })

  app.post('', pageForm({}), async (request, reply) => {
    const { returnTo } = request
    const response = await app.callApi(request, { method: 'POST', path: '/account/sign-out' })
    // 401: the session has ended already.
    if (response.status >= 400 && response.status !== 401) return reply.sendFailure(response)
    reply.clearAccessToken()
    return returnTo === null
      ? reply.redirectToPage('sign-in')
      : reply.sendPage(context => continuePage(context, returnTo))
  })
}

export default signOut
