/** The button to sign out. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

const signOut: FastifyPluginAsyncTypebox = async app => {
  if (!app.config.hasPages) return
  app.servePages()

  app.post('', { schema: { hide: true } }, async (request, reply) => {
    const response = await app.callApi(request, { method: 'POST', path: '/account/sign-out' })
    // 401: the session has ended already.
    if (response.status < 400 || response.status === 401)
      return reply.clearAccessToken().redirectToPage('sign-in')
    return reply.sendFailure(response)
  })
}

export default signOut
