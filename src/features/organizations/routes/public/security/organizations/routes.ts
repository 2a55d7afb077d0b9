/** Pages of the organizations of a user. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { LIST, organizationsPage } from '#features/organizations/pages'
import type { ApiResponse } from '#http/pages/feature-pages'
import { FormText, pageForm } from '#routes/schemas'

const Query = Type.Object({ cursor: Type.Optional(FormText) })

const organizationPages: FastifyPluginAsyncTypebox = async app => {
  if (!app.config.hasPages) return
  app.servePages()

  const sendList = async (
    request: FastifyRequest,
    reply: FastifyReply,
    state: {
      readonly cursor?: string | undefined
      readonly name?: string
      readonly errors?: ApiResponse['errors']
    },
  ): Promise<FastifyReply> => {
    const notice = reply.takeNotice()
    const query = state.cursor === undefined ? '' : `?${new URLSearchParams({ cursor: state.cursor })}`
    const [organizations, waiting] = await Promise.all([
      app.callApi(request, { method: 'GET', path: `/organizations${query}` }),
      app.callApi(request, { method: 'GET', path: '/account/invitations' }),
    ])
    const failed = [organizations, waiting].find(({ status }) => status >= 400)
    if (failed !== undefined) return reply.sendFailure(failed)
    return reply.sendPage(context =>
      organizationsPage(context, {
        organizations: organizations.body,
        waiting: waiting.body.results,
        notice: context.notices.get(notice ?? ''),
        ...(state.name !== undefined && { name: state.name }),
        ...(state.errors !== undefined && { errors: state.errors }),
      }),
    )
  }

  app.get('', { schema: { hide: true, querystring: Query } }, (request, reply) =>
    sendList(request, reply, request.validatedData.query),
  )

  app.post('', pageForm({ name: FormText }), (request, reply) => {
    const { name } = request.validatedData.body
    const call = { method: 'POST', path: '/organizations', body: { name } } as const
    const form = (errors: ApiResponse['errors']) => sendList(request, reply, { name, errors })
    return app.submitForm(request, reply, { call, form }, ({ body }) =>
      reply.redirectToPage(`${LIST}/${body.id}`, 'organizationSaved'),
    )
  })
}

export default organizationPages
