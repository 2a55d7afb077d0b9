import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { ADMIN_SCOPES_OF_FIELDS } from '#core/users/fields'
import { NewAccount } from '#http/validation/schemas'
import { adminActor, adminKeyOf, disconnectSignal } from '../../request-context.ts'
import { linkToNext, setETag, withHeaders } from '../../response-headers.ts'
import {
  AdminUser,
  AdminUserPage,
  Count,
  DEFAULT_LIMIT,
  ErrorOf,
  listProperties,
  MAX_LIMIT,
  Strict,
} from '../../schemas.ts'
import { serializeAdminUser } from '../../serializers.ts'
import { filterProperties, toFilter } from './filters.ts'

const ListQuery = Strict({
  ...listProperties,
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_LIMIT,
      description: `${DEFAULT_LIMIT} by default; ${MAX_LIMIT} with \`ids\`, so that one page holds all of them`,
    }),
  ),
  ...filterProperties,
  count: Type.Optional(
    Count('Count all matches too, which takes longer the more there are; or estimate how many there are'),
  ),
})

const users: FastifyPluginAsyncTypebox = async app => {
  const { users, newAccounts } = app.services

  app.get(
    '',
    {
      config: { scope: 'users:read', compress: true },
      schema: {
        operationId: 'listUsers',
        summary: 'List users, page by page',
        querystring: ListQuery,
        response: { 200: AdminUserPage },
      },
    },
    async (request, reply) => {
      const { cursor, sort, count, limit: requestedLimit, ...filters } = request.validatedData.query
      const filter = toFilter(filters)
      const limit = requestedLimit ?? (filter.ids === undefined ? DEFAULT_LIMIT : MAX_LIMIT)
      const { users: found, nextCursor } = await users.list({ filter, limit, cursor, sort })
      linkToNext(request, reply.header('cache-control', 'no-store'), nextCursor)
      const page = { results: found.map(user => serializeAdminUser(user)), nextCursor }
      if (count === 'approximate') return { ...page, approximateTotal: await users.estimate(filter) }
      return count ? { ...page, total: await users.count(filter) } : page
    },
  )

  app.post(
    '',
    {
      config: {
        scope: 'users:write',
        // What lets somebody in, or confirms who they are. Without it the owner of the mailbox chooses the first password.
        fieldScopes: {
          emailVerified: 'users:identity',
          password: 'users:identity',
          passwordHash: 'users:identity',
          ...ADMIN_SCOPES_OF_FIELDS,
        },
      },
      schema: {
        operationId: 'createUser',
        summary: 'Create an account; without a password the user has to reset it first',
        body: NewAccount(app.config.passwordMinLength, app.config.metadataSchemas),
        response: { 201: withHeaders(AdminUser, 'ETag', 'Location'), 409: ErrorOf('emailTaken') },
      },
    },
    async (request, reply) => {
      const { body } = request.validatedData
      const signal = disconnectSignal(reply)
      const user = await newAccounts.create(body, adminActor(request), signal, adminKeyOf(request))
      setETag(reply, user).header('cache-control', 'no-store').header('location', `${app.prefix}/${user.id}`)
      return reply.code(201).send(serializeAdminUser(user))
    },
  )
}

export default users
