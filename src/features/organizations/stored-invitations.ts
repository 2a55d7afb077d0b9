/** What the store runs for invitations to organizations. */

import { firstIdAt } from '#base/ids'
import { MAIL_DAY } from '#core/accounts/email-token'
import { VERIFY_EMAIL } from '#core/accounts/stored-email-tokens'
import type { AuditEvent } from '#core/audit-log/event'
import { consequenceOf, countEvents, recordStatement } from '#core/audit-log/stored-events'
import { refusalOf } from '#core/users/refusals'
import { lockUser } from '#core/users/user-locks'
import { firstRow, type Query, query, type Steps } from '#storage/operations/operation'
import { invalidates, invalidatesNothing, refusedFor, type Write } from '#storage/operations/write'
import {
  type ActingMember,
  ADMIN_RANK,
  type Invitation,
  MAX_LISTED_INVITATIONS,
  type Organization,
  OWNER_RANK,
  type OwnInvitation,
  rankOf,
  rolesColumn,
  type ShownInvitation,
  toRoles,
} from './organization.ts'
import {
  type ActingRefusal,
  addMemberStatement,
  hasMostMemberships,
  isFull,
  lockFor,
  lockOrganization,
  memberOf,
  recordAs,
} from './stored-rows.ts'

type Row<Shown extends Pick<Invitation, 'roles'>> = Omit<Shown, 'roles'> & { readonly roles: string }

const COLUMNS = `organization_invitations.id, organization_id AS "organizationId", email, roles,
  invited_by AS "invitedBy", organization_invitations.created_at AS "createdAt", expires_at AS "expiresAt"`

/** Whether a member may send or end an invitation with these roles. */
const mayInvite = (rank: number, roles: readonly string[]): boolean =>
  rank === OWNER_RANK || rankOf(roles) > ADMIN_RANK

interface Former {
  readonly id: string
  readonly roles: string
  readonly expiresAt: number
}

/** The invitation of an address, which may have expired. */
const formerOf = (organizationId: string, email: string): Steps<Former | undefined> =>
  firstRow<Former>({
    text: `SELECT id, roles, expires_at AS "expiresAt" FROM organization_invitations
      WHERE organization_id = $1 AND email = $2`,
    values: [organizationId, email],
  })

/**
 * Whether a user, who is locked with the organization, or its owners and admins together have sent as many invitations as they may within a
 * day. Events are counted: what has been revoked was mailed. Those of former admins are not: they could open an organization of their own.
 */
function* hasInvitedEnough(organizationId: string, event: AuditEvent, max: number): Steps<boolean> {
  const since = event.at - MAIL_DAY + 1
  if ((yield* countEvents(event.userId, [event.type], since)) >= max) return true
  const counted = yield* firstRow<{ count: number }>({
    text: `SELECT count(*) AS count FROM organization_members
        JOIN users ON users.key = user_key
        JOIN events ON events.user_id = users.id
      WHERE organization_id = $1 AND rank <= ${ADMIN_RANK} AND events.id >= $2 AND type = $3 AND details LIKE $4`,
    values: [organizationId, firstIdAt(since), event.type, `%"${organizationId}"%`],
  })
  return (counted?.count ?? 0) >= max
}

export interface InvitationLimits {
  /** Invitations of an organization that wait at a time. */
  readonly waiting: number
  /** Invitations in a day by a user, and by an organization. */
  readonly perDay: number
}

/**
 * Stores an invitation, which replaces another one of the same address. The work is the same whether or not the address has an account.
 */
function* addInvitation(
  invitation: Invitation,
  digest: string,
  { waiting, perDay }: InvitationLimits,
  acting: ActingMember,
  event: AuditEvent,
): Steps<
  Write<'added' | 'alreadyMember' | 'noSeat' | 'tooManyInvitations' | 'tooManyRequests' | ActingRefusal>
