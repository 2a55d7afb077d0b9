/** A route that needs a role. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { Id } from '#routes/schemas'

const Moderation = Type.Object({ moderator: Id })

const moderation: FastifyPluginAsyncTypebox = async app => {
  app.get(
    '',
    {
      config: { roles: ['moderator', 'moderator:chief'] },
      schema: { summary: 'The moderator of this request', response: { 200: Moderation } },
    },
    async request => ({ moderator: request.user.id }),
  )
}

export default moderation
