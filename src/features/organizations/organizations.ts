/** Organizations: what users and administrators do with them. `members.ts` and `invitations.ts` have who belongs to them. */

import { ID } from '#base/ids'
import { cursorAt, cursorOfPosition, positionOfCursor } from '#base/pagination'
import type { SessionOwner } from '#core/auth/principal'
import { toIso } from '#core/users/serializers'
import { searchKey, type User } from '#core/users/user'
import {
  type Actor,
  idOfCursor,
  type JobRun,
  newId,
  type Page,
  pageOf,
  ServiceError,
} from '#feature/declaration'
import { ERRORS, type OrganizationsDeps, refusal, rolesOf } from './definitions.ts'
import { actingOf, MEMBER_RANK, type Organization, type OwnOrganization } from './organization.ts'
import { slugFrom } from './slugs.ts'
import type { OrganizationChanges, OrganizationSort } from './stored-organizations.ts'

export interface NewOrganization {
  readonly name: string
  /** By default one from the name. */
  readonly slug?: string | undefined
}

/** The start of the name or of the slug, not of both. */
export interface OrganizationFilter {
  readonly name?: string | undefined
  readonly slug?: string | undefined
}

/** Slugs from a name that are tried. The second one has a random end. */
const ATTEMPTS = 5

/** Members that one transaction removes. */
const REMOVAL_BATCH = 200

/** Organizations whose members a job has to remove, that are read at once. */
const REMOVAL_PAGE = 20

const sortOf = ({ name, slug }: OrganizationFilter): OrganizationSort => {
  if (name !== undefined) return 'name'
  return slug === undefined ? 'id' : 'slug'
}

const keyOf = (sort: OrganizationSort, { id, name, slug }: Organization): string =>
  ({ id, name: searchKey(name), slug })[sort]

export class Organizations {
  readonly #deps: OrganizationsDeps
  /** The roles that members can have. */
  readonly roles: readonly string[]

  constructor(deps: OrganizationsDeps) {
    this.#deps = deps
    this.roles = rolesOf(deps.settings)
  }

  /**
   * Creates an organization, of which the user becomes the owner.
   * @param owner the user, in a session; `null` if an administrator creates it for the user.
   * @throws {ServiceError} `slugTaken`, `tooManyOrganizations`, `tooManyMemberships`, `signInRequired`
   */
  async create(
    user: Pick<User, 'id'>,
    { name, slug }: NewOrganization,
    owner: SessionOwner | null,
    actor: Actor,
  ): Promise<Organization> {
    const { store, settings, newEvent, clock } = this.#deps
    const now = clock()
    const id = newId(now)
    const maxMembers = settings.ORGANIZATION_MAX_MEMBERS
    const creator = {
      userId: user.id,
      membershipId: newId(now),
      credentialId: owner?.credentialId ?? null,
      maxCreated: owner === null ? null : settings.ORGANIZATION_MAX_CREATED,
    }
    for (let attempt = 1; ; attempt += 1) {
      const organization = {
        ...{ id, name, slug: slug ?? slugFrom(name, attempt > 1) },
        ...{ maxMembers, createdAt: now, updatedAt: now },
      }
      const event = newEvent('organization.created', actor, user.id, { organization: id })
      const outcome = await store.createOrganization(organization, creator, event)
      if (outcome === 'created') return organization
      if (outcome !== 'slugTaken' || slug !== undefined || attempt === ATTEMPTS) throw refusal(outcome)
    }
  }

  /** @throws {ServiceError} `organizationNotFound` */
  async get(id: string): Promise<Organization> {
    const found = await this.#deps.store.findOrganization(id)
    if (found === undefined) throw new ServiceError(ERRORS.organizationNotFound)
    return found
  }

  /** One of the organizations of a user. @throws {ServiceError} `organizationNotFound` */
  async getOwn(id: string, userId: string): Promise<OwnOrganization> {
    const found = await this.#deps.store.findOrganizationOf(userId, id)
    if (found === undefined) throw new ServiceError(ERRORS.organizationNotFound)
    return found
  }

  /** By its id or slug. @throws {ServiceError} `organizationNotFound` */
  async find(idOrSlug: string): Promise<Organization> {
    if (ID.test(idOrSlug)) return this.get(idOrSlug)
    const found = await this.#deps.store.findBySlug(idOrSlug)
    if (found === undefined) throw new ServiceError(ERRORS.organizationNotFound)
    return found
  }

