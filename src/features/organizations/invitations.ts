/** Invitations to organizations. The token is in the mail alone: nobody can read it by any route. */
import { digestOf, newToken, tooManyMails } from '#core/accounts/email-token'
import type { SessionOwner } from '#core/auth/principal'
import { toIso } from '#core/users/serializers'
import { type Actor, idOfCursor, newId, type Page, pageOf, ServiceError } from '#feature/declaration'
import { type OrganizationsDeps, refusal } from './definitions.ts'
import {
  actingMember,
  INVITATION_LIFETIME,
  type Invitation,
  isReachable,
  type Organization,
  type OwnInvitation,
  type ShownInvitation,
} from './organization.ts'

const DAY = 86_400_000

/** Mail programs also make links of a domain or an address alone, such as that of “Booking.com”: not with an invisible space in it. */
const withoutLinks = (name: string): string => name.replace(/[.@:](?=\S)/g, '$&\u200b')

export class Invitations {
  readonly #deps: OrganizationsDeps

  constructor(deps: OrganizationsDeps) {
    this.#deps = deps
  }

  /**
   * Invites an address, and mails the link. Another invitation of the address ends. Neither the response nor its time reveals whether the
   * address has an account.
   * @param email in canonical form. @param returnTo where the page behind the link leads back to; `null`: to the organization.
   * @throws {ServiceError} `organizationNotFound`, `organizationRoleRequired`, `alreadyMember`, `noSeat`, `tooManyInvitations`,
   * `tooManyRequests`, `emailNotVerified`, `signInRequired`
   */
  async create(
    { id: organizationId, name }: Pick<Organization, 'id' | 'name'>,
    email: string,
    roles: readonly string[],
    owner: SessionOwner,
    actor: Actor,
    returnTo: string | null,
  ): Promise<Invitation> {
    const { store, settings, newEvent, clock, deferred, findUserByEmail, mails, returnTargets } = this.#deps
    const { user } = owner.cachedUser
    // Mails with a name that a stranger has chosen must not go to anybody.
    if (!user.emailVerified) throw new ServiceError('emailNotVerified')
    const now = clock()
    const { token, digest } = newToken(now)
    const expiresAt = now + INVITATION_LIFETIME
    const invitation = {
      ...{ id: newId(now), organizationId, email, roles: roles.toSorted() },
      ...{ invitedBy: user.id, createdAt: now, expiresAt },
    }
    const details = { organization: organizationId, invitation: invitation.id }
    const event = newEvent('organization.invitation-created', actor, user.id, details)
    const limits = {
      waiting: settings.ORGANIZATION_MAX_INVITATIONS,
      perDay: settings.ORGANIZATION_DAILY_INVITATIONS,
    }
    const outcome = await store.addInvitation(invitation, digest, limits, actingMember(owner), event)
    if (outcome === 'tooManyRequests') throw tooManyMails()
    if (outcome !== 'added') throw refusal(outcome)
    deferred.run(async () => {
      await returnTargets.keep(token, returnTo, expiresAt)
      const locale = (await findUserByEmail(email))?.locale ?? user.locale
      const values = { organization: withoutLinks(name), token, days: INVITATION_LIFETIME / DAY }
      mails.send('organizationInvitation', { email, locale }, values)
    })
    return invitation
  }

  /** A page of the invitations that wait, newest first. @throws {ServiceError} `badCursor` */
  async list(organizationId: string, limit: number, cursor?: string): Promise<Page<Invitation>> {
    const { store, clock } = this.#deps
    return pageOf(await store.listInvitations(organizationId, clock(), idOfCursor(cursor), limit + 1), limit)
  }

  /** @throws {ServiceError} `organizationNotFound`, `organizationRoleRequired`, `invitationNotFound`, `signInRequired` */
  async revoke(organizationId: string, id: string, owner: SessionOwner, actor: Actor): Promise<void> {
    const { store, newEvent } = this.#deps
    const { user } = owner.cachedUser
    const details = { organization: organizationId, invitation: id }
    const event = newEvent('organization.invitation-revoked', actor, user.id, details)
    const outcome = await store.revokeInvitation(id, organizationId, actingMember(owner), event)
    if (outcome !== 'revoked') throw refusal(outcome)
  }

  /** The invitations that wait for the user's e-mail, once it is confirmed; newest first. */
  async listOwn(userId: string): Promise<readonly OwnInvitation[]> {
    return this.#deps.store.listInvitationsTo(userId, this.#deps.clock())
  }

  /** What a token is for; `undefined` for one that is not valid. */
  async find(token: string): Promise<ShownInvitation | undefined> {
    return this.#deps.store.findInvitation(digestOf(token), this.#deps.clock())
  }

  /**
   * Makes the user a member, and mails the one who has invited them. The token is used up. It confirms the user's e-mail.
   * @param mayConfirm whether the user is signed in; an API key confirms no e-mail.
   * @returns the organization.
   * @throws {ServiceError} `badEmailToken`, `invitationForAnother`, `alreadyMember`, `noSeat`, `tooManyMemberships`, `signInRequired`
   */
  async accept(token: string, owner: SessionOwner, mayConfirm: boolean, actor: Actor): Promise<Organization> {
    const { store, newEvent, clock, findUser, mails } = this.#deps
    const { user } = owner.cachedUser
    // The operation fills the details: only it knows the invitation.
    const event = newEvent('organization.invitation-accepted', actor, user.id, {
      organization: '',
      invitation: '',
    })
    const acting = actingMember(owner)
    const outcome = await store.acceptInvitation(digestOf(token), newId(clock()), acting, mayConfirm, event)
    if (typeof outcome === 'string') throw refusal(outcome)
    const { organization, invitedBy } = outcome
    const inviter = await findUser(invitedBy)
    if (inviter !== undefined && isReachable(inviter))
      mails.send('organizationInvitationAccepted', inviter, {
        organization: organization.name,
        member: user.email,
      })
    return organization
  }
}

const timesOf = ({ createdAt, expiresAt }: Pick<Invitation, 'createdAt' | 'expiresAt'>) => ({
  createdAt: toIso(createdAt),
  expiresAt: toIso(expiresAt),
})

export const serializeInvitation = (invitation: Invitation) => {
  const { id, email, roles, invitedBy } = invitation
  return { id, email, roles, invitedBy, ...timesOf(invitation) }
}

export const serializeOwnInvitation = (invitation: OwnInvitation) => {
  const { id, organizationId, organizationName, roles } = invitation
  return { id, organization: { id: organizationId, name: organizationName }, roles, ...timesOf(invitation) }
}
