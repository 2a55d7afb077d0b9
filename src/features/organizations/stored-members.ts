/** What the store runs for members of organizations. */
import type { AuditEvent } from '#core/audit-log/event'
import { consequenceOf, recordStatement } from '#core/audit-log/stored-events'
import type { RemovalPart, UserRemoval } from '#core/store/account-feature'
import { lockUser } from '#core/users/user-locks'
import { firstRow, type Query, query, rows, type Steps, USER_KEY } from '#storage/operations/operation'
import {
  endsAccess,
  invalidates,
  invalidatesNothing,
  refusedFor,
  type Write,
} from '#storage/operations/write'
import {
  type Acting,
  ADMIN_RANK,
  MAX_MEMBERSHIPS,
  MAX_RECIPIENTS,
  MEMBER_RANK,
  type Member,
  OWNER,
  OWNER_RANK,
  type OwnOrganization,
  type Rank,
  type Recipient,
  rankOf,
  rolesColumn,
  toRoles,
} from './organization.ts'
import {
  type ActingRefusal,
  addMemberStatement,
  endHighInvitationsOf,
  endInvitationsOf,
  hasMostMemberships,
  isFull,
  lockByIdStatement,
  lockFor,
  lockOrganization,
  memberOf,
  ORGANIZATION_COLUMNS,
  recordAs,
} from './stored-rows.ts'

/** Whether a member may change another one, who has or gets these roles: owners anybody, admins those without their two roles. */
const mayManage = (rank: number, ...others: readonly number[]): boolean =>
  rank === OWNER_RANK || others.every(other => other > rank && other > ADMIN_RANK)

const updateRoles = (membershipId: string, roles: readonly string[], at: number) => ({
  text: `UPDATE organization_members SET roles = $2, rank = $3,
    updated_at = CASE WHEN updated_at < $4 THEN CAST($4 AS bigint) ELSE updated_at + 1 END WHERE id = $1`,
  values: [membershipId, rolesColumn(roles), rankOf(roles), at],
})

/** Whether another member than this one is an owner, and enabled: a disabled owner manages nothing. */
function* hasOtherOwner(organizationId: string, userId: string): Steps<boolean> {
  const other = yield* firstRow({
    text: `SELECT organization_members.id FROM organization_members JOIN users ON users.key = user_key
      WHERE organization_id = $1 AND rank = 0 AND users.id <> $2 AND disabled = 0 LIMIT 1`,
    values: [organizationId, userId],
  })
  return other !== undefined
}

/** Gives a member other roles. @param event of the user whose roles they are. */
function* setRoles(
  organizationId: string,
  roles: readonly string[],
  acting: Acting,
  event: AuditEvent,
): Steps<Write<'changed' | 'unchanged' | 'memberNotFound' | 'lastOwner' | ActingRefusal>> {
  const { userId } = event
  const refused = <Reason>(reason: Reason) => refusedFor(acting?.userId ?? userId, reason)
  const locked = yield* lockFor(organizationId, acting, ADMIN_RANK, userId)
  if (typeof locked === 'string') return refused(locked)
  const member = yield* memberOf(organizationId, userId)
  if (member === undefined) return refused('memberNotFound')
  const rank = rankOf(roles)
  if (!mayManage(locked.rank, member.rank, rank)) return refused('organizationRoleRequired')
  // A request that has set them may still wait for other processes.
  if (rolesColumn(roles) === rolesColumn(member.roles)) return endsAccess(userId, 'unchanged')
  if (member.rank === OWNER_RANK && rank !== OWNER_RANK && !(yield* hasOtherOwner(organizationId, userId)))
    return refused('lastOwner')
  yield updateRoles(member.id, roles, event.at)
  if (rank === MEMBER_RANK) yield endInvitationsOf(organizationId, userId)
  else if (rank === ADMIN_RANK) yield endHighInvitationsOf(organizationId, userId)
  if (!(yield* recordAs(acting, event))) return refused('signInRequired')
  return endsAccess(userId, 'changed')
}

