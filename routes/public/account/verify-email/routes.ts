import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { FastifyRequest } from 'fastify'
import { ServiceError } from '#base/errors'
import { isApiKeyPrincipal } from '#core/auth/principal'
import type { PendingConfirmation, PresentedSession } from '#core/email-confirmation/email-confirmations'
import { confirmEmailPage, emailConfirmedPage, emailRejectedPage, errorPage } from '#http/pages/signed-out'
import { clientOf, disconnectSignal } from '#routes/request-context'
import { withHeaders } from '#routes/response-headers'
import {
  Account,
  ErrorBody,
  ErrorOf,
  FormText,
  linkedPage,
  OptionalCode,
  PresentedPassword,
  PresentedToken,
  pageForm,
  SignedIn,
  Strict,
} from '#routes/schemas'
import { serializeAccount } from '#routes/serializers'
import { sendSignedIn } from '#routes/signed-in'

const sessionOf = ({ principal }: FastifyRequest): PresentedSession | null =>
  principal === null || isApiKeyPrincipal(principal)
    ? null
    : {
        id: principal.credentialId,
        userId: principal.cachedUser.user.id,
        isImpersonated: principal.impersonatedBy !== null,
      }

/** Whether the session of a request proves the account of a token, so that the page asks for no password. */
const isSignedInTo = (request: FastifyRequest, { userId }: PendingConfirmation): boolean => {
  const session = sessionOf(request)
  return session !== null && session.userId === userId && !session.isImpersonated
}

/** The page behind the link in a mail. Mail scanners open links, so only its buttons change something. */
const verifyEmailPages: FastifyPluginAsyncTypebox = async app => {
  const { emailConfirmations } = app.services
  const { webUrl, hasPages } = app.config
  app.servePages()

  app.get(
    '',
    // Validated by the handler, so that an invalid token redirects too.
    linkedPage({ token: Type.Optional(Type.Unknown()) }),
    async (request, reply) => {
      const { token } = request.validatedData.query
      const presented = typeof token === 'string' ? token : ''
      await app.loadReturnTo(request, presented)
      try {
        const pending = await emailConfirmations.check(presented)
        const needsPassword = !isSignedInTo(request, pending)
        const wantsCode = needsPassword && pending.needsCode
        return reply.sendPage(context =>
          confirmEmailPage(context, { ...pending, token: presented, needsPassword, wantsCode }),
        )
      } catch (error) {
        if (hasPages || !(error instanceof ServiceError)) throw error
        reply.header('cache-control', 'no-store')
        throw new ServiceError(error, { redirectTo: webUrl, cause: error.cause })
      }
    },
  )

  const Confirm = { token: FormText, password: Type.Optional(FormText), code: Type.Optional(FormText) }

  app.post('/confirm', pageForm(Confirm), async (request, reply) => {
    const { token, password, code } = request.validatedData.body
    await app.loadReturnTo(request, token)
    const body = { token, ...(password && { password }), ...(code && { code }) }
    const response = await app.callApi(request, { method: 'POST', path: '/account/verify-email', body })
    reply.relay(response)
    const { status, errors } = response
    // The form is shown again while the link still works: without WEB_URL in between, which cannot ask for the rest.
    if (status >= 400 && !('token' in errors || 'email' in errors)) {
      const pending = await emailConfirmations.check(token)
      // The session may have ended since the page was opened.
      const needsPassword = password !== undefined || !isSignedInTo(request, pending) || status === 403
      const wantsCode = (needsPassword && pending.needsCode) || code !== undefined || 'code' in errors
      const state = { token, needsPassword, wantsCode, errors }
      return reply.sendPage(context => confirmEmailPage(context, { ...pending, ...state }))
    }
    if (!hasPages) return reply.redirectToWebApp(response)
    const opensSession = status === 200 && 'accessToken' in response.body
    if (opensSession && request.returnTo !== null) return reply.redirectSignedIn()
    return reply.sendPage(context =>
      status === 200
        ? emailConfirmedPage(context, (response.body.user ?? response.body).email, opensSession)
        : errorPage(context, errors, context.texts.confirmEmailFailed),
    )
  })

  app.post('/not-me', pageForm({ token: FormText }), async (request, reply) => {
    const { body } = request.validatedData
    const call = { method: 'POST', path: '/account/verify-email/reject', body } as const
    const response = await app.callApi(request, call)
    reply.relay(response)
    return reply.sendPage(context =>
      response.status === 200
        ? emailRejectedPage(context, response.body.rejected)
        : errorPage(context, response.errors),
    )
  })
}

const verifyEmail: FastifyPluginAsyncTypebox = async app => {
  const { emailConfirmations } = app.services

  app.post(
    '',
    {
      // It hashes passwords: the throttle counts wrong ones only.
      config: { rateLimit: 'sign-in' },
      schema: {
        operationId: 'verifyEmail',
        summary: 'Confirm an e-mail with a mailed token, in a session of the account or with its password',
        body: Strict({
          token: PresentedToken,
          password: Type.Optional(PresentedPassword),
          code: OptionalCode,
        }),
        response: {
          200: withHeaders(Type.Union([SignedIn, Account]), 'Set-Cookie'),
          401: ErrorOf('secondFactorRequired'),
          403: withHeaders(ErrorOf('accountProofRequired'), 'WWW-Authenticate'),
          409: ErrorOf('emailTaken'),
          429: ErrorBody,
          503: ErrorBody,
        },
      },
    },
    async (request, reply) => {
      const { token, password, code } = request.validatedData.body
      const proof = { session: sessionOf(request), password, code }
      const confirmed = await emailConfirmations.confirm(
        token,
        proof,
        clientOf(request),
        disconnectSignal(reply),
      )
      if ('accessToken' in confirmed) return sendSignedIn(confirmed, reply)
      reply.header('cache-control', 'no-store')
      return serializeAccount(confirmed)
    },
  )

  app.post(
    '/reject',
    {
      schema: {
        operationId: 'rejectEmail',
        summary:
          'Reject a mailed token: ends the change of the e-mail, or removes the account or sign-up that was never confirmed',
        body: Strict({ token: PresentedToken }),
        response: {
          200: Type.Object(
            {
              rejected: Type.Unsafe<'account' | 'emailChange' | 'signUp'>({
                type: 'string',
                enum: ['account', 'emailChange', 'signUp'],
              }),
            },
            { title: 'RejectedEmail' },
          ),
          503: ErrorBody,
        },
      },
    },
    async (request, reply) => {
      reply.header('cache-control', 'no-store')
      const { token } = request.validatedData.body
      return { rejected: await emailConfirmations.reject(token, request.clientAddress) }
    },
  )

  app.register(verifyEmailPages)
}

export default verifyEmail
