/** TypeBox schemas of organizations. */
import { type TSchema, Type } from '@sinclair/typebox'
import type { ReturnTargets } from '#core/return-targets/return-targets'
import {
  Email,
  Id,
  InputId,
  NextCursor,
  NullableText,
  ReturnTo,
  Strict,
  Texts,
  Timestamp,
  withExample,
} from '#routes/schemas'
import { MaxMembers, Name, Roles, Slug } from '../input-schemas.ts'

export { MemberRoles, NewOrganization } from '../input-schemas.ts'

export const OrganizationParams = Strict({ organizationId: InputId })
export const MemberParams = Strict({ organizationId: InputId, userId: InputId })
export const InvitationParams = Strict({ organizationId: InputId, invitationId: InputId })

const changes = { name: Type.Optional(Name), slug: Type.Optional(Slug) }

export const ChangedOrganization = Strict(changes, { minProperties: 1 })

export const AdministeredOrganization = Strict(
  { ...changes, maxMembers: Type.Optional(MaxMembers) },
  { minProperties: 1 },
)

export const NewInvitation = (known: readonly string[], targets: ReturnTargets) =>
  Strict({ email: Email, roles: Roles(known), returnTo: ReturnTo(targets) })

const PageOf = <Item extends TSchema>(item: Item, title: string) =>
  Type.Object({ results: Type.Array(item), nextCursor: NextCursor }, { title })

const organizationProperties = {
  id: Id,
  name: Type.String({ examples: ['Example Inc.'] }),
  slug: Type.String({ examples: ['example-inc'] }),
  maxMembers: Type.Unsafe<number | null>({
    type: ['integer', 'null'],
    description: 'Seats; `null` for any number',
    examples: [null],
  }),
  createdAt: Timestamp,
  updatedAt: Timestamp,
}

export const Organization = Type.Object(organizationProperties, { title: 'Organization' })

export const OrganizationPage = PageOf(Organization, 'OrganizationPage')

const roles = Texts('member')

export const OwnOrganization = Type.Object(
  { ...organizationProperties, roles, joinedAt: Timestamp },
  { title: 'OwnOrganization' },
)

export const OwnOrganizationPage = PageOf(OwnOrganization, 'OwnOrganizationPage')

export const Member = Type.Object(
  {
    userId: Id,
    firstName: withExample(NullableText, 'Ann'),
    lastName: withExample(NullableText, 'Lee'),
    email: Type.Unsafe<string | null>({
      type: ['string', 'null'],
      description: 'For owners, admins and administrators; `null` for other members',
      examples: ['ann@example.com'],
    }),
    roles,
    joinedAt: Timestamp,
  },
  { title: 'Member' },
)

export const MemberPage = PageOf(Member, 'MemberPage')

export const Invitation = Type.Object(
  {
    id: Id,
    email: Type.String({ examples: ['bob@example.com'] }),
    roles,
    invitedBy: Type.String({ format: 'uuid', description: 'The id of the user who has sent it' }),
    createdAt: Timestamp,
    expiresAt: Timestamp,
  },
  { title: 'Invitation' },
)

export const InvitationPage = PageOf(Invitation, 'InvitationPage')

export const OwnInvitationList = Type.Object(
  {
    results: Type.Array(
      Type.Object(
        {
          id: Id,
          organization: Type.Object({ id: Id, name: organizationProperties.name }),
          roles,
          createdAt: Timestamp,
          expiresAt: Timestamp,
        },
        { title: 'OwnInvitation' },
      ),
    ),
  },
  { title: 'OwnInvitationList' },
)
