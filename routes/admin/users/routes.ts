import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { User } from '../../../src/users/user.ts'
import { linkToNext, presentAdminUser } from '../../presenters.ts'
import {
  AdminUser,
  AdminUserPage,
  Email,
  ErrorBody,
  listProperties,
  Name,
  Strict,
  UserParams,
} from '../../schemas.ts'

const ListQuery = Strict({
  ...listProperties,
  email: Type.Optional(Email),
  disabled: Type.Optional(Type.Boolean()),
  count: Type.Optional(Type.Boolean({ description: 'Also count all matches; takes time with their number' })),
})

const Changes = Strict(
  {
    firstName: Type.Optional(Name),
    lastName: Type.Optional(Name),
    email: Type.Optional(Email),
    disabled: Type.Optional(Type.Boolean()),
    emailVerified: Type.Optional(Type.Boolean()),
  },
  { minProperties: 1 },
)

const users: FastifyPluginAsyncTypebox = async app => {
  const { users, knownUsers } = app.services
  const present = (user: User) => presentAdminUser(user, knownUsers.latest(user.id, user.lastRequestAt))

  app.get(
    '',
    {
      schema: {
        summary: 'Users, page by page',
        querystring: ListQuery,
        response: { 200: AdminUserPage, 503: ErrorBody },
      },
    },
    async (request, reply) => {
      const { limit, cursor, sort, count, ...asked } = request.validatedData.query
      const filter = { ...asked, searchEmail: true }
      const { users: found, nextCursor } = await users.list({ filter, limit, cursor, sort })
      linkToNext(request, reply.header('cache-control', 'no-store'), nextCursor)
      const page = { results: found.map(present), nextCursor }
      return count ? { ...page, total: await users.count(filter) } : page
    },
  )

  app.put(
    '/:id',
    {
      schema: {
        summary: 'Change a user; disabling ends all sessions',
        params: UserParams,
        body: Changes,
        response: { 200: AdminUser, 404: ErrorBody, 409: ErrorBody, 503: ErrorBody },
      },
    },
    async (request, reply) => {
      const { params, body } = request.validatedData
      reply.header('cache-control', 'no-store')
      return present(await users.update(params.id, body))
    },
  )
}

export default users
