/** The PIN of the user. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { FastifyRequest } from 'fastify'
import { actingSession, type ServicesOf } from '#feature/declaration'
import { userActor } from '#routes/request-context'
import { ErrorBody, ErrorOf, PatternText, Strict } from '#routes/schemas'
import { ERRORS, type pins as feature } from '../../../../pins.ts'

const NewPin = Strict({ pin: PatternText('^[0-9]{4}$', 'must be four digits', { examples: ['4711'] }) })

const ownerOf = (request: FastifyRequest) => ({
  user: request.user,
  session: actingSession(request.requirePrincipal()),
  actor: userActor(request),
})

const routes: FastifyPluginAsyncTypebox = async app => {
  const { pins } = app.services as typeof app.services & ServicesOf<[typeof feature]>

  app.put(
    '',
    {
      config: { reauthenticate: true },
      schema: {
        operationId: 'setPin',
        summary: 'Set your PIN',
        body: NewPin,
        response: { 204: Type.Null(), 503: ErrorBody },
      },
    },
    async (request, reply) => {
      await pins.set(ownerOf(request), request.validatedData.body.pin)
      return reply.code(204).send(null)
    },
  )

  app.delete(
    '',
    {
      config: { reauthenticate: true },
      schema: {
        operationId: 'removePin',
        summary: 'Remove your PIN',
        response: {
          204: Type.Null(),
          404: ErrorOf(ERRORS.pinNotFound),
          409: ErrorOf('lastSignInMethod'),
          503: ErrorBody,
        },
      },
    },
    async (request, reply) => {
      await pins.remove(ownerOf(request))
      return reply.code(204).send(null)
    },
  )
}

export default routes
