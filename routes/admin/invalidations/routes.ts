/** What verifiers in other services ask, so that they can keep what introspection tells them (docs/verifying.md). */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { ServiceError } from '#base/errors'
import { MAX_CURSOR_LENGTH } from '#core/auth/invalidation-journal'
import { Invalidations, Strict } from '../../schemas.ts'

/** Cursors, each an id and a position. */
const CURSORS = '^(?:[0-9a-f-]{36}:[0-9]{1,15}(?:,[0-9a-f-]{36}:[0-9]{1,15})*)?$'

const invalidations: FastifyPluginAsyncTypebox = async app => {
  const { invalidationJournal } = app.services

  app.get(
    '',
    {
      config: { scope: 'tokens:introspect' },
      schema: {
        operationId: 'listInvalidations',
        summary: 'Wait up to 400 ms for users, keys and clients whose introspection must be asked again',
        querystring: Strict({
          after: Type.Optional(
            Type.String({
              pattern: CURSORS,
              maxLength: MAX_CURSOR_LENGTH,
              description:
                'The last `cursor` of each process that has responded, separated by commas; at most 64',
              examples: ['1b4e28ba-2fa1-4c6e-9d2f-0c8a5f1f3c11:42'],
            }),
          ),
        }),
        response: { 200: Invalidations },
      },
    },
    async (request, reply) => {
      const found = await invalidationJournal.since(request.validatedData.query.after ?? '')
      // It may have ended meanwhile.
      if (!(await app.requestAuthentication.isAdmin(request))) throw new ServiceError('adminKeyRequired')
      reply.header('cache-control', 'no-store')
      return found
    },
  )
}

export default invalidations
