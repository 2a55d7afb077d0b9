/**
 * Pages of account security. They are public routes: the API checks the session, and a browser without one is sent to sign in. Buttons
 * post, and the page that follows is opened by a redirect, except where it shows a secret for the only time.
 */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type TProperties, Type } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ApiCall, ApiResponse } from '../../../src/pages/api.ts'
import { FormText, InputId, Strict } from '../../schemas.ts'

const ProofFields = { password: Type.Optional(FormText), code: Type.Optional(FormText) }

/** Milliseconds. */
const DAY = 86_400_000

const hidden = <Properties extends TProperties>(properties: Properties) => ({
  schema: { hide: true, body: Strict(properties) },
})

/** RFC 9470 §3. */
const needsProof = ({ status, headers }: ApiResponse): boolean =>
  status === 403 && String(headers['www-authenticate']).includes('insufficient_user_authentication')

/** @returns the errors of the form that asks for a proof; `null` if the error is another one. */
const proofErrors = (response: ApiResponse): ApiResponse['errors'] | null => {
  if (needsProof(response)) return {}
  return 'password' in response.errors || 'code' in response.errors ? response.errors : null
}

type Proof = Readonly<Partial<Record<'password' | 'code', string | undefined>>>

/** What a user has entered, without empty fields. */
const entered = ({ password, code }: Proof): Proof => ({
  ...(password && { password }),
  ...(code && { code }),
})

interface Act {
  readonly call: ApiCall
  readonly proof?: Proof
  /** The form to repeat with a proof: its URL, and its fields. */
  readonly repeat?: readonly [action: string, fields: Readonly<Record<string, string>>]
  /** Shows the form again, with its errors. By default there is a page with the errors alone. */
  readonly form?: (errors: ApiResponse['errors']) => Promise<FastifyReply>
}

