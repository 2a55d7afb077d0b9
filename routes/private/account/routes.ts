import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { presentAccount, sendAccount } from '../../presenters.ts'
import { Account, ErrorBody, Name, Strict } from '../../schemas.ts'

const Changes = Strict(
  { firstName: Type.Optional(Name), lastName: Type.Optional(Name) },
  { minProperties: 1 },
)

const account: FastifyPluginAsyncTypebox = async app => {
  const { users } = app.services

  app.get(
    '',
    { schema: { summary: 'The account of the user who asks', response: { 200: Account } } },
    // The hot path (DESIGN §6): nothing here waits, so the answer is sent without a promise.
    (request, reply) => {
      sendAccount(reply, request.getIdentity().known)
    },
  )

  app.put(
    '',
    { schema: { summary: 'Change the names', body: Changes, response: { 200: Account, 503: ErrorBody } } },
    async (request, reply) => {
      const { known } = request.getIdentity()
      const updated = await users.updateOwn(known.user.id, request.validatedData.body)
      reply.header('cache-control', 'no-store')
      return presentAccount(updated, known.lastRequestAt)
    },
  )
}

export default account
