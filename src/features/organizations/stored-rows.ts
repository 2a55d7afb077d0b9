/** The rows of organizations, their members and invitations, and what their operations share. Locks: the organization, then users by id. */
import type { AuditEvent } from '#core/audit-log/event'
import { recordUnlessRevoked } from '#core/audit-log/stored-events'
import { refusalOf } from '#core/users/refusals'
import { lockUser } from '#core/users/user-locks'
import { firstRow, type Statement, type Steps, USER_KEY } from '#storage/operations/operation'
import {
  type Acting,
  ADMIN,
  MAX_MEMBERSHIPS,
  type Organization,
  OWNER,
  OWNER_RANK,
  type Rank,
  rankOf,
  rolesColumn,
  toRoles,
} from './organization.ts'

/** Times are milliseconds since the epoch. */
export interface OrganizationsTable {
  id: string
  /** The id once the organization is deleted. */
  slug: string
  name: string
  /** The name, case-folded for sorting and search (`searchKey`). */
  search_name: string
  max_members: number | null
  /** The id of the user who has created it: not a reference, because it outlives the user. */
  created_by: string | null
  created_at: number
  updated_at: number
  /** 0: it is not deleted. */
  deleted_at: number
}

export interface MembersTable {
  /** UUIDv7 of the time when the user became a member. */
  id: string
  organization_id: string
  user_key: number
  /** A JSON array, see `rolesColumn`. */
  roles: string
  /** 0: an owner, 1: an admin, 2: another member (`rankOf`). */
  rank: number
  created_at: number
  /** Increases with each change. */
  updated_at: number
}

export interface InvitationsTable {
  id: string
  organization_id: string
  email: string
  /** The digest of the token, which only the mail has. */
  digest: string
  roles: string
  invited_by: string
  created_at: number
  expires_at: number
}

/** The columns of an {@link Organization}. */
export const ORGANIZATION_COLUMNS = `organizations.id, name, slug, max_members AS "maxMembers",
  organizations.created_at AS "createdAt", organizations.updated_at AS "updatedAt"`

/** Why an operation in an organization did nothing. `signInRequired`: the user who asks was removed or disabled, or the session has ended. */
export type ActingRefusal = 'signInRequired' | 'organizationNotFound' | 'organizationRoleRequired'

/** The lock on an organization, in the order of arrival: by name, because a wait for its row would give the events of users a wrong order. */
export const lockByIdStatement = (id: string): Statement => ({
  text: ({ lockByName }) => lockByName('$1'),
  values: [id],
})

/** @returns `undefined` if there is no such organization, or it is deleted. */
export const lockOrganization = function* (id: string): Steps<Organization | undefined> {
  yield lockByIdStatement(id)
  return yield* firstRow<Organization>({
    text: `SELECT ${ORGANIZATION_COLUMNS} FROM organizations WHERE id = $1 AND deleted_at = 0`,
    values: [id],
  })
}

export interface LockedMember {
  readonly id: string
  readonly roles: readonly string[]
  readonly rank: Rank
}

/** The membership of a user, in an organization that is locked. */
export function* memberOf(organizationId: string, userId: string): Steps<LockedMember | undefined> {
  const row = yield* firstRow<{ id: string; roles: string }>({
    text: `SELECT id, roles FROM organization_members WHERE organization_id = $2 AND user_key = ${USER_KEY}`,
    values: [userId, organizationId],
  })
  if (row === undefined) return undefined
  const roles = toRoles(row.roles)
  return { id: row.id, roles, rank: rankOf(roles) }
}

/** What an operation knows after {@link lockFor}. */
export interface Locked {
  readonly organization: Organization
  /** The rank of the member who asks; that of an owner for administrators. */
  readonly rank: Rank
}

/**
 * Locks an organization, the member who asks, and another user, and checks that the member still has the right.
 * @param needed the lowest right that suffices.
 * @param otherId a user who may not exist.
 */
export function* lockFor(
  organizationId: string,
  acting: Acting,
  needed: Rank,
  otherId: string | null = null,
): Steps<Locked | ActingRefusal> {
  const organization = yield* lockOrganization(organizationId)
  const ids = new Set([acting?.userId, otherId].filter(id => id != null))
  let isRefused = false
  for (const id of [...ids].toSorted()) {
    const state = yield* lockUser(id)
    if (id === acting?.userId) isRefused = refusalOf(state, { onlyEnabled: true }) !== null
  }
  if (isRefused) return 'signInRequired'
  if (organization === undefined) return 'organizationNotFound'
  if (acting === null) return { organization, rank: OWNER_RANK }
  const member = yield* memberOf(organizationId, acting.userId)
  if (member === undefined) return 'organizationNotFound'
  return member.rank <= needed ? { organization, rank: member.rank } : 'organizationRoleRequired'
}

/** Whether the session or API key of the member who asks still exists: the last statement of a change. */
export const recordAs = (acting: Acting, event: AuditEvent<string | null>): Steps<boolean> =>
  recordUnlessRevoked(acting?.credentialId ?? null, event)

/** Whether an organization that is locked has a member besides those it may have. Reads as many rows as it has seats. */
export function* isFull({ id, maxMembers }: Organization): Steps<boolean> {
  if (maxMembers === null) return false
  const counted = yield* firstRow<{ count: number }>({
    text: `SELECT count(*) AS count FROM (
      SELECT 1 FROM organization_members WHERE organization_id = $1 LIMIT $2) AS taken`,
    values: [id, maxMembers],
  })
  return (counted?.count ?? 0) >= maxMembers
}

/** Whether a user, who is locked, is a member of as many organizations as can be. */
export function* hasMostMemberships(userId: string): Steps<boolean> {
  const counted = yield* firstRow<{ count: number }>({
    text: `SELECT count(*) AS count FROM (
      SELECT 1 FROM organization_members WHERE user_key = ${USER_KEY} LIMIT ${MAX_MEMBERSHIPS}) AS held`,
    values: [userId],
  })
  return (counted?.count ?? 0) >= MAX_MEMBERSHIPS
}

export const addMemberStatement = (
  organizationId: string,
  userId: string,
  membershipId: string,
  roles: readonly string[],
  at: number,
): Statement => ({
  text: `INSERT INTO organization_members (id, organization_id, user_key, roles, rank, created_at, updated_at)
    SELECT $2, $3, key, $4, CAST($5 AS integer), CAST($6 AS bigint), CAST($6 AS bigint) FROM users WHERE id = $1`,
  values: [userId, membershipId, organizationId, rolesColumn(roles), rankOf(roles), at],
})

/** The invitations that a member has sent end when the member may send none any more. */
export const endInvitationsOf = (organizationId: string, userId: string): Statement => ({
  text: 'DELETE FROM organization_invitations WHERE organization_id = $1 AND invited_by = $2',
  values: [organizationId, userId],
})

/** Ends a user's invitations to the roles `owner` and `admin`: an owner who becomes an admin must not return by one. */
export const endHighInvitationsOf = (organizationId: string, userId: string): Statement => ({
  text: `DELETE FROM organization_invitations
    WHERE organization_id = $1 AND invited_by = $2 AND (roles LIKE $3 OR roles LIKE $4)`,
  values: [organizationId, userId, ...[OWNER, ADMIN].map(role => `%${JSON.stringify(role)}%`)],
})
