import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { ExportedUser as User } from '#core/accounts/bulk-users'
import { serializeExportedUser } from '#core/accounts/serializers'
import { bulkPropertySchemasOf, credentialSchemasOf } from '#feature/assembly'
import { NDJSON } from '#http/validation/ndjson'
import { adminKeyOf } from '#routes/request-context'
import { AdminUser, FactorCredentials, PasswordHash, Strict } from '#routes/schemas'

const Query = Strict({
  passwordHashes: Type.Boolean({
    default: false,
    description: 'Includes `passwordHash` and the `credentials` of factors, to import the users elsewhere',
  }),
})

const exportUsers: FastifyPluginAsyncTypebox = async app => {
  const { exports, features } = app.services
  const ExportedUser = Type.Composite(
    [
      AdminUser,
      Type.Object({
        passwordHash: Type.Optional(Type.String({ examples: PasswordHash.examples as string[] })),
        credentials: Type.Optional(FactorCredentials(await credentialSchemasOf(features))),
        ...(await bulkPropertySchemasOf(features)),
      }),
    ],
    {
      title: 'ExportedUser',
    },
  )

  app.get(
    '',
    {
      config: { scope: 'users:export', compress: true },
      schema: {
        operationId: 'exportUsers',
        summary: 'Export all users in order of creation, one per line',
        querystring: Query,
        produces: [NDJSON],
        response: { 200: { content: { [NDJSON]: { schema: ExportedUser } } } },
      },
    },
    async (request, reply) => {
      const { passwordHashes } = request.validatedData.query
      const contents = { withHash: passwordHashes }
      const serialize = (user: User) => serializeExportedUser(user, contents)
      const pages = app.requestAuthentication.whileAdmin(
        request,
        exports.pages(contents, adminKeyOf(request)),
      )
      // Read before the response starts, so that an unavailable store is a 503.
      const first = await pages.next()
      async function* lines() {
        if (!first.done) yield first.value.map(serialize)
        for await (const users of pages) yield users.map(serialize)
      }
      reply.header('content-disposition', 'attachment; filename="users.ndjson"')
      // Compressed, the length could reveal parts of a hash to somebody who chooses other values of the export (BREACH).
      if (passwordHashes) reply.header('cache-control', 'no-store, no-transform')
      return reply.sendNdjson(lines())
    },
  )
}

export default exportUsers