> {
  const { id, organizationId, email, roles, invitedBy, createdAt, expiresAt } = invitation
  const refused = <Reason>(reason: Reason) => refusedFor(acting.userId, reason)
  const locked = yield* lockFor(organizationId, acting, ADMIN_RANK)
  if (typeof locked === 'string') return refused(locked)
  const former = yield* formerOf(organizationId, email)
  const isReplaceable =
    former === undefined || former.expiresAt <= createdAt || mayInvite(locked.rank, toRoles(former.roles))
  if (!(mayInvite(locked.rank, roles) && isReplaceable)) return refused('organizationRoleRequired')
  const member = yield* firstRow({
    text: `SELECT id FROM organization_members
      WHERE organization_id = $1 AND user_key = (SELECT key FROM users WHERE email = $2)`,
    values: [organizationId, email],
  })
  if (member !== undefined) return invalidatesNothing('alreadyMember')
  if (yield* isFull(locked.organization)) return invalidatesNothing('noSeat')
  if (yield* hasInvitedEnough(organizationId, event, perDay)) return refused('tooManyRequests')
  if (former !== undefined)
    yield { text: 'DELETE FROM organization_invitations WHERE id = $1', values: [former.id] }
  const added = yield* firstRow({
    text: `INSERT INTO organization_invitations
        (id, organization_id, email, digest, roles, invited_by, created_at, expires_at)
      SELECT $1, $2, $3, $4, $5, $6, CAST($7 AS bigint), CAST($8 AS bigint)
      WHERE (SELECT count(*) FROM organization_invitations WHERE organization_id = $2 AND expires_at > $7) < $9
      RETURNING id`,
    values: [id, organizationId, email, digest, rolesColumn(roles), invitedBy, createdAt, expiresAt, waiting],
  })
  if (added === undefined) return refused('tooManyInvitations')
  if (!(yield* recordAs(acting, event))) return refused('signInRequired')
  return invalidatesNothing('added')
}

/** Ends an invitation. @param event of the member who asks. */
function* revokeInvitation(
  id: string,
  organizationId: string,
  acting: ActingMember,
  event: AuditEvent,
): Steps<Write<'revoked' | 'invitationNotFound' | ActingRefusal>> {
  const refused = <Reason>(reason: Reason) => refusedFor(acting.userId, reason)
  const locked = yield* lockFor(organizationId, acting, ADMIN_RANK)
  if (typeof locked === 'string') return refused(locked)
  const revoked = yield* firstRow<{ roles: string }>({
    text: `DELETE FROM organization_invitations
      WHERE id = $1 AND organization_id = $2 AND expires_at > $3 RETURNING roles`,
    values: [id, organizationId, event.at],
  })
  if (revoked === undefined) return refused('invitationNotFound')
  if (!mayInvite(locked.rank, toRoles(revoked.roles))) return refused('organizationRoleRequired')
  if (!(yield* recordAs(acting, event))) return refused('signInRequired')
  return invalidatesNothing('revoked')
}

/**
 * Makes the user of the event a member, who has the invited address. An address that is not confirmed yet is confirmed: only its mailbox
 * has the token.
 * @param mayConfirm whether the user is signed in; an API key confirms no address.
 * @param event without details.
 */
function* acceptInvitation(
  digest: string,
  membershipId: string,
  acting: ActingMember,
  mayConfirm: boolean,
  event: AuditEvent,
): Steps<
  Write<
    | { readonly organization: Organization; readonly invitedBy: string }
    | 'badEmailToken'
    | 'invitationForAnother'
    | 'alreadyMember'
    | 'noSeat'
    | 'tooManyMemberships'
    | 'signInRequired'
  >
