/** The organizations of users in imports and exports, with their roles there. */
import type { Static, TObject } from '@sinclair/typebox'
import type { BulkProperty } from '#core/accounts/bulk-factors'
import { toIso } from '#core/users/serializers'
import type { User } from '#core/users/user'
import { type Actor, newId } from '#feature/declaration'
import type schemas from './bulk-schema.ts'
import { ERRORS, type OrganizationsDeps } from './definitions.ts'
import type { OwnOrganization } from './organization.ts'

type LineMembership = NonNullable<Static<TObject<typeof schemas>>['organizations']>[number]

type Deps = Pick<OrganizationsDeps, 'store' | 'clock' | 'newEvent'>

/** Users whose memberships are read at once. */
const SLICE = 200

const toLine = ({ id, name, slug, maxMembers, roles, joinedAt }: OwnOrganization): LineMembership => ({
  ...{ id, name, slug, maxMembers, roles: [...roles] },
  joinedAt: toIso(joinedAt),
})

export class BulkMemberships implements BulkProperty<readonly LineMembership[]> {
  readonly name = 'organizations'
  readonly scope = 'organizations:write'
  readonly readScope = 'organizations:read'
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  async check(memberships: readonly LineMembership[]): Promise<Record<string, readonly string[]>> {
    const errors: Record<string, readonly string[]> = {}
    for (const [index, { id, slug }] of memberships.entries()) {
      const other = await this.#deps.store.findBySlug(slug)
      const isKnown = other?.id === id || (await this.#deps.store.findOrganization(id)) !== undefined
      if (other !== undefined && !isKnown) errors[`organizations.${index}.slug`] = [ERRORS.slugTaken.message]
    }
    return errors
  }

  async add(
    userId: string,
    memberships: readonly LineMembership[],
    actor: Actor,
  ): Promise<Record<string, readonly string[]>> {
    const { store, clock, newEvent } = this.#deps
    const errors: Record<string, readonly string[]> = {}
    for (const [index, { id, name, slug, maxMembers = null, roles, joinedAt }] of memberships.entries()) {
      const now = clock()
      const at = joinedAt === undefined ? now : Date.parse(joinedAt)
      const organization = { id, name, slug, maxMembers, createdAt: now, updatedAt: now }
      const membership = { id: newId(at), roles: roles.toSorted(), at }
      const event = newEvent('organization.member-added', actor, userId, {
        organization: id,
        roles: membership.roles,
      })
      const outcome = await store.importMembership(organization, membership, event)
      if (outcome === 'slugTaken' || outcome === 'organizationDeleted')
        errors[`organizations.${index}.${outcome === 'slugTaken' ? 'slug' : 'id'}`] = [
          ERRORS.slugTaken.message,
        ]
      if (outcome === 'tooManyMemberships')
        errors[`organizations.${index}`] = [ERRORS.tooManyMemberships.message]
    }
    return errors
  }

  async valuesOf(
    users: readonly Pick<User, 'id'>[],
  ): Promise<ReadonlyMap<string, readonly LineMembership[]>> {
    const found = new Map<string, LineMembership[]>()
    for (let from = 0; from < users.length; from += SLICE) {
      const ids = users.slice(from, from + SLICE).map(({ id }) => id)
      for (const { userId, ...organization } of await this.#deps.store.listOrganizationsOfUsers(ids)) {
        const ofUser = found.get(userId) ?? []
        ofUser.push(toLine(organization))
        found.set(userId, ofUser)
      }
    }
    return found
  }
}
