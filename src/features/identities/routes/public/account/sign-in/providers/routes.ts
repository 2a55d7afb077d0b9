/** Sign-in with other providers. The callbacks link identities too. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { errorBody, ServiceError } from '#base/errors'
import { isApiKeyPrincipal, type SessionOwner } from '#core/auth/principal'
import { ERRORS } from '#features/identities/definitions'
import { serializeIdentity } from '#features/identities/identities'
import { confirmCodePage, confirmLinkPage, signInToLinkPage } from '#features/identities/pages'
import { CONTINUES, type Finished, type PendingFlow } from '#features/identities/provider-sign-ins'
import { clearFlow, flowOf, setFlow } from '#features/identities/routes/flow-cookie'
import {
  FlowSecret,
  Identity,
  ProviderList,
  ProviderParams,
  StartedFlow,
} from '#features/identities/routes/schemas'
import { returnToPage } from '#http/pages/return-links'
import { clientOf, preferredLocaleOf } from '#routes/request-context'
import { withHeaders } from '#routes/response-headers'
import {
  ErrorBody,
  ErrorOf,
  FormText,
  OptionalCode,
  ProofFields,
  pageForm,
  ReturnTo,
  SignedIn,
  Strict,
} from '#routes/schemas'
import { sendSignedIn } from '#routes/signed-in'

/** The session of a request, which may link an identity. An impersonated one may not. */
const ownerOf = ({ principal }: FastifyRequest): SessionOwner | null =>
  principal === null || isApiKeyPrincipal(principal) || principal.impersonatedBy !== null ? null : principal

/**
 * Whether the page offers a link to the account of the session. A stranger may have opened one with the address, and planted a session of it:
 * without a confirmed e-mail, the user has to sign in after the flow began.
 */
const isOfOwner = (
  { cachedUser: { user }, authenticatedAt }: SessionOwner,
  { email, begunAt }: Pick<PendingFlow, 'email' | 'begunAt'>,
): boolean => user.email === email && (user.emailVerified || authenticatedAt >= begunAt)

/** The response of a provider with `form_post`. It may have more, such as the names of the user. */
const FormResponse = Type.Object({
  code: Type.Optional(FormText),
  state: Type.Optional(FormText),
  iss: Type.Optional(FormText),
  error: Type.Optional(FormText),
})

/** The callback for browsers, and the page that it leads to if a code or a decision of the user is missing. */
const callbackPages: FastifyPluginAsyncTypebox = async app => {
  const { providerSignIns } = app.services
  const { hasPages, publicUrl, webUrl } = app.config
  app.servePages()

  const finish = (request: FastifyRequest, id: string, given: { url?: string; code?: string }) =>
    providerSignIns.finish(id, {
      ...given,
      flow: flowOf(request, id),
      owner: ownerOf(request),
      locale: preferredLocaleOf(request),
      client: clientOf(request),
    })

  const sendFinished = (reply: FastifyReply, id: string, finished: Finished): FastifyReply => {
    clearFlow(reply, id)
    const isLinked = 'linked' in finished
    if (!isLinked) reply.setAccessToken(finished.signedIn.accessToken, finished.signedIn.expiresAt)
    const { returnTo } = reply.request
    if (hasPages && isLinked) return reply.redirectToPage('security', 'identityLinked')
    if (hasPages) return returnTo === null ? reply.redirectToPage('security') : reply.redirectSignedIn()
    return reply.header('cache-control', 'no-store').redirect(returnTo ?? webUrl, 303)
  }

  app.get(
    '/:id/callback',
    {
      config: { rateLimit: 'sign-in' },
      // The parameters are the provider's, and verified with the flow.
      schema: { hide: true, params: ProviderParams, querystring: Type.Object({}) },
    },
    async (request, reply) => {
      const { id } = request.validatedData.params
      const provider = providerSignIns.find(id)
      // A code may contain `?` (RFC 3986 §3.4).
      const query = /\?.*/.exec(request.url)?.[0] ?? ''
      await app.loadReturnTo(request, flowOf(request, id))
      try {
        const url = providerSignIns.redirectUriOf(provider) + query
        return sendFinished(reply, id, await finish(request, id, { url }))
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error
        if (hasPages && CONTINUES.has(error.code))
          return reply.redirectToPage(`account/sign-in/providers/${id}/confirm`)
        if (hasPages) throw error
        const { status, field, message, headers } = error
        return reply.redirectToWebApp({ status, headers, body: null, ...errorBody(field, message) })
      }
    },
  )

  // A form of another site comes without cookies: the browser repeats it as a GET, which has that of the flow.
  app.post(
    '/:id/callback/form',
    { config: { isOpenToSites: true }, schema: { hide: true, params: ProviderParams, body: FormResponse } },
    async (request, reply) => {
      const { params, body } = request.validatedData
      const { id } = providerSignIns.find(params.id)
      const query = new URLSearchParams()
      for (const name of ['code', 'state', 'iss', 'error'] as const) {
        const value = body[name]
        if (value !== undefined) query.set(name, value)
      }
      return reply.redirectToPage(`account/sign-in/providers/${id}/callback?${query}`)
    },
  )

  if (!hasPages) return

  app.get('/:id/confirm', { schema: { hide: true, params: ProviderParams } }, async (request, reply) => {
    const { id } = request.validatedData.params
    await app.loadReturnTo(request, flowOf(request, id))
    const pending = await providerSignIns.pending(id, flowOf(request, id))
    if (!pending.asksToLink) return reply.sendPage(context => confirmCodePage(context, pending))
    const owner = ownerOf(request)
    if (owner !== null && isOfOwner(owner, pending))
      return reply.sendPage(context => confirmLinkPage(context, pending))
    const back = returnToPage(`account/sign-in/providers/${id}/confirm`, publicUrl)
    return reply.sendPage(context => signInToLinkPage(context, pending, back))
  })

  app.post(
    '/:id/link',
    { schema: { ...pageForm(ProofFields).schema, params: ProviderParams } },
    async (request, reply) => {
      const { params, body: proof } = request.validatedData
      const { id: provider } = params
      const flow = flowOf(request, provider)
      await app.loadReturnTo(request, flow)
      const body = { provider, flow }
      const call = { method: 'POST', path: '/account/identities/link', body } as const
      const repeat = { action: `account/sign-in/providers/${provider}/link` }
      return app.submitForm(request, reply, { call, proof, repeat }, () => {
        clearFlow(reply, provider)
        return request.returnTo === null
          ? reply.redirectToPage('security', 'identityLinked')
          : reply.redirectSignedIn()
      })
    },
  )

  app.post(
    '/:id/confirm',
    {
      config: { rateLimit: 'sign-in' },
      schema: { ...pageForm({ code: FormText }).schema, params: ProviderParams },
    },
    async (request, reply) => {
      const { params, body } = request.validatedData
      const { id } = params
      await app.loadReturnTo(request, flowOf(request, id))
      const pending = await providerSignIns.pending(id, flowOf(request, id))
      try {
        return sendFinished(reply, id, await finish(request, id, { code: body.code }))
      } catch (error) {
        if (!(error instanceof ServiceError && error.field === 'code')) throw error
        const { status, headers, field, message } = error
        const { errors } = errorBody(field, message)
        return reply
          .relay({ status, headers, errors })
          .sendPage(context => confirmCodePage(context, pending, errors))
      }
    },
  )
}

