import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { disconnectSignal } from '#routes/request-context'
import { OptionalCode, PresentedPassword, Strict } from '#routes/schemas'

const reauthenticate: FastifyPluginAsyncTypebox = async app => {
  const { reauthentication } = app.services

  app.post(
    '',
    {
      config: { rateLimit: 'password', writeLimit: false },
      schema: {
        operationId: 'reauthenticate',
        summary: 'Prove your identity: for ten minutes, this session can use the routes that need it',
        body: Strict({
          password: Type.Optional(PresentedPassword),
          code: OptionalCode,
        }),
        response: { 204: Type.Null() },
      },
    },
    async (request, reply) => {
      const { password, code } = request.validatedData.body
      await reauthentication.renew(request.requirePrincipal(), {
        password,
        code,
        ip: request.clientAddress,
        signal: disconnectSignal(reply),
      })
      return reply.code(204).send(null)
    },
  )
}

export default reauthenticate
