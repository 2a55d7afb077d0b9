/** Organizations, their members and invitations: entities, and what of them the store, the use cases and HTTP share. */

import type { SessionOwner } from '#core/auth/principal'
import type { User } from '#core/users/user'

/** Timestamps are milliseconds since the epoch. */
export interface Organization {
  readonly id: string
  readonly name: string
  /** Unique, see `slugs.ts`. */
  readonly slug: string
  /** Seats; `null` for any number. */
  readonly maxMembers: number | null
  readonly createdAt: number
  readonly updatedAt: number
}

/** A membership, as the list of the members has it. */
export interface Member {
  /** UUIDv7 of the time when the user became a member: members are listed in this order. */
  readonly id: string
  readonly userId: string
  readonly firstName: string | null
  readonly lastName: string | null
  readonly email: string
  /** Sorted, at least one. */
  readonly roles: readonly string[]
  readonly joinedAt: number
}

/** A membership, as the list of a user's organizations has it. */
export interface OwnOrganization extends Organization {
  readonly membershipId: string
  readonly roles: readonly string[]
  readonly joinedAt: number
}

export interface Invitation {
  readonly id: string
  readonly organizationId: string
  /** In canonical form. */
  readonly email: string
  readonly roles: readonly string[]
  /** The id of the user who has sent it. */
  readonly invitedBy: string
  readonly createdAt: number
  readonly expiresAt: number
}

/** An invitation, as its recipient sees it. */
export interface OwnInvitation extends Omit<Invitation, 'email'> {
  readonly organizationName: string
}

/** What its page shows of an invitation, before anybody has accepted it. */
export interface ShownInvitation extends Pick<Invitation, 'email' | 'roles' | 'expiresAt'> {
  readonly organizationName: string
}

/** The member who makes a change, in a session or with an API key. */
export interface ActingMember {
  readonly userId: string
  readonly credentialId: string
}

/** `null`: an administrator, or the operator. */
export type Acting = ActingMember | null

export const actingMember = ({ cachedUser, credentialId }: SessionOwner): ActingMember => ({
  userId: cachedUser.user.id,
  credentialId,
})

/** @param owner `null` for an administrator. */
export const actingOf = (owner: SessionOwner | null): Acting => owner && actingMember(owner)

export const OWNER = 'owner'
export const ADMIN = 'admin'
export const MEMBER = 'member'

/** What a set of roles allows: the lower, the more. Owners manage everything, admins the members without these two roles. */
export type Rank = 0 | 1 | 2
export const OWNER_RANK = 0
export const ADMIN_RANK = 1
export const MEMBER_RANK = 2

export const rankOf = (roles: readonly string[]): Rank => {
  if (roles.includes(OWNER)) return OWNER_RANK
  return roles.includes(ADMIN) ? ADMIN_RANK : MEMBER_RANK
}

/** Roles as text: each once, sorted, so that equal sets have equal texts. */
export const rolesColumn = (roles: readonly string[]): string =>
  JSON.stringify([...new Set(roles)].toSorted())

/** Few different sets exist, and each cached membership refers to one: 10,000 of them share a handful of arrays. */
const sets = new Map<string, readonly string[]>()
const MAX_SETS = 1_000

export const toRoles = (column: string): readonly string[] => {
  const known = sets.get(column)
  if (known !== undefined) return known
  const roles: readonly string[] = Object.freeze(JSON.parse(column))
  if (sets.size < MAX_SETS) sets.set(column, roles)
  return roles
}

/** Memberships of one user at most: they are read together, and cached. */
export const MAX_MEMBERSHIPS = 1_000

/** Invitations that wait for one address, and are listed, at most. */
export const MAX_LISTED_INVITATIONS = 100

/** A member who is mailed: who is disabled, or has no confirmed e-mail, is not. */
export interface Recipient {
  readonly userId: string
  readonly email: string
  readonly locale: string | null
}

/** Whether a user can be a {@link Recipient}. */
export const isReachable = ({ disabled, emailVerified }: Pick<User, 'disabled' | 'emailVerified'>): boolean =>
  emailVerified && !disabled

/** Members who are mailed about one change: a tenth of the mails that can wait. */
export const MAX_RECIPIENTS = 1_000

/** Milliseconds for which an invitation works. */
export const INVITATION_LIFETIME = 7 * 86_400_000

/** Whether the member manages members and invitations, and sees e-mails. */
export const mayManageMembers = (roles: readonly string[]): boolean => rankOf(roles) < MEMBER_RANK
