import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ERRORS } from '#features/totp/definitions'
import { RecoveryCodes } from '#features/totp/routes/schemas'
import { userActor } from '#routes/request-context'
import { EndOthers, ErrorBody, ErrorOf } from '#routes/schemas'

const recoveryCodes: FastifyPluginAsyncTypebox = async app => {
  const { totp } = app.services

  app.post(
    '',
    {
      config: { reauthenticate: true },
      schema: {
        operationId: 'createRecoveryCodes',
        summary: 'Get new recovery codes. The former ones do not work any more',
        querystring: EndOthers,
        response: { 200: RecoveryCodes, 404: ErrorOf(ERRORS.totpNotFound), 429: ErrorBody, 503: ErrorBody },
      },
    },
    async (request, reply) => {
      const { endOthers } = request.validatedData.query
      reply.header('cache-control', 'no-store')
      const change = { endsOthers: endOthers, actor: userActor(request) }
      return { recoveryCodes: await totp.replaceRecoveryCodes(request.requirePrincipal(), change) }
    },
  )
}

export default recoveryCodes