const providers: FastifyPluginAsyncTypebox = async app => {
  const { providerSignIns, returnTargets } = app.services

  app.get(
    '',
    {
      schema: {
        operationId: 'listProviders',
        summary: 'List the providers with whose accounts users sign in',
        response: { 200: ProviderList },
      },
    },
    async () => ({ results: providerSignIns.providers.map(({ id, name }) => ({ id, name })) }),
  )

  app.post(
    '/:id',
    {
      config: { rateLimit: 'sign-in' },
      schema: {
        operationId: 'startProviderSignIn',
        summary: 'Begin to sign in with a provider: get the URL to open',
        params: ProviderParams,
        body: Strict({ returnTo: ReturnTo(returnTargets) }),
        response: {
          201: withHeaders(StartedFlow, 'Set-Cookie'),
          404: ErrorOf(ERRORS.providerNotFound),
          503: ErrorBody,
        },
      },
    },
    async (request, reply) => {
      const { id } = request.validatedData.params
      const { returnTo } = request.validatedData.body
      const started = await providerSignIns.start(id, null, returnTargets.parse(returnTo))
      setFlow(reply, id, started.flow).code(201).header('cache-control', 'no-store')
      return started
    },
  )

  const Callback = Strict({
    url: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 8_192,
        description:
          'The whole URL to which the provider has sent the browser; absent once only the code is missing',
        examples: [
          'https://auth.example.com/account/sign-in/providers/google/callback?code=4%2F0Ab&state=Zr3k',
        ],
      }),
    ),
    flow: FlowSecret,
    code: OptionalCode,
  })

  app.post(
    '/:id/callback',
    {
      config: { rateLimit: 'sign-in' },
      schema: {
        operationId: 'finishProviderSignIn',
        summary: 'Sign in with the callback of a provider, or link the identity',
        params: ProviderParams,
        body: Callback,
        response: {
          200: withHeaders(SignedIn, 'Set-Cookie'),
          201: Identity,
          401: ErrorOf(ERRORS.providerRejected),
          403: ErrorOf(ERRORS.providerSignUpOff),
          404: ErrorOf(ERRORS.providerNotFound),
          409: ErrorOf(ERRORS.providerEmailTaken),
          503: ErrorBody,
        },
      },
    },
    async (request, reply) => {
      const { params, body } = request.validatedData
      const finished = await providerSignIns.finish(params.id, {
        ...body,
        owner: ownerOf(request),
        locale: preferredLocaleOf(request),
        client: clientOf(request),
      })
      reply.header('cache-control', 'no-store')
      if ('signedIn' in finished) return sendSignedIn(finished.signedIn, reply)
      return reply.code(201).send(serializeIdentity(finished.linked))
    },
  )

  app.register(callbackPages)
}

export default providers
