/** Pages of one organization. The API checks who may do what. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { mayManageMembers } from '#features/organizations/organization'
import { deleteOrganizationPage, LIST, organizationPage, type SentForm } from '#features/organizations/pages'
import { OrganizationParams } from '#features/organizations/routes/schemas'
import type { ApiCall, ApiResponse } from '#http/pages/feature-pages'
import { FormText, InputId, ProofFields, pageForm } from '#routes/schemas'

const Query = Type.Object({ cursor: Type.Optional(FormText) })

const organizationPages: FastifyPluginAsyncTypebox = async app => {
  const { organizations } = app.services
  if (!app.config.hasPages) return
  app.servePages()

  const roleFields = Object.fromEntries(
    organizations.roles.map(role => [`role:${role}`, Type.Optional(FormText)]),
  )
  const rolesIn = (body: object): string[] => organizations.roles.filter(role => `role:${role}` in body)
  const page = <Properties extends Parameters<typeof pageForm>[0]>(properties: Properties) => {
    const { schema } = pageForm(properties)
    return { schema: { ...schema, params: OrganizationParams } }
  }

  const get = (request: FastifyRequest, organizationId: string, below = ''): Promise<ApiResponse> =>
    app.callApi(request, {
      method: 'GET',
      path: `/organizations/:organizationId${below}`,
      params: { organizationId },
    })

  const sendOrganization = async (
    request: FastifyRequest,
    reply: FastifyReply,
    id: string,
    state: { readonly cursor?: string | undefined; readonly sent?: SentForm } = {},
  ): Promise<FastifyReply> => {
    const notice = reply.takeNotice()
    const organization = await get(request, id)
    if (organization.status >= 400) return reply.sendFailure(organization)
    const query = state.cursor === undefined ? '' : `?${new URLSearchParams({ cursor: state.cursor })}`
    const [members, invitations] = await Promise.all([
      get(request, id, `/members${query}`),
      mayManageMembers(organization.body.roles) ? get(request, id, '/invitations?limit=100') : null,
    ])
    const failed = [members, invitations].find(response => response !== null && response.status >= 400)
    if (failed != null) return reply.sendFailure(failed)
    const userId = request.requirePrincipal().cachedUser.user.id
    return reply.sendPage(context =>
      organizationPage(context, {
        organization: organization.body,
        userId,
        members: members.body,
        invitations: invitations?.body ?? null,
        roles: organizations.roles,
        notice: context.notices.get(notice ?? ''),
        ...(state.sent !== undefined && { sent: state.sent }),
      }),
    )
  }

  /** Calls the API for a form. @param sent the form, to show it again with the errors. */
  const submit = (
    request: FastifyRequest,
    reply: FastifyReply,
    call: ApiCall,
    notice: string,
    sent?: Omit<SentForm, 'errors'>,
  ): Promise<FastifyReply> => {
    const { organizationId } = call.params as { readonly organizationId: string }
    const form = (errors: SentForm['errors']) =>
      sendOrganization(request, reply, organizationId, sent && { sent: { ...sent, errors } })
    return app.submitForm(request, reply, { call, ...(sent && { form }) }, () =>
      reply.redirectToPage(`${LIST}/${organizationId}`, notice),
    )
  }

  app.get(
    '',
    { schema: { hide: true, params: OrganizationParams, querystring: Query } },
    (request, reply) => {
      const { params, query } = request.validatedData
      return sendOrganization(request, reply, params.organizationId, query)
    },
  )

  app.post('/settings', page({ name: FormText, slug: FormText }), (request, reply) => {
    const { params, body } = request.validatedData
    const call = { method: 'PUT', path: '/organizations/:organizationId', params, body } as const
    return submit(request, reply, call, 'organizationSaved', { form: 'settings', values: body })
  })

  app.post('/invite', page({ email: FormText, ...roleFields }), (request, reply) => {
    const { params, body } = request.validatedData
    const { email } = body as { readonly email: string }
    const roles = rolesIn(body)
    const path = '/organizations/:organizationId/invitations'
    const call = { method: 'POST', path, params, body: { email, roles } } as const
    return submit(request, reply, call, 'invitationSent', { form: 'invite', values: { email }, roles })
  })

  app.post('/revoke', page({ id: InputId }), (request, reply) => {
    const { params, body } = request.validatedData
    const path = '/organizations/:organizationId/invitations/:id'
    const call = { method: 'DELETE', path, params: { ...params, id: body.id } } as const
    return submit(request, reply, call, 'invitationRevoked')
  })

  app.post('/roles', page({ id: InputId, ...roleFields }), (request, reply) => {
    const { params, body } = request.validatedData
    const { id } = body as { readonly id: string }
    const path = '/organizations/:organizationId/members/:id'
    const call = { method: 'PUT', path, params: { ...params, id }, body: { roles: rolesIn(body) } } as const
    return submit(request, reply, call, 'memberChanged', { form: 'roles', values: { id } })
  })

  app.post('/remove', page({ id: InputId }), (request, reply) => {
    const { params, body } = request.validatedData
    const path = '/organizations/:organizationId/members/:id'
    const call = { method: 'DELETE', path, params: { ...params, id: body.id } } as const
    if (request.requirePrincipal().cachedUser.user.id !== body.id)
      return submit(request, reply, call, 'memberRemoved')
    return app.submitForm(request, reply, { call }, () => reply.redirectToPage(LIST, 'organizationLeft'))
  })

  app.get('/delete', { schema: { hide: true, params: OrganizationParams } }, async (request, reply) => {
    const { organizationId } = request.validatedData.params
    const organization = await get(request, organizationId)
    return organization.status >= 400
      ? reply.sendFailure(organization)
      : reply.sendPage(context => deleteOrganizationPage(context, organization.body))
  })

  app.post('/delete', page(ProofFields), (request, reply) => {
    const { params, body: proof } = request.validatedData
    const call = { method: 'DELETE', path: '/organizations/:organizationId', params } as const
    const repeat = { action: `${LIST}/${params.organizationId}/delete` }
    return app.submitForm(request, reply, { call, proof, repeat }, () =>
      reply.redirectToPage(LIST, 'organizationDeleted'),
    )
  })
}

export default organizationPages
