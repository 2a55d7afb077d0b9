import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { ImportResult, UserLine } from '#core/accounts/bulk-users'
import { serializeImportResult } from '#core/accounts/serializers'
import { bulkPropertySchemasOf, credentialSchemasOf } from '#feature/assembly'
import { NDJSON } from '#http/validation/ndjson'
import { ImportedUser } from '#http/validation/schemas'
import { adminActor, adminKeyOf } from '#routes/request-context'
import { ErrorBody, Id } from '#routes/schemas'

const ImportedLine = Type.Object(
  {
    line: Type.Optional(
      Type.Integer({ description: 'From 1, counting blank lines; absent in the last result' }),
    ),
    status: Type.Unsafe<ImportResult['status']>({
      type: 'string',
      enum: ['created', 'exists', 'failed', 'finished', 'stopped'],
    }),
    id: Type.Optional(Id),
    errors: Type.Optional(ErrorBody.properties.errors),
    created: Type.Optional(Type.Integer()),
    exists: Type.Optional(Type.Integer()),
    failed: Type.Optional(Type.Integer()),
  },
  {
    title: 'ImportedLine',
    examples: [{ line: 1, status: 'created', id: '01936b7e-4a5c-7d3e-9f10-2b3c4d5e6f70' }],
  },
)

const importUsers: FastifyPluginAsyncTypebox = async app => {
  const { imports, features } = app.services
  app.acceptNdjson()
  /** The schema of one line; the handler reads the lines. */
  const Lines = Type.Unsafe<AsyncIterable<readonly UserLine[]>>(
    ImportedUser(
      app.config.metadataSchemas,
      await credentialSchemasOf(features),
      await bulkPropertySchemasOf(features),
    ),
  )

  app.post(
    '',
    {
      config: { scope: 'users:import' },
      schema: {
        operationId: 'importUsers',
        summary: 'Import users, one per line; the results are streamed while lines arrive',
        consumes: [NDJSON],
        body: Lines,
        produces: [NDJSON],
        response: { 200: { content: { [NDJSON]: { schema: ImportedLine } } } },
      },
    },
    async (request, reply) => {
      const serialize = (result: ImportResult) => {
        if (result.status === 'stopped') request.logFailure(result.error)
        return serializeImportResult(result)
      }
      const actor = adminActor(request)
      const key = adminKeyOf(request)
      async function* results() {
        const lines = app.requestAuthentication.whileAdmin(request, request.validatedData.body)
        for await (const batch of imports.run(lines, actor, key)) yield batch.map(serialize)
      }
      return reply.sendNdjson(results())
    },
  )
}

export default importUsers
