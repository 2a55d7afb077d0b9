/** The page to sign in, that of its second step, and the way back to the application. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { errorBody, type FieldErrors, ServiceError } from '#base/errors'
import { STEP_HEADER } from '#core/accounts/password-sign-ins'
import { canonicalEmail } from '#core/users/user'
import {
  type CodeState,
  codePage,
  continuePage,
  signedInAlreadyPage,
  stepEndedPage,
} from '#http/pages/between-steps'
import { pageOfReturn, SIGN_IN_AGAIN, withReturn } from '#http/pages/return-links'
import { signInLostPage, signInPage } from '#http/pages/signed-out'
import { clientOf, sessionUserOf } from '../../request-context.ts'
import { FormText, linkedPage, PageParameter, pageForm, prefilledEmail } from '../../schemas.ts'

/** Milliseconds after a sign-in in which its own redirect arrives. */
const JUST_NOW = 60_000

const secondStep = (email: string, step: string, errors?: FieldErrors): CodeState => ({
  ...{ email, path: 'sign-in/code', firstStep: { email, step } },
  ...(errors && { errors }),
})

/** The user whom the browser is signed in to; `null` without a session, or for a request that brings a bearer token. */
const signedInUserOf = (request: FastifyRequest) =>
  request.accessTokenSource === 'cookie' ? sessionUserOf(request) : null

const signIn: FastifyPluginAsyncTypebox = async app => {
  if (!app.config.hasPages) return
  app.servePages()
  const { signInParts } = app
  const { passwordSignIns } = app.services

  app.get('', linkedPage({ email: PageParameter, [SIGN_IN_AGAIN]: PageParameter }), (request, reply) => {
    const { returnTo } = request
    const { query } = request.validatedData
    const user = SIGN_IN_AGAIN in query ? null : signedInUserOf(request)
    const page = pageOfReturn(returnTo, app.config.publicUrl)
    if (page !== null && user !== null) return reply.redirectToPage(page)
    // Not led back at once: an application that does not see the session would send the browser here again, for ever.
    if (returnTo !== null && user !== null)
      return reply.sendPage(context => signedInAlreadyPage(context, user.email, returnTo))
    const email = prefilledEmail(query)
    return reply.sendPage(context => signInPage(context, signInParts, { email }))
  })

  app.post('', pageForm({ email: FormText, password: FormText }), async (request, reply) => {
    const { body } = request.validatedData
    const { email } = body
    const response = await app.callApi(request, { method: 'POST', path: '/account/sign-in', body })
    reply.relay(response)
    if (response.status === 200) return reply.redirectSignedIn()
    const step = response.headers[STEP_HEADER]
    // A step of its own, as its page names the account: nothing failed.
    if (typeof step === 'string')
      return reply.code(200).sendPage(context => codePage(context, secondStep(email, step)))
    const { errors } = response
    return reply.sendPage(context => signInPage(context, signInParts, { email, errors }))
  })

  // After a reload: its page exists as the response to a form alone.
  app.get('/code', linkedPage({}), (request, reply) => reply.redirectToPage(withReturn('sign-in', request)))

  app.post(
    '/code',
    { config: { rateLimit: 'sign-in' }, ...pageForm({ email: FormText, step: FormText, code: FormText }) },
    async (request, reply) => {
      const { email, step, code } = request.validatedData.body
      try {
        const second = { email: canonicalEmail(email), step, code: code.trim() }
        const { accessToken, expiresAt } = await passwordSignIns.continue(second, clientOf(request))
        return reply.setAccessToken(accessToken, expiresAt).redirectSignedIn()
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error
        const { status, headers, field, message } = error
        const { errors } = errorBody(field, message)
        reply.relay({ status, headers, errors })
        return reply.sendPage(context =>
          field === 'step' ? stepEndedPage(context) : codePage(context, secondStep(email, step, errors)),
        )
      }
    },
  )

  app.get('/continue', linkedPage({}), (request, reply) => {
    const { returnTo } = request
    const user = signedInUserOf(request)
    if (user === null) return reply.sendPage(signInLostPage)
    if (returnTo === null) return reply.redirectToPage('security')
    const page = pageOfReturn(returnTo, app.config.publicUrl)
    if (page !== null) return reply.redirectToPage(page)
    const { authenticatedAt } = request.requirePrincipal()
    // A link of a stranger opens this page too. Who has not just signed in sees whose account it is, as on the page to sign in.
    return reply.sendPage(context =>
      context.now - authenticatedAt < JUST_NOW
        ? continuePage(context, returnTo)
        : signedInAlreadyPage(context, user.email, returnTo),
    )
  })
}

export default signIn
