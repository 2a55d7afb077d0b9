/** The page behind a mailed link. Mail scanners open links, so only its button signs in. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { magicLinkPage } from '#features/email-codes/pages'
import type { FieldErrors } from '#http/pages/feature-pages'
import { FormText, linkedPage, pageForm } from '#routes/schemas'

const magicLink: FastifyPluginAsyncTypebox = async app => {
  if (!app.config.hasPages || app.services.magicLinks === null) return
  app.servePages()

  interface State {
    readonly token: string
    readonly wantsCode?: boolean
    readonly errors?: FieldErrors
  }

  const sendLinkPage = async (request: FastifyRequest, reply: FastifyReply, state: State) => {
    const body = { token: state.token }
    const link = await app.callApi(request, { method: 'POST', path: '/account/magic-link/check', body })
    if (link.status === 200)
      return reply.sendPage(context => magicLinkPage(context, { ...state, link: link.body }))
    return reply.sendFailure(link)
  }

  app.get('', linkedPage({ token: FormText }), (request, reply) =>
    sendLinkPage(request, reply, request.validatedData.query),
  )

  const SignIn = { token: FormText, code: Type.Optional(FormText) }

  app.post('', pageForm(SignIn), async (request, reply) => {
    const { token, code } = request.validatedData.body
    const body = { token, ...(code && { code }) }
    const response = await app.callApi(request, {
      method: 'POST',
      path: '/account/sign-in/magic-link',
      body,
    })
    reply.relay(response)
    if (response.status === 200) return reply.redirectSignedIn()
    const { errors } = response
    return sendLinkPage(request, reply, { token, wantsCode: code !== undefined || 'code' in errors, errors })
  })
}

export default magicLink