> {
  const { userId, at } = event
  const refused = <Reason>(reason: Reason) => refusedFor(userId, reason)
  const invited = yield* firstRow<{ organizationId: string }>({
    text: `SELECT organization_id AS "organizationId" FROM organization_invitations
      WHERE digest = $1 AND expires_at > $2`,
    values: [digest, at],
  })
  if (invited === undefined) return refused('badEmailToken')
  const { organizationId } = invited
  const organization = yield* lockOrganization(organizationId)
  if (refusalOf(yield* lockUser(userId), { onlyEnabled: true }) !== null) return refused('signInRequired')
  // Used up here: what the lookup above has found may have been accepted, replaced or revoked since.
  const used = yield* firstRow<{ id: string; email: string; roles: string; invitedBy: string }>({
    text: `DELETE FROM organization_invitations
      WHERE digest = $1 AND NOT EXISTS (SELECT 1 FROM users WHERE id = invited_by AND disabled = 1)
      RETURNING id, email, roles, invited_by AS "invitedBy"`,
    values: [digest],
  })
  if (organization === undefined || used === undefined) return refused('badEmailToken')
  const recipient = yield* firstRow<{ isConfirmed: number }>({
    text: 'SELECT email_verified AS "isConfirmed" FROM users WHERE id = $1 AND email = $2',
    values: [userId, used.email],
  })
  const confirms = recipient?.isConfirmed === 0
  if (recipient === undefined || (confirms && !mayConfirm)) return refused('invitationForAnother')
  if ((yield* memberOf(organizationId, userId)) !== undefined) return refused('alreadyMember')
  if (yield* isFull(organization)) return refused('noSeat')
  if (yield* hasMostMemberships(userId)) return refused('tooManyMemberships')
  const roles = toRoles(used.roles)
  yield addMemberStatement(organizationId, userId, membershipId, roles, at)
  const accepted = { ...event, details: { organization: organizationId, invitation: used.id } }
  if (!(yield* recordAs(acting, accepted))) return refused('signInRequired')
  if (confirms) {
    yield { text: VERIFY_EMAIL, values: [at, userId, used.email] }
    yield recordStatement(consequenceOf(accepted, 'email.verified', {}))
  }
  yield recordStatement(
    consequenceOf(accepted, 'organization.member-added', { organization: organizationId, roles }),
  )
  return invalidates(userId, { organization, invitedBy: used.invitedBy })
}

/** The invitations of an organization that wait, newest first. @param before an id; `null` for the newest. */
const listInvitations = (
  organizationId: string,
  now: number,
  before: string | null,
  limit: number,
): Query<readonly Invitation[]> =>
  query(
    {
      name: 'invitations',
      text: `SELECT ${COLUMNS} FROM organization_invitations
        WHERE organization_id = $1 AND expires_at > $2 AND id < $3 ORDER BY id DESC LIMIT $4`,
      values: [organizationId, now, before ?? 'g', limit],
    },
    (found: readonly Row<Invitation>[]) => found.map(row => ({ ...row, roles: toRoles(row.roles) })),
  )

/** The invitations that wait for the confirmed address of a user, newest first. */
const listInvitationsTo = (userId: string, now: number): Query<readonly OwnInvitation[]> =>
  query(
    {
      name: 'invitations-to',
      text: `SELECT ${COLUMNS}, name AS "organizationName"
        FROM organization_invitations JOIN organizations ON organizations.id = organization_id
        WHERE email = (SELECT email FROM users WHERE id = $1 AND email_verified = 1)
          AND expires_at > $2 AND deleted_at = 0
        ORDER BY organization_invitations.id DESC LIMIT ${MAX_LISTED_INVITATIONS}`,
      values: [userId, now],
    },
    (found: readonly Row<OwnInvitation>[]) => found.map(row => ({ ...row, roles: toRoles(row.roles) })),
  )

const findInvitation = (digest: string, now: number): Query<ShownInvitation | undefined> =>
  query(
    {
      name: 'invitation',
      text: `SELECT name AS "organizationName", email, roles, expires_at AS "expiresAt"
        FROM organization_invitations JOIN organizations ON organizations.id = organization_id
        WHERE digest = $1 AND expires_at > $2 AND deleted_at = 0
          AND NOT EXISTS (SELECT 1 FROM users WHERE id = invited_by AND disabled = 1)`,
      values: [digest, now],
    },
    ([found]: readonly Row<ShownInvitation>[]) => found && { ...found, roles: toRoles(found.roles) },
  )

export const invitationOperations = { addInvitation, revokeInvitation, acceptInvitation }
export const invitationReads = { listInvitations, listInvitationsTo, findInvitation }
