/** What the store runs for organizations. The writer thread of SQLite imports this module, and with it no schemas and no services. */
import type { AuditEvent } from '#core/audit-log/event'
import { consequenceOf, recordStatement } from '#core/audit-log/stored-events'
import type { AccountFeature } from '#core/store/account-feature'
import { refusalOf } from '#core/users/refusals'
import { searchKey } from '#core/users/user'
import { lockUser } from '#core/users/user-locks'
import {
  firstRow,
  type Query,
  query,
  rows,
  type Statement,
  type Steps,
  unlessTaken,
} from '#storage/operations/operation'
import {
  endsAccess,
  invalidates,
  invalidatesNothing,
  refusedFor,
  type Write,
} from '#storage/operations/write'
import { table } from '#storage/stored-feature'
import { type Acting, type Organization, OWNER, OWNER_RANK } from './organization.ts'
import { invitationOperations, invitationReads } from './stored-invitations.ts'
import { deleteEmpty, memberOperations, memberReads, userRemoval } from './stored-members.ts'
import {
  type ActingRefusal,
  addMemberStatement,
  hasMostMemberships,
  type InvitationsTable,
  lockByIdStatement,
  lockFor,
  type MembersTable,
  memberOf,
  ORGANIZATION_COLUMNS,
  type OrganizationsTable,
  recordAs,
} from './stored-rows.ts'

/** The first member of a new organization. */
export interface Creator {
  readonly userId: string
  readonly membershipId: string
  /** The session or API key of the creator; `null` if an administrator creates the organization for the user. */
  readonly credentialId: string | null
  /** How many organizations the user may create; `null` for any number. */
  readonly maxCreated: number | null
}

const insertStatement = (
  { id, name, slug, maxMembers, createdAt, updatedAt }: Organization,
  createdBy: string | null,
): Statement => ({
  text: `INSERT INTO organizations
      (id, slug, name, search_name, max_members, created_by, created_at, updated_at, deleted_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0)`,
  values: [id, slug, name, searchKey(name), maxMembers, createdBy, createdAt, updatedAt],
})

/** @param event of the creator. */
function* createOrganization(
  organization: Organization,
  { userId, membershipId, credentialId, maxCreated }: Creator,
  event: AuditEvent,
): Steps<Write<'created' | 'slugTaken' | 'tooManyOrganizations' | 'tooManyMemberships' | 'signInRequired'>> {
  if (refusalOf(yield* lockUser(userId), { onlyEnabled: credentialId !== null }) !== null)
    return refusedFor(userId, 'signInRequired')
  if (maxCreated !== null) {
    const created = yield* firstRow<{ count: number }>({
      text: 'SELECT count(*) AS count FROM organizations WHERE created_by = $1 AND deleted_at = 0',
      values: [userId],
    })
    if ((created?.count ?? 0) >= maxCreated) return invalidatesNothing('tooManyOrganizations')
  }
  if (yield* hasMostMemberships(userId)) return invalidatesNothing('tooManyMemberships')
  const added = yield* unlessTaken(insertStatement(organization, userId))
  if (added === 'taken') return refusedFor(userId, 'slugTaken')
  const { id, createdAt } = organization
  yield addMemberStatement(id, userId, membershipId, [OWNER], createdAt)
  if (!(yield* recordAs(credentialId === null ? null : { userId, credentialId }, event)))
    return refusedFor(userId, 'signInRequired')
  yield recordStatement(
    consequenceOf(event, 'organization.member-added', { organization: id, roles: [OWNER] }),
  )
  return invalidates(userId, 'created')
}

export interface OrganizationChanges {
  readonly name?: string
  readonly slug?: string
  readonly maxMembers?: number | null
}

/** A change that changes nothing records no event. @param event of the member who asks; of no user for an administrator. */
function* changeOrganization(
  id: string,
  changes: OrganizationChanges,
  acting: Acting,
  event: AuditEvent<string | null>,
): Steps<Write<Organization | 'slugTaken' | ActingRefusal>> {
  const locked = yield* lockFor(id, acting, OWNER_RANK)
  const refused = <Reason>(reason: Reason) => refusedFor(acting?.userId ?? id, reason)
  if (typeof locked === 'string') return refused(locked)
  const { organization } = locked
  const { name, slug, maxMembers } = { ...organization, ...changes }
  const isSame =
    name === organization.name && slug === organization.slug && maxMembers === organization.maxMembers
  if (isSame) return invalidatesNothing(organization)
  const updatedAt = Math.max(event.at, organization.updatedAt + 1)
  const updated = yield* unlessTaken({
    text: `UPDATE organizations SET name = $2, search_name = $3, slug = $4, max_members = CAST($5 AS integer), updated_at = $6
      WHERE id = $1`,
    values: [id, name, searchKey(name), slug, maxMembers, updatedAt],
  })
  if (updated === 'taken') return refused('slugTaken')
  if (!(yield* recordAs(acting, event))) return refused('signInRequired')
  return invalidates(id, { ...organization, name, slug, maxMembers, updatedAt })
}

