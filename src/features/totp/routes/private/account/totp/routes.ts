import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { ERRORS } from '#features/totp/definitions'
import { AppCode, NewTotp, RecoveryCodes, Totp } from '#features/totp/routes/schemas'
import { serializeTotp } from '#features/totp/totp'
import { refuseImpersonation, userActor } from '#routes/request-context'
import { EndOthers, ErrorBody, ErrorOf, Strict } from '#routes/schemas'

const totpOfAccount: FastifyPluginAsyncTypebox = async app => {
  const { totp } = app.services

  app.get(
    '',
    {
      schema: {
        operationId: 'getTotp',
        summary: 'Whether you have an authenticator app, and how many recovery codes are left',
        response: { 200: Totp, 503: ErrorBody },
      },
    },
    async (request, reply) => {
      reply.header('cache-control', 'no-store')
      return serializeTotp(await totp.state(request.user.id))
    },
  )

  app.post(
    '',
    {
      config: { reauthenticate: true },
      schema: {
        operationId: 'createTotp',
        summary: 'Get a secret for an authenticator app. Confirm it within an hour',
        response: { 201: NewTotp, 409: ErrorOf(ERRORS.totpExists), 429: ErrorBody, 503: ErrorBody },
      },
    },
    async (request, reply) => {
      reply.code(201).header('cache-control', 'no-store')
      return totp.begin(request.requirePrincipal())
    },
  )

  app.post(
    '/confirm',
    {
      config: { rateLimit: 'password' },
      schema: {
        operationId: 'confirmTotp',
        summary: 'Confirm the secret with a code of the app. From now on, your password needs a code too',
        querystring: EndOthers,
        body: Strict({ code: AppCode }),
        response: { 200: RecoveryCodes, 409: ErrorOf(ERRORS.totpNotBegun), 429: ErrorBody, 503: ErrorBody },
      },
    },
    async (request, reply) => {
      refuseImpersonation(request)
      const { body, query } = request.validatedData
      reply.header('cache-control', 'no-store')
      const change = { endsOthers: query.endOthers, actor: userActor(request) }
      return { recoveryCodes: await totp.confirm(request.requirePrincipal(), body.code, change) }
    },
  )

  app.delete(
    '',
    {
      config: { reauthenticate: true },
      schema: {
        operationId: 'deleteTotp',
        summary: 'Remove the authenticator app and the recovery codes',
        querystring: EndOthers,
        response: { 204: Type.Null(), 404: ErrorOf(ERRORS.totpNotFound), 429: ErrorBody, 503: ErrorBody },
      },
    },
    async (request, reply) => {
      const { endOthers } = request.validatedData.query
      await totp.remove(request.requirePrincipal(), { endsOthers: endOthers, actor: userActor(request) })
      return reply.code(204).send(null)
    },
  )
}

export default totpOfAccount
