/** Notes that their users share by a code, for everybody. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { ServicesOf } from '#feature/declaration'
import { ErrorBody, ErrorOf, Strict } from '#routes/schemas'
import { ERRORS, type notes as feature } from '../../../notes.ts'

const Code = Strict({
  code: Type.String({ minLength: 1, maxLength: 64, examples: ['Jx3nV0c9Q2m8tYbR5uWk1A'] }),
})
const SharedNote = Type.Object({ text: Type.String() }, { title: 'SharedNote' })

const routes: FastifyPluginAsyncTypebox = async app => {
  const { notes } = app.services as typeof app.services & ServicesOf<[typeof feature]>

  app.post(
    '',
    {
      config: { rateLimit: 'shared-notes' },
      schema: {
        operationId: 'readSharedNote',
        summary: 'Read a note with a code, which works once',
        body: Code,
        response: { 200: SharedNote, 404: ErrorOf(ERRORS.noteCodeNotFound), 429: ErrorBody, 503: ErrorBody },
      },
    },
    async (request, reply) => {
      const { text } = await notes.readShared(request.validatedData.body.code)
      reply.header('cache-control', 'no-store')
      return { text }
    },
  )
}

export default routes
