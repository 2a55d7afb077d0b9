/** Organizations, through the API. */
import type { FastifyInstance } from 'fastify'
import { asAdmin, bearer, confirmedUser, type SignedUp } from './build.ts'
import { mailbox } from './mailbox.ts'

export interface TestOrganization {
  readonly id: string
  readonly slug: string
  readonly name: string
}

/** Sends a request of a user. */
export const call = async (
  app: FastifyInstance,
  { token }: Pick<SignedUp, 'token'>,
  method: 'GET' | 'POST' | 'PUT' | 'DELETE',
  url: string,
  payload?: object,
) => app.inject({ method, url, headers: bearer(token), ...(payload !== undefined && { payload }) })

/** As {@link call}, with the admin key. */
export const adminCall = async (
  app: FastifyInstance,
  method: 'GET' | 'POST' | 'PUT' | 'DELETE',
  url: string,
  payload?: object,
) => app.inject({ method, url, headers: asAdmin, ...(payload !== undefined && { payload }) })

let names = 0

/** An organization of this user. */
export const organizationOf = async (
  app: FastifyInstance,
  owner: SignedUp,
  fields: object = {},
): Promise<TestOrganization> => {
  names += 1
  const payload = { name: `Team ${process.pid} ${names}`, ...fields }
  const response = await call(app, owner, 'POST', '/organizations', payload)
  if (response.statusCode !== 201) throw new Error(`${response.statusCode}: ${response.body}`)
  return response.json()
}

/** Makes a user a member, by an administrator. */
export const addMember = async (
  app: FastifyInstance,
  organizationId: string,
  userId: string,
  roles: readonly string[] = ['member'],
): Promise<void> => {
  const response = await adminCall(app, 'PUT', `/admin/organizations/${organizationId}/members/${userId}`, {
    roles,
  })
  if (response.statusCode > 201) throw new Error(`${response.statusCode}: ${response.body}`)
}

/** Invites an address to an organization. @returns the link of the mail, without its origin. */
export const invitationLink = async (app: FastifyInstance, email: string): Promise<string> => {
  const owner = await confirmedUser(app)
  const { id } = await organizationOf(app, owner)
  await call(app, owner, 'POST', `/organizations/${id}/invitations`, { email, roles: ['member'] })
  return `/organizations/accept?token=${await mailbox(app).token(email, 'organizationInvitation')}`
}

/** An organization with an owner, an admin and a member; all have confirmed e-mails. */
export const team = async (app: FastifyInstance, fields: object = {}) => {
  const [owner, admin, member] = [
    await confirmedUser(app),
    await confirmedUser(app),
    await confirmedUser(app),
  ]
  const organization = await organizationOf(app, owner, fields)
  await addMember(app, organization.id, admin.id, ['admin'])
  await addMember(app, organization.id, member.id)
  return { organization, owner, admin, member, url: `/organizations/${organization.id}` }
}