  /** For commands. @throws {ServiceError} `userNotFound` */
  findUser(idOrEmail: string): Promise<User> {
    return this.#deps.users.find(idOrEmail)
  }

  /** A page of the organizations of a user, in the order in which the user joined them. @throws {ServiceError} `badCursor` */
  async list(userId: string, limit: number, cursor?: string): Promise<Page<OwnOrganization>> {
    const found = await this.#deps.store.listOrganizationsOf(userId, idOfCursor(cursor), limit + 1)
    return pageOf(found, limit, ({ membershipId }) => cursorAt({ id: membershipId }))
  }

  /** A page of a user's organizations, in the order of joining, for an administrator. @throws {ServiceError} `userNotFound`, `badCursor` */
  async listOf(userId: string, limit: number, cursor?: string): Promise<Page<OwnOrganization>> {
    if ((await this.#deps.findUser(userId)) === undefined) throw new ServiceError('userNotFound')
    return this.list(userId, limit, cursor)
  }

  /**
   * A page of all organizations, in the order of their creation; with a filter in the order of the names, or of the slugs.
   * @throws {ServiceError} `nameAndSlug`, `badCursor`
   */
  async listAll(filter: OrganizationFilter, limit: number, cursor?: string): Promise<Page<Organization>> {
    if (filter.name !== undefined && filter.slug !== undefined) throw new ServiceError(ERRORS.nameAndSlug)
    const sort = sortOf(filter)
    const prefix = filter.name === undefined ? (filter.slug ?? '') : searchKey(filter.name)
    const after = cursor === undefined ? null : positionOfCursor(sort, cursor, 'string')
    const found = await this.#deps.store.listOrganizations(sort, prefix, after, limit + 1)
    return pageOf(found, limit, last => cursorOfPosition(sort, keyOf(sort, last), last.id))
  }

  /**
   * @param owner an owner of the organization; `null` for an administrator.
   * @throws {ServiceError} `organizationNotFound`, `organizationRoleRequired`, `slugTaken`, `signInRequired`
   */
  async change(
    id: string,
    changes: OrganizationChanges,
    owner: SessionOwner | null,
    actor: Actor,
  ): Promise<Organization> {
    const { store, newEvent } = this.#deps
    const details = { organization: id, fields: Object.keys(changes) }
    const event = newEvent('organization.changed', actor, owner?.cachedUser.user.id ?? null, details)
    const outcome = await store.changeOrganization(id, changes, actingOf(owner), event)
    if (typeof outcome === 'string') throw refusal(outcome)
    return outcome
  }

  /**
   * Deletes an organization. Nobody has access from now on; a job removes the rows of a large one. The members are mailed.
   * @param owner an owner of the organization; `null` for an administrator.
   * @throws {ServiceError} `organizationNotFound`, `organizationRoleRequired`, `signInRequired`
   */
  async remove(id: string, owner: SessionOwner | null, actor: Actor): Promise<void> {
    const { store, mails, newEvent } = this.#deps
    const members = await store.listRecipients(id, MEMBER_RANK)
    const askedBy = owner?.cachedUser.user.id ?? null
    const event = newEvent('organization.deleted', actor, askedBy, { organization: id })
    const outcome = await store.deleteOrganization(id, actingOf(owner), event)
    if (typeof outcome === 'string') throw refusal(outcome)
    for (const member of members)
      if (member.userId !== askedBy) mails.send('organizationDeleted', member, { organization: outcome.name })
    await store.removeMembersOf(id, REMOVAL_BATCH)
  }

  /** Removes what is left of deleted organizations. */
  async removeDeleted({ signal }: Pick<JobRun, 'signal'>): Promise<void> {
    const { store } = this.#deps
    // An organization is listed until it goes, with the last of its members.
    for (;;) {
      const ids = await store.listDeleted(REMOVAL_PAGE)
      if (ids.length === 0) return
      for (const id of ids) {
        signal.throwIfAborted()
        await store.removeMembersOf(id, REMOVAL_BATCH)
      }
    }
  }
}

export const serializeOrganization = (organization: Organization) => {
  const { id, name, slug, maxMembers, createdAt, updatedAt } = organization
  return { id, name, slug, maxMembers, createdAt: toIso(createdAt), updatedAt: toIso(updatedAt) }
}

export const serializeOwnOrganization = (organization: OwnOrganization) => ({
  ...serializeOrganization(organization),
  roles: organization.roles,
  joinedAt: toIso(organization.joinedAt),
})
