/**
 * Forms of signed-in users: they call the API, ask for a proof of identity where the API wants one, and show its errors. For the pages of
 * account security, and those of features.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { needsCode } from '#core/users/factors'
import type { ApiCall, ApiResponse } from '#http/pages/feature-pages'
import { alreadyGonePage, proofPage, signInAgainPage } from '#http/pages/security'
import { errorPage } from '#http/pages/signed-out'

/** A form that the page of the proof sends again. */
interface RepeatedForm {
  /** Its URL, relative to the root of the pages. */
  readonly action: string
  readonly fields?: Readonly<Record<string, string>>
}

/** RFC 9470 §3. */
const needsProof = ({ status, headers }: ApiResponse): boolean =>
  status === 403 && String(headers['www-authenticate']).includes('insufficient_user_authentication')

/** @returns the errors of the form that asks for a proof; `null` if the error is another one, such as a code that was not found. */
const proofErrors = (response: ApiResponse): ApiResponse['errors'] | null => {
  const { status, errors } = response
  if (needsProof(response)) return {}
  return status === 400 && ('password' in errors || 'code' in errors) ? errors : null
}

type Proof = Readonly<Partial<Record<'password' | 'code', string | undefined>>>

const entered = ({ password, code }: Proof): Proof => ({
  ...(password && { password }),
  ...(code && { code }),
})

interface Submission {
  readonly call: ApiCall
  readonly proof?: Proof
  /** The form to repeat with a proof. */
  readonly repeat?: RepeatedForm
  /** Shows the form again, with its errors. By default there is a page with the errors alone. */
  readonly form?: (errors: ApiResponse['errors']) => Promise<FastifyReply>
}

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * Calls the API for a form, asks for a proof of identity where that is needed, and shows the errors. A request without a session (401
     * with the field `global`) is led to the sign-in page.
     * @param then sends the response if the call has succeeded.
     */
    submitForm(
      request: FastifyRequest,
      reply: FastifyReply,
      submission: Submission,
      then: (response: ApiResponse) => FastifyReply | Promise<FastifyReply>,
    ): Promise<FastifyReply>
    /** Sends the form that asks for a proof of identity. @param repeat the form that is sent with it. */
    sendProofPage(
      request: FastifyRequest,
      reply: FastifyReply,
      repeat: RepeatedForm,
      errors?: ApiResponse['errors'],
    ): Promise<FastifyReply>
  }
}

/** Whether the request has no session. A 401 of a field is a wrong secret instead, such as a PIN, which the form shows. */
const isSignedOut = ({ status, errors }: ApiResponse): boolean => status === 401 && 'global' in errors

const pageForms = async (app: FastifyInstance): Promise<void> => {
  const api = (request: FastifyRequest, path: string): Promise<ApiResponse> =>
    app.callApi(request, { method: 'GET', path })

  app.decorate('sendProofPage', async (request, reply, { action, fields = {} }, errors = {}) => {
    const account = await api(request, '/account')
    if (account.status >= 400) return reply.sendFailure(account)
    const { email } = account.body
    const { user } = request.requirePrincipal().cachedUser
    const hasCodes = needsCode(user)
    if (!hasCodes && !user.hasPassword) return reply.sendPage(signInAgainPage)
    return reply.sendPage(context => proofPage(context, { action, fields, email, hasCodes, errors }))
  })

  app.decorate('submitForm', async (request, reply, { call, proof = {}, repeat, form }, then) => {
    const body = { ...call.body, ...entered(proof) }
    const response = await app.callApi(request, {
      ...call,
      ...(Object.keys(body).length > 0 && { body }),
    })
    if (response.status < 400) return then(response)
    const { errors } = response
    if (isSignedOut(response)) return reply.redirectToPage('sign-in')
    reply.relay(response)
    const toProve = repeat === undefined ? null : proofErrors(response)
    if (repeat !== undefined && toProve !== null) return app.sendProofPage(request, reply, repeat, toProve)
    if (call.method === 'DELETE' && response.status === 404)
      return reply.sendPage(context => alreadyGonePage(context, errors))
    return form === undefined ? reply.sendPage(context => errorPage(context, errors)) : form(errors)
  })
}

export default fp(pageForms, { name: 'page-forms', dependencies: ['pages'] })
