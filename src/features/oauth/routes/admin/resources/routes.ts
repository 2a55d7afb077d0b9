import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { noStore } from '#feature/no-store'
import { ERRORS } from '#features/oauth/definitions'
import { serializeResource } from '#features/oauth/resource'
import { adminActor } from '#routes/request-context'
import { ErrorOf, IdParams } from '#routes/schemas'
import { ChangedResource, NewResource, Resource, ResourceList } from '../../schemas.ts'

const reading = { scope: 'clients:read' } as const
const writing = { scope: 'clients:write' } as const

const resourceRoutes: FastifyPluginAsyncTypebox = async app => {
  const { resources } = app.services
  if (app.config.featureSettings.OAUTH === 'off') return
  app.addHook('preSerialization', noStore)

  app.post(
    '',
    {
      config: writing,
      schema: {
        operationId: 'createResource',
        summary: 'Add a resource: an API that accepts tokens which the authorization server issues for it',
        body: NewResource,
        response: { 201: Resource, 409: ErrorOf(ERRORS.identifierTaken) },
      },
    },
    async (request, reply) => {
      const { identifier, name, scopes = {}, clientIds = [] } = request.validatedData.body
      const options = { identifier, name, scopes, clientIds }
      reply.code(201)
      return serializeResource(await resources.create(options, adminActor(request)))
    },
  )

  app.get(
    '',
    {
      config: reading,
      schema: {
        operationId: 'listResources',
        summary: 'List all resources, oldest first',
        response: { 200: ResourceList },
      },
    },
    async () => ({ results: (await resources.list()).map(serializeResource) }),
  )

  app.get(
    '/:id',
    {
      config: reading,
      schema: {
        operationId: 'getResource',
        summary: 'Get a resource',
        params: IdParams,
        response: { 200: Resource, 404: ErrorOf(ERRORS.resourceNotFound) },
      },
    },
    async request => serializeResource(await resources.get(request.validatedData.params.id)),
  )

  app.put(
    '/:id',
    {
      config: writing,
      schema: {
        operationId: 'updateResource',
        summary: 'Change a resource. What is not given stays',
        params: IdParams,
        body: ChangedResource,
        response: {
          200: Resource,
          404: ErrorOf(ERRORS.resourceNotFound),
          409: ErrorOf(ERRORS.identifierTaken),
        },
      },
    },
    async request => {
      const { params, body } = request.validatedData
      return serializeResource(await resources.change(params.id, body, adminActor(request)))
    },
  )

  app.delete(
    '/:id',
    {
      config: writing,
      schema: {
        operationId: 'deleteResource',
        summary: 'Delete a resource. No further tokens are issued for it',
        params: IdParams,
        response: { 204: Type.Null(), 404: ErrorOf(ERRORS.resourceNotFound) },
      },
    },
    async (request, reply) => {
      await resources.remove(request.validatedData.params.id, adminActor(request))
      return reply.code(204).send(null)
    },
  )
}

export default resourceRoutes