function* addMember(
  organizationId: string,
  membershipId: string,
  roles: readonly string[],
  event: AuditEvent,
): Steps<
  Write<'added' | 'alreadyMember' | 'noSeat' | 'tooManyMemberships' | 'organizationNotFound' | 'userNotFound'>
> {
  const { userId, at } = event
  const organization = yield* lockOrganization(organizationId)
  if (organization === undefined) return refusedFor(userId, 'organizationNotFound')
  if ((yield* lockUser(userId)) === undefined) return refusedFor(userId, 'userNotFound')
  if ((yield* memberOf(organizationId, userId)) !== undefined) return invalidatesNothing('alreadyMember')
  if (yield* isFull(organization)) return invalidatesNothing('noSeat')
  if (yield* hasMostMemberships(userId)) return invalidatesNothing('tooManyMemberships')
  yield addMemberStatement(organizationId, userId, membershipId, roles, at)
  yield recordStatement(event)
  return invalidates(userId, 'added')
}

/** Removes a member. Members may remove themselves. @param event of the user who is removed. */
function* removeMember(
  organizationId: string,
  acting: Acting,
  event: AuditEvent,
): Steps<Write<'removed' | 'memberNotFound' | 'lastOwner' | ActingRefusal>> {
  const { userId } = event
  const refused = <Reason>(reason: Reason) => refusedFor(acting?.userId ?? userId, reason)
  const locked = yield* lockFor(organizationId, acting, MEMBER_RANK, userId)
  if (typeof locked === 'string') return refused(locked)
  const isOwn = acting?.userId === userId
  if (!isOwn && locked.rank > ADMIN_RANK) return refused('organizationRoleRequired')
  const member = yield* memberOf(organizationId, userId)
  // A request that has removed the member may still wait for other processes.
  if (member === undefined) return endsAccess(userId, 'memberNotFound')
  if (!isOwn && !mayManage(locked.rank, member.rank)) return refused('organizationRoleRequired')
  if (member.rank === OWNER_RANK && !(yield* hasOtherOwner(organizationId, userId)))
    return refused('lastOwner')
  yield { text: 'DELETE FROM organization_members WHERE id = $1', values: [member.id] }
  yield endInvitationsOf(organizationId, userId)
  if (!(yield* recordAs(acting, event))) return refused('signInRequired')
  return endsAccess(userId, 'removed')
}

interface Successor {
  readonly id: string
  readonly userId: string
  readonly roles: string
  readonly rank: Rank
  readonly disabled: 0 | 1
}

/**
 * Who owns the organization after an owner: another owner, else the member who has been an admin for longest, else a member for longest;
 * disabled users only if there are no others.
 */
function* successorOf(organizationId: string, userId: string): Steps<Successor | undefined> {
  const first = (disabled: 0 | 1) =>
    firstRow<Successor>({
      text: `SELECT organization_members.id, users.id AS "userId", organization_members.roles, rank, disabled
        FROM organization_members JOIN users ON users.key = user_key
        WHERE organization_id = $1 AND users.id <> $2 AND disabled = ${disabled}
        ORDER BY rank, organization_members.id LIMIT 1`,
      values: [organizationId, userId],
    })
  return (yield* first(0)) ?? (yield* first(1))
}

/** Organizations whose ownership has passed to another member, because their only owner was removed. */
export interface PassedOwnership {
  readonly userId: string
  readonly organizationName: string
}

interface OwnMembership {
  readonly organizationId: string
  readonly name: string
  readonly rank: number
}

/** Deletes an organization without members. */
export function* deleteEmpty(organizationId: string): Steps<void> {
  yield {
    text: 'DELETE FROM organization_invitations WHERE organization_id = $1',
    values: [organizationId],
  }
  yield { text: 'DELETE FROM organizations WHERE id = $1', values: [organizationId] }
}

