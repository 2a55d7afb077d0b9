import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { User } from '../../../src/users/user.ts'
import { linkToNext, presentAdminUser } from '../../presenters.ts'
import {
  AdminUser,
  AdminUserPage,
  Email,
  ErrorBody,
  IdParams,
  listProperties,
  Name,
  Strict,
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
  const { users, sessions, knownUsers } = app.services
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

  app.get(
    '/:id',
    {
      schema: {
        summary: 'A user',
        params: IdParams,
        response: { 200: AdminUser, 404: ErrorBody, 503: ErrorBody },
      },
    },
    async (request, reply) => {
      reply.header('cache-control', 'no-store')
      return present(await users.get(request.validatedData.params.id))
    },
  )

  app.delete(
    '/:id/sessions',
    {
      schema: {
        summary: 'End all sessions of a user',
        params: IdParams,
        response: { 204: Type.Null(), 404: ErrorBody, 503: ErrorBody },
      },
    },
    async (request, reply) => {
      await sessions.endAll(request.validatedData.params.id)
      return reply.code(204).send(null)
    },
  )

  app.put(
    '/:id',
    {
      schema: {
        summary: 'Change a user; disabling ends all sessions',
        params: IdParams,
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