/**
 * Deletes an organization for everybody: from now on it is not found, and its slug is free. `removeMembersOf` removes the rows.
 * @param event of the member who asks; of no user for an administrator.
 */
function* deleteOrganization(
  id: string,
  acting: Acting,
  event: AuditEvent<string | null>,
): Steps<Write<Organization | ActingRefusal>> {
  const locked = yield* lockFor(id, acting, OWNER_RANK)
  const refused = <Reason>(reason: Reason) => refusedFor(acting?.userId ?? id, reason)
  // A request that has deleted it may still wait for other processes.
  if (locked === 'organizationNotFound') return endsAccess(id, locked)
  if (typeof locked === 'string') return refused(locked)
  const { organization } = locked
  yield {
    text: 'UPDATE organizations SET deleted_at = $2, slug = id, updated_at = $3 WHERE id = $1',
    values: [id, event.at, Math.max(event.at, organization.updatedAt + 1)],
  }
  yield { text: 'DELETE FROM organization_invitations WHERE organization_id = $1', values: [id] }
  if (!(yield* recordAs(acting, event))) return refused('signInRequired')
  return endsAccess(id, organization)
}

/**
 * Removes members of an organization that is deleted, then the organization. It can be called any number of times, by several processes.
 * @param limit members.
 */
function* removeMembersOf(id: string, limit: number): Steps<Write<void>> {
  yield lockByIdStatement(id)
  const deleted = yield* firstRow({
    text: 'SELECT id FROM organizations WHERE id = $1 AND deleted_at > 0',
    values: [id],
  })
  if (deleted === undefined) return invalidatesNothing(undefined)
  const members = yield* rows<{ id: string; userId: string }>({
    text: `SELECT organization_members.id, users.id AS "userId"
      FROM organization_members JOIN users ON users.key = user_key
      WHERE organization_id = $1 ORDER BY organization_members.id LIMIT $2`,
    values: [id, limit],
  })
  yield {
    text: ({ isOneOf }) => `DELETE FROM organization_members WHERE ${isOneOf('id', '$1', 'text')}`,
    values: [members.map(member => member.id)],
  }
  if (members.length < limit) yield* deleteEmpty(id)
  return endsAccess(
    members.map(({ userId }) => userId),
    undefined,
  )
}

/**
 * Adds a membership of another service, and its organization unless there is one with the id. Seats are not compared, and the organization
 * may have no owner yet.
 * @param event of the user.
 */
function* importMembership(
  organization: Organization,
  membership: { readonly id: string; readonly roles: readonly string[]; readonly at: number },
  event: AuditEvent,
): Steps<
  Write<'added' | 'exists' | 'slugTaken' | 'organizationDeleted' | 'tooManyMemberships' | 'userNotFound'>
> {
  const { id } = organization
  const { userId } = event
  yield lockByIdStatement(id)
  if ((yield* lockUser(userId)) === undefined) return refusedFor(userId, 'userNotFound')
  const found = yield* firstRow<{ deleted: number }>({
    text: 'SELECT CASE WHEN deleted_at > 0 THEN 1 ELSE 0 END AS deleted FROM organizations WHERE id = $1',
    values: [id],
  })
  if (found?.deleted === 1) return invalidatesNothing('organizationDeleted')
  if (found !== undefined && (yield* memberOf(id, userId)) !== undefined) return invalidatesNothing('exists')
  if (yield* hasMostMemberships(userId)) return invalidatesNothing('tooManyMemberships')
  if (found === undefined) {
    const added = yield* unlessTaken(insertStatement(organization, null))
    if (added === 'taken') return refusedFor(userId, 'slugTaken')
    const created = consequenceOf(event, 'organization.created', { organization: id })
    yield recordStatement({ ...created, userId: null })
  }
  yield addMemberStatement(id, userId, membership.id, membership.roles, membership.at)
  yield recordStatement(event)
  return invalidates(userId, 'added')
}

const findOrganization = (id: string): Query<Organization | undefined> =>
  query(
    {
      name: 'find',
      text: `SELECT ${ORGANIZATION_COLUMNS} FROM organizations WHERE id = $1 AND deleted_at = 0`,
      values: [id],
    },
    ([found]: readonly Organization[]) => found,
  )

const findBySlug = (slug: string): Query<Organization | undefined> =>
  query(
    {
      name: 'find-by-slug',
      text: `SELECT ${ORGANIZATION_COLUMNS} FROM organizations WHERE slug = $1 AND deleted_at = 0`,
      values: [slug],
    },
    ([found]: readonly Organization[]) => found,
  )