const organizationsOf = (userId: string): Steps<readonly OwnMembership[]> =>
  rows<OwnMembership>({
    text: `SELECT organization_id AS "organizationId", name, rank
      FROM organization_members JOIN organizations ON organizations.id = organization_id
      WHERE user_key = ${USER_KEY} AND deleted_at = 0 ORDER BY organization_id`,
    values: [userId],
  })

/**
 * An only owner who deletes the account is refused while there are other members; when somebody else removes the user, another member
 * becomes owner. Without other members the organization goes.
 */
export const userRemoval: UserRemoval = {
  *lock(userId) {
    for (const { organizationId } of yield* organizationsOf(userId)) yield lockByIdStatement(organizationId)
  },

  *remove(event, by): Steps<RemovalPart> {
    const { userId, at } = event
    const evicts: string[] = []
    const passed: PassedOwnership[] = []
    let last = event
    for (const { organizationId, name, rank } of yield* organizationsOf(userId)) {
      // Again, and so without a wait: the user may have become a member of another one before the user was locked.
      yield lockByIdStatement(organizationId)
      yield endInvitationsOf(organizationId, userId)
      if (rank !== OWNER_RANK) continue
      const successor = yield* successorOf(organizationId, userId)
      if (successor === undefined) {
        yield {
          text: `DELETE FROM organization_members WHERE organization_id = $2 AND user_key = ${USER_KEY}`,
          values: [userId, organizationId],
        }
        yield* deleteEmpty(organizationId)
        last = consequenceOf(last, 'organization.deleted', { organization: organizationId })
        yield recordStatement(last)
        evicts.push(organizationId)
        continue
      }
      const isOwner = successor.rank === OWNER_RANK
      if (isOwner && successor.disabled === 0) continue
      if (by === 'user') return { refusal: 'soleOwner' }
      if (isOwner) continue
      yield* lockUser(successor.userId)
      const roles = [...toRoles(successor.roles), OWNER]
      yield updateRoles(successor.id, roles, at)
      last = consequenceOf(last, 'organization.member-changed', { organization: organizationId, roles })
      yield recordStatement({ ...last, userId: successor.userId })
      evicts.push(successor.userId)
      passed.push({ userId: successor.userId, organizationName: name })
    }
    // Only its owner may end what was mailed to an address.
    yield {
      text: `DELETE FROM organization_invitations
        WHERE email = (SELECT email FROM users WHERE id = $1 AND email_verified = 1)`,
      values: [userId],
    }
    return { evicts, ...(passed.length > 0 && { outcome: passed }) }
  },
}

type MemberRow = Omit<Member, 'roles'> & { readonly roles: string }

const SELECT_MEMBER = `SELECT organization_members.id, users.id AS "userId", first_name AS "firstName", last_name AS "lastName", email,
    organization_members.roles, organization_members.created_at AS "joinedAt"
  FROM organization_members JOIN users ON users.key = user_key`

const toMember = (row: MemberRow): Member => ({ ...row, roles: toRoles(row.roles) })

/** The members of an organization, in the order in which they joined. @param after the id of a membership; `null` for the first. */
const listMembers = (organizationId: string, after: string | null, limit: number): Query<readonly Member[]> =>
  query(
    {
      name: 'members',
      text: `${SELECT_MEMBER}
        WHERE organization_id = $1 AND organization_members.id > $2 ORDER BY organization_members.id LIMIT $3`,
      values: [organizationId, after ?? '', limit],
    },
    (found: readonly MemberRow[]) => found.map(toMember),
  )

const findMember = (organizationId: string, userId: string): Query<Member | undefined> =>
  query(
    {
      name: 'member',
      text: `${SELECT_MEMBER}
        WHERE organization_id = $1 AND user_key = (SELECT key FROM users WHERE id = $2)`,
      values: [organizationId, userId],
    },
    ([found]: readonly MemberRow[]) => found && toMember(found),
  )

