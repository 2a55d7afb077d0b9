/**
 * Pages of account security; features have theirs in their folders. They are public routes: the API checks the session, and a browser
 * without one is sent to sign in. Buttons post, and the page that follows is opened by a redirect, except where it shows a secret for
 * the only time.
 */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { needsCode } from '#core/users/factors'
import type { ApiResponse } from '#http/pages/feature-pages'
import { SIGNED_IN } from '#http/pages/layout'
import { withReturn } from '#http/pages/return-links'
import {
  accountClosedPage,
  changePasswordPage,
  PROFILE_FIELDS,
  type SentForm,
  securityPage,
} from '#http/pages/security'
import { signInLostPage } from '#http/pages/signed-out'
import { FormText, InputId, linkedPage, PageParameter, ProofFields, pageForm } from '../../schemas.ts'

const security: FastifyPluginAsyncTypebox = async app => {
  const { hasPages, passwordMinLength: minLength } = app.config
  if (!hasPages) return
  app.servePages()

  const api = (request: FastifyRequest, path: string): Promise<ApiResponse> =>
    app.callApi(request, { method: 'GET', path })

  const sendSecurity = async (
    request: FastifyRequest,
    reply: FastifyReply,
    account: ApiResponse,
    state: { readonly notice?: string | undefined; readonly sent?: SentForm },
  ): Promise<FastifyReply> => {
    const sessions = await api(request, '/account/sessions')
    if (sessions.status >= 400) return reply.sendFailure(sessions)
    // A feature that fails takes nothing away from its users: they can still end sessions.
    const ofFeatures = await Promise.all(
      app.securitySections.map(async section => ({ ...section, response: await api(request, section.path) })),
    )
    const shown = ofFeatures.filter(({ response }) => response.status < 400)
    return reply.sendPage(context =>
      securityPage(context, {
        account: account.body,
        sessions: sessions.body.results,
        hasPassword: request.requirePrincipal().cachedUser.user.hasPassword,
        added: shown.map(({ section, rows, response }) => ({ section, rows: rows(context, response.body) })),
        notice: context.notices.get(state.notice ?? ''),
        ...(state.sent !== undefined && { sent: state.sent }),
      }),
    )
  }

  app.get('', linkedPage({ [SIGNED_IN]: PageParameter }), async (request, reply) => {
    const notice = reply.takeNotice()
    const account = await api(request, '/account')
    if (account.status === 401 && SIGNED_IN in request.validatedData.query)
      return reply.relay(account).sendPage(signInLostPage)
    if (account.status >= 400) return reply.sendFailure(account)
    return sendSecurity(request, reply, account, { notice })
  })

  /** Shows the page again, with the errors of one of its forms. */
  const sentAgain =
    (request: FastifyRequest, reply: FastifyReply, sent: Omit<SentForm, 'errors'>) =>
    async (errors: ApiResponse['errors']): Promise<FastifyReply> => {
      const account = await api(request, '/account')
      if (account.status >= 400) return reply.sendFailure(account)
      return sendSecurity(request, reply, account, { sent: { ...sent, errors } })
    }

  const profileFields = Object.fromEntries(PROFILE_FIELDS.map(field => [field, Type.Optional(FormText)]))

  app.post('/profile', pageForm(profileFields), (request, reply) => {
    const values = request.validatedData.body as Readonly<Record<string, string>>
    const body = Object.fromEntries(Object.entries(values).map(([name, text]) => [name, text.trim() || null]))
    const call = { method: 'PUT', path: '/account', body } as const
    const form = sentAgain(request, reply, { form: 'profile', values })
    return app.submitForm(request, reply, { call, form }, () => reply.redirectToPage('security', 'profile'))
  })

  app.post('/language', pageForm({ locale: FormText }), (request, reply) => {
    const { body: values } = request.validatedData
    const call = { method: 'PUT', path: '/account', body: { locale: values.locale || null } } as const
    const form = sentAgain(request, reply, { form: 'language', values })
    return app.submitForm(request, reply, { call, form }, () => reply.redirectToPage('security', 'language'))
  })

  app.post('/email', pageForm({ email: FormText, ...ProofFields }), (request, reply) => {
    const { email, ...proof } = request.validatedData.body
    const call = { method: 'PUT', path: '/account/email', body: { email } } as const
    const form = sentAgain(request, reply, { form: 'email', values: { email } })
    const repeat = { action: 'security/email', fields: { email } }
    return app.submitForm(request, reply, { call, proof, repeat, form }, () =>
      reply.redirectToPage('security', 'mailSent'),
    )
  })

  app.post('/close', pageForm({ confirmed: FormText, ...ProofFields }), (request, reply) => {
    const { confirmed, ...proof } = request.validatedData.body
    const call = { method: 'DELETE', path: '/account' } as const
    const repeat = { action: 'security/close', fields: { confirmed } }
    return app.submitForm(request, reply, { call, proof, repeat }, response =>
      reply.relay(response).sendPage(accountClosedPage),
    )
  })

  app.post('/verify-email', { schema: { hide: true } }, (request, reply) =>
    app.submitForm(request, reply, { call: { method: 'POST', path: '/account/verify-email/resend' } }, () =>
      reply.redirectToPage('security', 'mailSent'),
    ),
  )

  app.post('/sessions/end', pageForm({ id: InputId }), (request, reply) => {
    const params = { id: request.validatedData.body.id }
    const call = { method: 'DELETE', path: '/account/sessions/:id', params } as const
    // If it was this session, the page that follows asks to sign in.
    return app.submitForm(request, reply, { call }, response =>
      reply.relay(response).redirectToPage('security', 'session'),
    )
  })

  app.post('/sessions/end-others', { schema: { hide: true } }, (request, reply) =>
    app.submitForm(request, reply, { call: { method: 'DELETE', path: '/account/sessions' } }, () =>
      reply.redirectToPage('security', 'sessions'),
    ),
  )

  const sendPasswordForm = async (
    request: FastifyRequest,
    reply: FastifyReply,
    errors: ApiResponse['errors'],
  ): Promise<FastifyReply> => {
    const account = await api(request, '/account')
    if (account.status >= 400) return reply.sendFailure(account)
    const { user } = request.requirePrincipal().cachedUser
    const { email, hasPassword } = user
    const state = { email, minLength, hasPassword, hasCodes: needsCode(user), errors }
    return reply.sendPage(context => changePasswordPage(context, state))
  }

  app.get('/password', { schema: { hide: true } }, (request, reply) => {
    // Password managers open it (/.well-known/change-password), also without a session.
    if (request.principal === null) return reply.redirectToSignIn('security/password')
    return sendPasswordForm(request, reply, {})
  })

  const PasswordForm = pageForm({
    currentPassword: Type.Optional(FormText),
    newPassword: FormText,
    code: Type.Optional(FormText),
  })

  app.post('/password', PasswordForm, (request, reply) => {
    const { code, ...passwords } = request.validatedData.body
    const body = { ...passwords, ...(code && { code }) }
    const call = { method: 'PUT', path: '/account/password', body } as const
    const form = (errors: ApiResponse['errors']) => sendPasswordForm(request, reply, errors)
    return app.submitForm(request, reply, { call, form }, response =>
      reply.relay(response).redirectToPage('security', 'password'),
    )
  })

  app.post('/password/remove', pageForm(ProofFields), (request, reply) => {
    const call = { method: 'DELETE', path: '/account/password' } as const
    const { body: proof } = request.validatedData
    return app.submitForm(
      request,
      reply,
      { call, proof, repeat: { action: 'security/password/remove' } },
      () => reply.redirectToPage('security', 'passwordRemoved'),
    )
  })

  /** The form of the proof, which leads back to an application as a sign-in does. */
  const proofForm = (request: FastifyRequest) => ({ action: withReturn('security/proof', request) })

  app.get('/proof', linkedPage({}), (request, reply) => app.sendProofPage(request, reply, proofForm(request)))

  app.post('/proof', pageForm(ProofFields), (request, reply) => {
    const call = { method: 'POST', path: '/account/reauthenticate', body: {} } as const
    const { body: proof } = request.validatedData
    return app.submitForm(request, reply, { call, proof, repeat: proofForm(request) }, () =>
      reply.redirectSignedIn('proof'),
    )
  })
}

export default security