/** What a list of all organizations is sorted by: with the start of a name or slug, by that. */
export type OrganizationSort = 'id' | 'name' | 'slug'

const SORT_COLUMNS = { id: 'id', name: 'search_name', slug: 'slug' } as const

/** The last character of Unicode: it sorts behind every text that begins with a prefix. */
const LAST = '\u{10ffff}'

/**
 * Organizations in the order of a column, then of their ids.
 * @param prefix of that column; `''` for all.
 * @param after the column and the id of the last one of the page before.
 */
const listOrganizations = (
  sort: OrganizationSort,
  prefix: string,
  after: { readonly key: string; readonly id: string } | null,
  limit: number,
): Query<readonly Organization[]> => {
  const column = SORT_COLUMNS[sort]
  return query(
    {
      name: `list-by-${sort}`,
      text: `SELECT ${ORGANIZATION_COLUMNS} FROM organizations
        WHERE deleted_at = 0 AND ${column} >= $1 AND ${column} <= $2 AND (${column}, id) > ($3, $4)
        ORDER BY ${column}, id LIMIT $5`,
      values: [prefix, prefix + LAST, after?.key ?? '', after?.id ?? '', limit],
    },
    (found: readonly Organization[]) => found,
  )
}

/** The ids of organizations whose members have to be removed. */
const listDeleted = (limit: number): Query<readonly string[]> =>
  query(
    {
      name: 'deleted',
      text: 'SELECT id FROM organizations WHERE deleted_at > 0 ORDER BY deleted_at LIMIT $1',
      values: [limit],
    },
    (found: readonly { id: string }[]) => found.map(({ id }) => id),
  )

export const storedOrganizations = {
  name: 'organizations',
  module: import.meta.url,
  migrations: {
    '0001_organizations': {
      sql: ({ text, keyType }) => [
        `create table "organizations" (
          "id" ${text} primary key,
          "slug" ${text} not null unique,
          "name" text not null,
          "search_name" ${text} not null,
          "max_members" integer,
          "created_by" ${text},
          "created_at" bigint not null,
          "updated_at" bigint not null,
          "deleted_at" bigint not null
        )`,
        'create index "organizations_by_search_name" on "organizations" ("search_name", "id")',
        'create index "organizations_by_created_by" on "organizations" ("created_by")',
        'create index "organizations_by_deleted_at" on "organizations" ("deleted_at")',
        `create table "organization_members" (
          "id" ${text} primary key,
          "organization_id" ${text} not null,
          "user_key" ${keyType} not null references "users" ("key") on delete cascade,
          "roles" text not null,
          "rank" integer not null,
          "created_at" bigint not null,
          "updated_at" bigint not null,
          constraint "organization_members_once" unique ("organization_id", "user_key")
        )`,
        // Lists of members; owners and admins, of whom there are few among many; the organizations of a user.
        'create index "organization_members_by_organization" on "organization_members" ("organization_id", "id")',
        'create index "organization_members_by_rank" on "organization_members" ("organization_id", "rank", "id")',
        'create index "organization_members_by_user" on "organization_members" ("user_key", "id")',
        `create table "organization_invitations" (
          "id" ${text} primary key,
          "organization_id" ${text} not null,
          "email" ${text} not null,
          "digest" ${text} not null unique,
          "roles" text not null,
          "invited_by" ${text} not null,
          "created_at" bigint not null,
          "expires_at" bigint not null,
          constraint "organization_invitations_once" unique ("organization_id", "email")
        )`,
        'create index "organization_invitations_by_email" on "organization_invitations" ("email")',
        'create index "organization_invitations_by_expires_at" on "organization_invitations" ("expires_at")',
      ],
    },
  },
  tables: {
    organizations: table<OrganizationsTable>({
      owner: null,
      key: 'id',
      updatedAt: 'updated_at',
      unique: 'slug',
    }),
    organization_members: table<MembersTable>({
      owner: 'user_key',
      key: 'id',
      updatedAt: 'updated_at',
      unique: [['organization_id', 'user_key']],
    }),
    organization_invitations: table<InvitationsTable>({
      owner: null,
      key: 'id',
      unique: [['organization_id', 'email'], ['digest']],
      cleanUp: { column: 'expires_at', after: 0 },
    }),
  },
  operations: {
    createOrganization,
    changeOrganization,
    deleteOrganization,
    removeMembersOf,
    importMembership,
    ...memberOperations,
    ...invitationOperations,
  },
  reads: {
    findOrganization,
    findBySlug,
    listOrganizations,
    listDeleted,
    ...memberReads,
    ...invitationReads,
  },
  userRemoval,
} satisfies AccountFeature