/** The members of an organization whom notices reach, owners and admins first. @param lowest rank of them. */
const listRecipients = (organizationId: string, lowest: Rank): Query<readonly Recipient[]> =>
  query(
    {
      name: 'recipients',
      text: `SELECT users.id AS "userId", email, locale
        FROM organization_members JOIN users ON users.key = user_key
        WHERE organization_id = $1 AND rank <= $2 AND disabled = 0 AND email_verified = 1
        ORDER BY rank, organization_members.id LIMIT $3`,
      values: [organizationId, lowest, MAX_RECIPIENTS],
    },
    (found: readonly Recipient[]) => found,
  )

type OwnRow = Omit<OwnOrganization, 'roles'> & { readonly roles: string }

const SELECT_OWN = `SELECT ${ORGANIZATION_COLUMNS}, organization_members.id AS "membershipId", roles,
    organization_members.created_at AS "joinedAt"
  FROM organization_members JOIN organizations ON organizations.id = organization_id`

const toOwn = (row: OwnRow): OwnOrganization => ({ ...row, roles: toRoles(row.roles) })

/** The organizations of a user, in the order in which the user joined them. @param after the id of a membership; `null` for the first. */
const listOrganizationsOf = (
  userId: string,
  after: string | null,
  limit: number,
): Query<readonly OwnOrganization[]> =>
  query(
    {
      name: 'of-user',
      text: `${SELECT_OWN}
        WHERE user_key = ${USER_KEY} AND organization_members.id > $2 AND deleted_at = 0
        ORDER BY organization_members.id LIMIT $3`,
      values: [userId, after ?? '', limit],
    },
    (found: readonly OwnRow[]) => found.map(toOwn),
  )

const findOrganizationOf = (userId: string, organizationId: string): Query<OwnOrganization | undefined> =>
  query(
    {
      name: 'one-of-user',
      text: `${SELECT_OWN} WHERE user_key = ${USER_KEY} AND organization_id = $2 AND deleted_at = 0`,
      values: [userId, organizationId],
    },
    ([found]: readonly OwnRow[]) => found && toOwn(found),
  )

/** The organizations of several users, in the order of the memberships. */
const listOrganizationsOfUsers = (
  userIds: readonly string[],
): Query<readonly (OwnOrganization & { readonly userId: string })[]> =>
  query(
    {
      text: ({ isOneOf }) => `SELECT ${ORGANIZATION_COLUMNS}, organization_members.id AS "membershipId",
          organization_members.roles, organization_members.created_at AS "joinedAt", users.id AS "userId"
        FROM users JOIN organization_members ON user_key = users.key
          JOIN organizations ON organizations.id = organization_id
        WHERE ${isOneOf('users.id', '$1', 'text')} AND deleted_at = 0 ORDER BY organization_members.id`,
      values: [userIds],
    },
    (found: readonly (OwnRow & { readonly userId: string })[]) =>
      found.map(({ userId, ...row }) => ({ ...toOwn(row), userId })),
  )

/** The roles of a user in organizations, by their ids; also in those that are being deleted. */
const listMemberships = (
  userId: string,
): Query<readonly { readonly organizationId: string; readonly roles: readonly string[] }[]> =>
  query(
    {
      name: 'memberships',
      text: `SELECT organization_id AS "organizationId", roles FROM organization_members
        WHERE user_key = ${USER_KEY} LIMIT ${MAX_MEMBERSHIPS}`,
      values: [userId],
    },
    (found: readonly { organizationId: string; roles: string }[]) =>
      found.map(({ organizationId, roles }) => ({ organizationId, roles: toRoles(roles) })),
  )

export const memberOperations = { setRoles, addMember, removeMember }
export const memberReads = {
  listMembers,
  findMember,
  listRecipients,
  listOrganizationsOf,
  findOrganizationOf,
  listOrganizationsOfUsers,
  listMemberships,
}
