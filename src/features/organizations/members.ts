/** The members of organizations: what owners, admins, the members themselves and administrators do. */
import type { SessionOwner } from '#core/auth/principal'
import { toIso } from '#core/users/serializers'
import {
  type Actor,
  idOfCursor,
  newId,
  type Page,
  pageOf,
  ServiceError,
  type User,
} from '#feature/declaration'
import { ERRORS, type OrganizationsDeps, refusal } from './definitions.ts'
import { ADMIN_RANK, actingOf, type Member } from './organization.ts'

export class Members {
  readonly #deps: OrganizationsDeps

  constructor(deps: OrganizationsDeps) {
    this.#deps = deps
  }

  /** A page of the members, in the order in which they joined. @throws {ServiceError} `badCursor` */
  async list(organizationId: string, limit: number, cursor?: string): Promise<Page<Member>> {
    const found = await this.#deps.store.listMembers(organizationId, idOfCursor(cursor), limit + 1)
    return pageOf(found, limit)
  }

  /** @throws {ServiceError} `memberNotFound` */
  async get(organizationId: string, userId: string): Promise<Member> {
    const found = await this.#deps.store.findMember(organizationId, userId)
    if (found === undefined) throw new ServiceError(ERRORS.memberNotFound)
    return found
  }

  /**
   * Gives a member other roles, and mails them.
   * @param owner the member who asks; `null` for an administrator.
   * @throws {ServiceError} `organizationNotFound`, `organizationRoleRequired`, `memberNotFound`, `lastOwner`, `signInRequired`
   */
  async setRoles(
    organizationId: string,
    userId: string,
    roles: readonly string[],
    owner: SessionOwner | null,
    actor: Actor,
  ): Promise<Member> {
    const { store, newEvent } = this.#deps
    const details = { organization: organizationId, roles: roles.toSorted() }
    const event = newEvent('organization.member-changed', actor, userId, details)
    const outcome = await store.setRoles(organizationId, roles, actingOf(owner), event)
    if (outcome !== 'changed' && outcome !== 'unchanged') throw refusal(outcome)
    const member = await this.get(organizationId, userId)
    if (outcome === 'changed' && userId !== owner?.cachedUser.user.id)
      await this.#mail(organizationId, userId, (to, organization) =>
        this.#deps.mails.send('organizationRolesChanged', to, { organization, roles: member.roles }),
      )
    return member
  }

  /**
   * Gives a member other roles, or adds a user who is no member, for an administrator. Mails the user about a change.
   * @returns the member, and whether the user is a new one.
   * @throws {ServiceError} `organizationNotFound`, `userNotFound`, `noSeat`, `tooManyMemberships`, `lastOwner`
   */
  async put(
    organizationId: string,
    userId: string,
    roles: readonly string[],
    actor: Actor,
  ): Promise<{ readonly member: Member; readonly isNew: boolean }> {
    const { store, newEvent, clock } = this.#deps
    const details = { organization: organizationId, roles: roles.toSorted() }
    const event = newEvent('organization.member-added', actor, userId, details)
    const outcome = await store.addMember(organizationId, newId(clock()), roles, event)
    if (outcome === 'alreadyMember')
      return { member: await this.setRoles(organizationId, userId, roles, null, actor), isNew: false }
    if (outcome !== 'added') throw refusal(outcome)
    await this.#mail(organizationId, userId, (to, organization) =>
      this.#deps.mails.send('organizationMemberAdded', to, { organization, roles }),
    )
    return { member: await this.get(organizationId, userId), isNew: true }
  }

  /**
   * Removes a member, who is mailed; where they leave themselves, the owners and admins are.
   * @param owner the member who asks; `null` for an administrator.
   * @throws {ServiceError} `organizationNotFound`, `organizationRoleRequired`, `memberNotFound`, `lastOwner`, `signInRequired`
   */
  async remove(
    organizationId: string,
    userId: string,
    owner: SessionOwner | null,
    actor: Actor,
  ): Promise<void> {
    const { store, newEvent } = this.#deps
    const event = newEvent('organization.member-removed', actor, userId, { organization: organizationId })
    const outcome = await store.removeMember(organizationId, actingOf(owner), event)
    if (outcome !== 'removed') throw refusal(outcome)
    if (owner !== null && userId === owner.cachedUser.user.id)
      await this.#announceLeaving(organizationId, owner.cachedUser.user)
    else
      await this.#mail(organizationId, userId, (to, organization) =>
        this.#deps.mails.send('organizationMemberRemoved', to, { organization }),
      )
  }

  async #announceLeaving(organizationId: string, { email }: User): Promise<void> {
    const { store, mails } = this.#deps
    const organization = await store.findOrganization(organizationId)
    if (organization === undefined) return
    for (const recipient of await store.listRecipients(organizationId, ADMIN_RANK))
      mails.send('organizationMemberLeft', recipient, { organization: organization.name, member: email })
  }

  /** Sends nothing if the user or the organization was deleted since. */
  async #mail(
    organizationId: string,
    userId: string,
    send: (to: User, organization: string) => void,
  ): Promise<void> {
    const { store, findUser } = this.#deps
    const [organization, user] = await Promise.all([store.findOrganization(organizationId), findUser(userId)])
    if (organization !== undefined && user !== undefined) send(user, organization.name)
  }
}

/** @param withEmail for those who manage members: others see no e-mails. */
export const serializeMember = (
  { userId, firstName, lastName, email, roles, joinedAt }: Member,
  withEmail: boolean,
) => ({ userId, firstName, lastName, email: withEmail ? email : null, roles, joinedAt: toIso(joinedAt) })