const security: FastifyPluginAsyncTypebox = async app => {
  const { hasPages, passwordMinLength: minLength } = app.config
  const { userScopes, clock } = app.services
  if (!hasPages) return
  app.servePages()

  const api = (request: FastifyRequest, path: string): Promise<ApiResponse> =>
    app.callApi(request, { method: 'GET', path })

  const sendErrors = (reply: FastifyReply, errors: ApiResponse['errors']): Promise<FastifyReply> =>
    reply.sendPage((pages, context) => pages.errorPage(context, errors))

  const sendProofPage = async (
    request: FastifyRequest,
    reply: FastifyReply,
    [action, fields]: NonNullable<Act['repeat']>,
    errors: ApiResponse['errors'],
  ): Promise<FastifyReply> => {
    const [account, totp] = await Promise.all([api(request, '/account'), api(request, '/account/totp')])
    if (account.status === 401) return reply.redirectToPage('sign-in')
    const { email } = account.body
    const hasCodes = (totp.body.confirmedAt ?? null) !== null
    return reply.sendPage((pages, context) =>
      pages.proofPage(context, { action, fields, email, hasCodes, errors }),
    )
  }

  /**
   * Calls the API, asks for a proof of identity where that is needed, and shows its errors.
   * @param then sends the response if the call has succeeded.
   */
  const act = async (
    request: FastifyRequest,
    reply: FastifyReply,
    { call, proof = {}, repeat, form }: Act,
    then: (response: ApiResponse) => FastifyReply | Promise<FastifyReply>,
  ): Promise<FastifyReply> => {
    const body = { ...call.body, ...entered(proof) }
    const response = await app.callApi(request, {
      ...call,
      ...(Object.keys(body).length > 0 && { body }),
    })
    if (response.status < 400) return then(response)
    if (response.status === 401) return reply.redirectToPage('sign-in')
    reply.relay(response)
    const { errors } = response
    const toProve = repeat === undefined ? null : proofErrors(response)
    if (repeat !== undefined && toProve !== null) return sendProofPage(request, reply, repeat, toProve)
    if (call.method === 'DELETE' && response.status === 404)
      return reply.sendPage((pages, context) => pages.alreadyGonePage(context, errors))
    return form === undefined ? sendErrors(reply, errors) : form(errors)
  }

  app.get('', { schema: { hide: true } }, async (request, reply) => {
    const notice = reply.takeNotice()
    const account = await api(request, '/account')
    if (account.status === 401) return reply.redirectToPage('sign-in')
    const others = await Promise.all(
      ['sessions', 'totp', 'passkeys', 'api-keys'].map(name => api(request, `/account/${name}`)),
    )
    const failed = [account, ...others].find(({ status }) => status >= 400)
    if (failed !== undefined) return sendErrors(reply.relay(failed), failed.errors)
    const [sessions, totp, passkeys, apiKeys] = others.map(({ body }) => body)
    return reply.sendPage((pages, context) =>
      pages.securityPage(context, {
        account: account.body,
        sessions: sessions.results,
        totp,
        passkeys: passkeys.results,
        apiKeys: apiKeys.results,
        notice,
      }),
    )
  })

  app.post('/verify-email', { schema: { hide: true } }, (request, reply) =>
    act(request, reply, { call: { method: 'POST', path: '/account/verify-email/resend' } }, () =>
      reply.redirectToPage('security', 'mailSent'),
    ),
  )

  app.post('/sessions/end', hidden({ id: InputId }), (request, reply) => {
    const path = `/account/sessions/${request.validatedData.body.id}`
    // If it was this session, the page that follows asks to sign in.
    return act(request, reply, { call: { method: 'DELETE', path } }, response =>
      reply.relay(response).redirectToPage('security', 'session'),
    )
  })

  app.post('/sessions/end-others', { schema: { hide: true } }, (request, reply) =>
    act(request, reply, { call: { method: 'DELETE', path: '/account/sessions' } }, () =>
      reply.redirectToPage('security', 'sessions'),
    ),
  )

  const sendPasswordForm = async (
    request: FastifyRequest,
    reply: FastifyReply,
    errors: ApiResponse['errors'],
  ): Promise<FastifyReply> => {
    const account = await api(request, '/account')
    if (account.status === 401) return reply.redirectToPage('sign-in')
    const { email } = account.body
    return reply.sendPage((pages, context) => pages.changePasswordPage(context, { email, minLength, errors }))
  }

  app.get('/password', { schema: { hide: true } }, (request, reply) => sendPasswordForm(request, reply, {}))

  app.post('/password', hidden({ currentPassword: FormText, newPassword: FormText }), (request, reply) => {
    const call = { method: 'PUT', path: '/account/password', body: request.validatedData.body } as const
    const form = (errors: ApiResponse['errors']) => sendPasswordForm(request, reply, errors)
    return act(request, reply, { call, form }, response =>
      reply.relay(response).redirectToPage('security', 'password'),
    )
  })

  app.get('/proof', { schema: { hide: true } }, (request, reply) =>
    sendProofPage(request, reply, ['security/proof', {}], {}),
  )

  app.post('/proof', hidden(ProofFields), (request, reply) => {
    const call = { method: 'POST', path: '/account/reauthenticate', body: {} } as const
    const { body: proof } = request.validatedData
    return act(request, reply, { call, proof, repeat: ['security/proof', {}] }, () =>
      reply.redirectToPage('security', 'proof'),
    )
  })

  app.post('/totp', hidden(ProofFields), (request, reply) => {
    const call = { method: 'POST', path: '/account/totp' } as const
    const { body: proof } = request.validatedData
    return act(request, reply, { call, proof, repeat: ['security/totp', {}] }, ({ body: shown }) =>
      reply.sendPage((pages, context) => pages.newTotpPage(context, { shown })),
    )
  })

  app.post('/totp/confirm', hidden({ code: FormText }), (request, reply) => {
    const { body } = request.validatedData
    const call = { method: 'POST', path: '/account/totp/confirm', body } as const
    // The API shows a secret once, so the page with the QR code cannot be shown again.
    const form = async (errors: ApiResponse['errors']) => {
      const totp = await api(request, '/account/totp')
      const isOn = (totp.body.confirmedAt ?? null) !== null
      return reply.sendPage((pages, context) =>
        isOn ? pages.totpIsOnPage(context) : pages.newTotpPage(context, { shown: null, errors }),
      )
    }
    return act(request, reply, { call, form }, ({ body: { recoveryCodes } }) =>
      reply.sendPage((pages, context) => pages.recoveryCodesPage(context, recoveryCodes)),
    )
  })

  app.post('/totp/remove', hidden(ProofFields), (request, reply) => {
    const call = { method: 'DELETE', path: '/account/totp' } as const
    const { body: proof } = request.validatedData
    return act(request, reply, { call, proof, repeat: ['security/totp/remove', {}] }, () =>
      reply.redirectToPage('security', 'totpRemoved'),
    )
  })

  app.post('/recovery-codes', hidden(ProofFields), (request, reply) => {
    const call = { method: 'POST', path: '/account/recovery-codes' } as const
    const { body: proof } = request.validatedData
    return act(request, reply, { call, proof, repeat: ['security/recovery-codes', {}] }, ({ body }) =>
      reply.sendPage((pages, context) => pages.recoveryCodesPage(context, body.recoveryCodes)),
    )
  })

  app.post('/passkeys/remove', hidden({ id: InputId, ...ProofFields }), (request, reply) => {
    const { id, ...proof } = request.validatedData.body
    const call = { method: 'DELETE', path: `/account/passkeys/${id}` } as const
    return act(request, reply, { call, proof, repeat: ['security/passkeys/remove', { id }] }, () =>
      reply.redirectToPage('security', 'passkeyRemoved'),
    )
  })

  app.get('/api-keys', { schema: { hide: true } }, async (request, reply) =>
    (await api(request, '/account')).status === 401
      ? reply.redirectToPage('sign-in')
      : reply.sendPage((pages, context) => pages.newApiKeyPage(context, { scopes: userScopes })),
  )

  const scopeFields = Object.fromEntries(
    Object.keys(userScopes).map(scope => [`scope:${scope}`, Type.Optional(FormText)]),
  )
  const Lifetime = Type.Unsafe<string>({ type: 'string', enum: ['never', '30', '90', '365'] })

  app.post(
    '/api-keys',
    hidden({ name: FormText, lifetime: Lifetime, ...ProofFields, ...scopeFields }),
    async (request, reply) => {
      const { name, lifetime, password, code, ...checked } = request.validatedData.body
      const chosen = Object.keys(userScopes).filter(scope => `scope:${scope}` in checked)
      const form = (errors: ApiResponse['errors']): Promise<FastifyReply> =>
        reply.sendPage((pages, context) =>
          pages.newApiKeyPage(context, { scopes: userScopes, name, chosen, errors }),
        )
      // The API gives a key without scopes all of them. People choose.
      if (chosen.length === 0) {
        const errors = { scopes: ['is required'] }
        reply.relay({ status: 400, headers: {}, errors })
        return form(errors)
      }
      const expiresAt = lifetime === 'never' ? null : new Date(clock() + Number(lifetime) * DAY).toISOString()
      const body = { name, scopes: chosen, expiresAt }
      const fields = { name, lifetime, ...Object.fromEntries(chosen.map(scope => [`scope:${scope}`, 'on'])) }
      return act(
        request,
        reply,
        {
          call: { method: 'POST', path: '/account/api-keys', body },
          proof: { password, code },
          repeat: ['security/api-keys', fields],
          form,
        },
        ({ body: created }) =>
          reply.sendPage((pages, context) =>
            pages.apiKeyCreatedPage(context, created.apiKey.name, created.token),
          ),
      )
    },
  )

  app.post('/api-keys/revoke', hidden({ id: InputId }), (request, reply) => {
    const path = `/account/api-keys/${request.validatedData.body.id}`
    return act(request, reply, { call: { method: 'DELETE', path } }, () =>
      reply.redirectToPage('security', 'apiKeyRevoked'),
    )
  })
}

export default security
