import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { FastifyRequest } from 'fastify'
import { noStore } from '#feature/no-store'
import { ERRORS } from '#features/totp/definitions'
import { AppCode, NewTotp, RecoveryCodes, Totp } from '#features/totp/routes/schemas'
import { serializeTotp } from '#features/totp/totp'
import { refuseImpersonation, userActor } from '#routes/request-context'
import { EndOthers, ErrorOf, Strict } from '#routes/schemas'

const totpOfAccount: FastifyPluginAsyncTypebox = async app => {
  const { totp } = app.services
  app.addHook('preSerialization', noStore)

  const changeOf = (request: FastifyRequest, { endOthers }: { readonly endOthers: boolean }) => ({
    endsOthers: endOthers,
    actor: userActor(request),
  })

  app.get(
    '/totp',
    {
      schema: {
        operationId: 'getTotp',
        summary: 'Whether you have an authenticator app, and how many recovery codes are left',
        response: { 200: Totp },
      },
    },
    async ({ user }) => serializeTotp(await totp.state(user.id)),
  )

  app.post(
    '/totp',
    {
      config: { reauthenticate: true },
      schema: {
        operationId: 'createTotp',
        summary: 'Get a secret for an authenticator app. Confirm it within an hour',
        response: { 201: NewTotp, 409: ErrorOf(ERRORS.totpExists) },
      },
    },
    async (request, reply) => {
      reply.code(201)
      return totp.begin(request.requirePrincipal())
    },
  )

  app.post(
    '/totp/confirm',
    {
      config: { rateLimit: 'password' },
      schema: {
        operationId: 'confirmTotp',
        summary: 'Confirm the secret with a code of the app. From now on, your password needs a code too',
        querystring: EndOthers,
        body: Strict({ code: AppCode }),
        response: { 200: RecoveryCodes, 409: ErrorOf(ERRORS.totpNotBegun) },
      },
    },
    async request => {
      refuseImpersonation(request)
      const { body, query } = request.validatedData
      const owner = request.requirePrincipal()
      return { recoveryCodes: await totp.confirm(owner, body.code, changeOf(request, query)) }
    },
  )

  app.delete(
    '/totp',
    {
      config: { reauthenticate: true },
      schema: {
        operationId: 'deleteTotp',
        summary: 'Remove the authenticator app and the recovery codes',
        querystring: EndOthers,
        response: { 204: Type.Null(), 404: ErrorOf(ERRORS.totpNotFound) },
      },
    },
    async (request, reply) => {
      await totp.remove(request.requirePrincipal(), changeOf(request, request.validatedData.query))
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/recovery-codes',
    {
      config: { reauthenticate: true },
      schema: {
        operationId: 'createRecoveryCodes',
        summary: 'Get new recovery codes. The former ones do not work any more',
        querystring: EndOthers,
        response: { 200: RecoveryCodes, 404: ErrorOf(ERRORS.totpNotFound) },
      },
    },
    async request => {
      const change = changeOf(request, request.validatedData.query)
      return { recoveryCodes: await totp.replaceRecoveryCodes(request.requirePrincipal(), change) }
    },
  )
}

export default totpOfAccount
