/** The pages on which a user connects a device (RFC 8628 §3.3). */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { ServiceError } from '#base/errors'
import { clientNetwork } from '#core/rate-limits/limits'
import { ERRORS } from '#features/oauth/definitions'
import { deviceDecidedPage, devicePage, deviceRequestPage } from '#features/oauth/device-pages'
import { NO_ERRORS } from '#http/pages/layout'
import { returnToPage } from '#http/pages/return-links'
import { actorOf } from '#routes/request-context'
import { FormText, linkedPage, PageParameter, pageForm } from '#routes/schemas'

/** Characters of a code that a link fills in. */
const MAX_PREFILLED = 32

/** The code of a link. Repeated or too long, it is ignored: the person enters theirs. */
const prefilledCode = ({ user_code: code }: { readonly user_code?: unknown }): string =>
  typeof code === 'string' && code.length <= MAX_PREFILLED && code.isWellFormed() ? code : ''

const pathOf = (userCode: string): string =>
  userCode === '' ? 'device' : `device?user_code=${encodeURIComponent(userCode)}`

const device: FastifyPluginAsyncTypebox = async app => {
  const { oauth } = app.services
  if (oauth === null || !app.config.hasPages) return
  const { devices } = oauth
  app.servePages()

  const sessionOf = ({ accessTokenSource, principal }: FastifyRequest) =>
    accessTokenSource === 'cookie' ? principal : null

  // A link with a code only fills in the form: opening one decides nothing, and is no guess.
  app.get('', linkedPage({ user_code: PageParameter }), async (request, reply) => {
    const userCode = prefilledCode(request.validatedData.query)
    if (sessionOf(request) === null) return reply.redirectToSignIn(pathOf(userCode))
    return reply.sendPage(context => devicePage(context, userCode, NO_ERRORS))
  })

  app.post('', pageForm({ user_code: FormText }), async (request, reply) => {
    const { user_code: userCode } = request.validatedData.body
    const principal = sessionOf(request)
    if (principal === null) return reply.redirectToSignIn(pathOf(prefilledCode({ user_code: userCode })))
    try {
      const found = await devices.find(userCode, principal, request.clientNetwork)
      const { email } = principal.cachedUser.user
      const back = returnToPage(pathOf(found.userCode), app.config.publicUrl)
      const isSameNetwork = clientNetwork(found.request.address) === request.clientNetwork
      return await reply.sendPage(context =>
        deviceRequestPage(context, { ...found, email, back, isSameNetwork }),
      )
    } catch (error) {
      const { code, field, message } = ERRORS.unknownUserCode
      if (!(error instanceof ServiceError) || error.code !== code) throw error
      reply.code(error.status)
      return reply.sendPage(context => devicePage(context, userCode, { [field]: [message] }))
    }
  })

  app.post('/decision', pageForm({ request: FormText, decision: FormText }), async (request, reply) => {
    const { request: id, decision } = request.validatedData.body
    const principal = sessionOf(request)
    if (principal === null) throw new ServiceError('signInRequired')
    if (decision === 'approve') {
      const client = await devices.approve(id, principal, actorOf(principal, request))
      return reply.sendPage(context => deviceDecidedPage(context, client))
    }
    await devices.deny(id, principal)
    return reply.sendPage(context => deviceDecidedPage(context, null))
  })
}

export default device
