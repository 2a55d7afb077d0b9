/** The errors, events, mails, settings and limits of organizations, which their use cases need. `feature.ts` declares the feature. */
import { Type } from '@sinclair/typebox'
import { INVALID_ROLE, isRole } from '#core/users/roles'
import {
  type DepsOf,
  defineErrors,
  integer,
  type Reader,
  ServiceError,
  SettingError,
} from '#feature/declaration'
import { MAILS } from './mails.ts'
import { ADMIN, MAX_MEMBERSHIPS, MEMBER, OWNER } from './organization.ts'
import { storedOrganizations } from './stored-organizations.ts'

export const ERRORS = defineErrors({
  nameAndSlug: { status: 400, field: 'slug', message: 'cannot be combined with name: give one of the two' },
  nameWithLink: { status: 400, field: 'name', message: 'must not contain "://" or "www."' },
  organizationRoleRequired: {
    status: 403,
    message: 'This needs a role in the organization that you do not have',
  },
  tokenOfOrganization: { status: 403, message: 'This token is limited to one organization' },
  invitationForAnother: {
    status: 403,
    message:
      'The invitation is for another e-mail, or yours is not confirmed: sign in to the account with the invited e-mail, and confirm it',
  },
  organizationNotFound: { status: 404, message: 'There is no such organization' },
  memberNotFound: { status: 404, message: 'There is no such member' },
  invitationNotFound: { status: 404, message: 'There is no such invitation' },
  slugTaken: { status: 409, field: 'slug', message: 'is already taken' },
  tooManyOrganizations: {
    status: 409,
    message: 'You have created as many organizations as you may: delete one first',
  },
  tooManyMemberships: {
    status: 409,
    message: `A user can be a member of ${MAX_MEMBERSHIPS} organizations: leave one first`,
  },
  tooManyInvitations: {
    status: 409,
    message: 'Too many invitations of the organization wait: revoke one first',
  },
  alreadyMember: { status: 409, message: 'This user is a member of the organization already' },
  noSeat: { status: 409, message: 'The organization has no seat left' },
  lastOwner: {
    status: 409,
    message: 'This is the last owner of the organization: make another member owner first, or delete it',
  },
  soleOwner: {
    status: 409,
    message:
      'You are the only owner of an organization with other members: make another member owner first, or delete it',
  },
})

/** Why operations of organizations refuse: their own errors, and those of the core. */
const REFUSALS = {
  ...ERRORS,
  signInRequired: 'signInRequired',
  userNotFound: 'userNotFound',
  badEmailToken: 'badEmailToken',
} as const

export const refusal = (name: keyof typeof REFUSALS): ServiceError => new ServiceError(REFUSALS[name])

/** Roles besides the built-in ones, separated by commas. */
const customRoles: Reader<readonly string[]> = value => {
  const roles = value
    .split(',')
    .map(role => role.trim())
    .filter(role => role !== '')
  const wrong = roles.find(role => !isRole(role))
  if (wrong !== undefined) throw new SettingError(INVALID_ROLE, wrong)
  return roles
}

const organization = Type.String({ description: 'The id of the organization' })
const OfOrganization = Type.Object({ organization })
const OfMember = Type.Object({
  organization,
  roles: Type.Array(Type.String(), { description: 'The roles in the organization' }),
})
const OfInvitation = Type.Object({
  organization,
  invitation: Type.String({ description: 'The id of the invitation' }),
})

export const definitions = {
  ...storedOrganizations,
  errors: ERRORS,
  mails: MAILS,
  events: {
    'organization.created': OfOrganization,
    'organization.changed': Type.Object({
      organization,
      fields: Type.Array(Type.String(), { description: 'The changed fields' }),
    }),
    'organization.deleted': OfOrganization,
    'organization.member-added': OfMember,
    'organization.member-changed': OfMember,
    'organization.member-removed': OfOrganization,
    'organization.invitation-created': OfInvitation,
    'organization.invitation-revoked': OfInvitation,
    'organization.invitation-accepted': OfInvitation,
  },
  userScopes: {
    'organizations:read': 'Read your organizations, their members and invitations',
    'organizations:write':
      'Create and change organizations, members and invitations, as far as your roles allow',
  },
  adminScopes: {
    'organizations:read': 'Read organizations and their members',
    'organizations:write': 'Change and delete organizations and their members',
  },
  rateLimits: { invitations: { points: 20, seconds: 60 } },
  settings: {
    ORGANIZATION_ROLES: {
      read: customRoles,
      default: '',
      shown: true,
      description: 'Roles in organizations besides owner, admin and member, separated by commas',
    },
    ORGANIZATION_MAX_MEMBERS: {
      read: integer(1, 1_000_000),
      default: null,
      shown: true,
      description:
        'Seats of new organizations, 1 to 1,000,000, which administrators can change; by default any number',
    },
    ORGANIZATION_MAX_CREATED: {
      read: integer(0, 10_000),
      default: '10',
      shown: true,
      description: 'Organizations that a user can create, 0 to 10,000',
    },
    ORGANIZATION_MAX_INVITATIONS: {
      read: integer(1, 1_000),
      default: '100',
      shown: true,
      description: 'Invitations of an organization that can wait at the same time, 1 to 1,000',
    },
    ORGANIZATION_DAILY_INVITATIONS: {
      read: integer(1, 10_000),
      default: '50',
      shown: true,
      description: 'Invitations that a user, and that an organization, can send within a day, 1 to 10,000',
    },
  },
} as const

export type OrganizationsDeps = DepsOf<typeof definitions>

export const rolesOf = ({ ORGANIZATION_ROLES }: OrganizationsDeps['settings']): readonly string[] => [
  ...new Set([OWNER, ADMIN, MEMBER, ...ORGANIZATION_ROLES]),
]
