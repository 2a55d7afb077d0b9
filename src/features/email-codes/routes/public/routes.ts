/** The pages to sign in with a mailed code or link. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { FieldErrors } from '#base/errors'
import {
  emailCodePage,
  type MagicLinkState,
  magicLinkPage,
  magicLinkSentPage,
  requestEmailCodePage,
  requestMagicLinkPage,
} from '#features/email-codes/pages'
import { type CodeState, codePage } from '#http/pages/between-steps'
import type { ApiCall, ApiResponse } from '#http/pages/feature-pages'
import { returnToOf } from '#routes/request-context'
import { FormText, linkedPage, PageParameter, pageForm, prefilledEmail } from '#routes/schemas'

const OptionalCode = Type.Optional(FormText)

const EmailQuery = { email: PageParameter }

/** The form of the sign-in page sends its password too, which is not read. */
const RequestForm = pageForm({ email: FormText, password: Type.Optional(FormText) })

/** Whether the second step is to be shown: it is missing or wrong, or the sender has to wait. */
const isSecondStep = (code: string | undefined, { status, errors }: Pick<ApiResponse, 'status' | 'errors'>) =>
  'code' in errors || (Boolean(code) && status === 429)

/** @param code that was wrong, if one was sent: without one nothing has failed. */
const sendSecondStep = (
  reply: FastifyReply,
  step: CodeState,
  code: string | undefined,
  errors: FieldErrors,
): Promise<FastifyReply> =>
  code
    ? reply.sendPage(context => codePage(context, { ...step, errors }))
    : reply.code(200).sendPage(context => codePage(context, step))

const emailCodePages: FastifyPluginAsyncTypebox = async app => {
  app.get('/sign-in/email-code', linkedPage(EmailQuery), (request, reply) => {
    const email = prefilledEmail(request.validatedData.query)
    return reply.sendPage(context => requestEmailCodePage(context, { email }))
  })

  app.post('/sign-in/email-code', RequestForm, async (request, reply) => {
    const body = { email: request.validatedData.body.email }
    if (body.email === '') return reply.sendPage(requestEmailCodePage)
    const response = await app.callApi(request, { method: 'POST', path: '/account/email-code', body })
    const { errors } = response
    return reply
      .relay(response)
      .sendPage(context =>
        response.status < 400
          ? emailCodePage(context, body)
          : requestEmailCodePage(context, { ...body, errors }),
      )
  })

  const SignIn = pageForm({ email: FormText, emailCode: FormText, code: OptionalCode })

  app.post('/sign-in/email-code/confirm', SignIn, async (request, reply) => {
    const { email, emailCode, code } = request.validatedData.body
    const body = { email, emailCode, ...(code && { code }) }
    const path = '/account/sign-in/email-code'
    const response = await app.callApi(request, { method: 'POST', path, body })
    reply.relay(response)
    if (response.status === 200) return reply.redirectSignedIn()
    const { errors } = response
    if (!isSecondStep(code, response))
      return reply.sendPage(context => emailCodePage(context, { email, errors }))
    const step = { email, path: 'sign-in/email-code/confirm', firstStep: { email, emailCode } }
    return sendSecondStep(reply, step, code, errors)
  })
}

const checkOf = (token: string): ApiCall => ({
  method: 'POST',
  path: '/account/magic-link/check',
  body: { token },
})

const magicLinkPages: FastifyPluginAsyncTypebox = async app => {
  app.get('/sign-in/magic-link', linkedPage(EmailQuery), (request, reply) => {
    const email = prefilledEmail(request.validatedData.query)
    return reply.sendPage(context => requestMagicLinkPage(context, { email }))
  })

  app.post('/sign-in/magic-link', RequestForm, async (request, reply) => {
    const body = { email: request.validatedData.body.email }
    if (body.email === '') return reply.sendPage(requestMagicLinkPage)
    const call = {
      method: 'POST',
      path: '/account/magic-link',
      body: { ...body, ...returnToOf(request) },
    } as const
    const response = await app.callApi(request, call)
    const { errors } = response
    return reply
      .relay(response)
      .sendPage(context =>
        response.status < 400
          ? magicLinkSentPage(context)
          : requestMagicLinkPage(context, { ...body, errors }),
      )
  })

  /** The page behind a mailed link. Mail scanners open links, so only its button signs in. */
  const sendLinkPage = async (
    request: FastifyRequest,
    reply: FastifyReply,
    state: Omit<MagicLinkState, 'link'>,
  ) => {
    const link = await app.callApi(request, checkOf(state.token))
    if (link.status !== 200) return reply.sendFailure(link)
    return reply.sendPage(context => magicLinkPage(context, { ...state, link: link.body }))
  }

  app.get('/magic-link', linkedPage({ token: FormText }), async (request, reply) => {
    const { token } = request.validatedData.query
    await app.loadReturnTo(request, token)
    return sendLinkPage(request, reply, { token })
  })

  app.post('/magic-link', pageForm({ token: FormText, code: OptionalCode }), async (request, reply) => {
    const { token, code } = request.validatedData.body
    await app.loadReturnTo(request, token)
    const body = { token, ...(code && { code }) }
    const path = '/account/sign-in/magic-link'
    const response = await app.callApi(request, { method: 'POST', path, body })
    reply.relay(response)
    if (response.status === 200) return reply.redirectSignedIn()
    const { errors } = response
    if (!isSecondStep(code, response)) return sendLinkPage(request, reply, { token, errors })
    const link = await app.callApi(request, checkOf(token))
    if (link.status !== 200) return reply.sendFailure(link)
    const step = { email: link.body.email, path: 'magic-link', firstStep: { token } }
    return sendSecondStep(reply, step, code, errors)
  })
}

const mailedSignInPages: FastifyPluginAsyncTypebox = async app => {
  const { emailCodes, magicLinks } = app.services
  if (!app.config.hasPages) return
  app.servePages()
  if (emailCodes !== null) app.register(emailCodePages)
  if (magicLinks !== null) app.register(magicLinkPages)
}

export default mailedSignInPages
