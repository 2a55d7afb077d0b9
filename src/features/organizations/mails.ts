/** The mails of organizations, in both languages. */

import { linkTo } from '#core/mail/kinds'
import type { MailSite } from '#feature/declaration'

/** The page that accepts an invitation. */
const ACCEPT = '/organizations/accept'

type OrganizationValue = {
  /** The name of the organization, which its owners choose. */
  readonly organization: string
}

type InvitationValue = OrganizationValue & { readonly token: string; readonly days: number }

/** The e-mail of the member, which owners and admins see in the list too. */
type MemberValue = OrganizationValue & { readonly member: string }

type RolesValue = OrganizationValue & { readonly roles: readonly string[] }

const acceptLink = ({ webUrl }: MailSite, { token }: InvitationValue): string => linkTo(webUrl, ACCEPT, token)

type NoticeTexts = {
  readonly subject: string
  readonly text: string
}

const organizationPlaces = ({ organization }: OrganizationValue) => ({ organization })
const memberPlaces = ({ organization, member }: MemberValue) => ({ organization, member })
const rolesPlaces = ({ organization, roles }: RolesValue) => ({ organization, roles: roles.join(', ') })

const EXAMPLE = { organization: 'Example', member: 'member@example.com', roles: ['admin'] }

/** A mail without a link, which others cause. */
const notice = <Places>(places: Places, en: NoticeTexts, de: NoticeTexts) => ({
  isRateLimited: 'alone' as const,
  places,
  example: EXAMPLE,
  en,
  de,
})

export const MAILS = {
  organizationInvitation: {
    isRateLimited: 'alone',
    link: acceptLink,
    places: ({ organization, days }: InvitationValue) => ({ organization, days }),
    example: { ...EXAMPLE, token: 'example', days: 7 },
    en: {
      subject: 'You are invited to an organization',
      text: 'You are invited to the organization “{organization}” at {product}.',
      button: 'Accept the invitation',
      reason:
        'The link works for {days} days, for an account with this e-mail: sign in, or sign up first. If you do not know the organization, ignore this mail.',
    },
    de: {
      subject: 'Sie sind in eine Organisation eingeladen',
      text: 'Sie sind in die Organisation „{organization}“ bei {product} eingeladen.',
      button: 'Einladung annehmen',
      reason:
        'Der Link gilt {days} Tage lang, für ein Konto mit dieser E-Mail-Adresse: Melden Sie sich an, oder registrieren Sie sich zuerst. Wenn Sie die Organisation nicht kennen, ignorieren Sie diese E-Mail.',
    },
  },
  organizationInvitationAccepted: notice(
    memberPlaces,
    {
      subject: 'Your invitation is accepted',
      text: '{member} has accepted your invitation to the organization “{organization}” at {product}, and is a member now.',
    },
    {
      subject: 'Ihre Einladung ist angenommen',
      text: '{member} hat Ihre Einladung in die Organisation „{organization}“ bei {product} angenommen und ist jetzt Mitglied.',
    },
  ),
  organizationMemberAdded: {
    isRateLimited: 'alone',
    places: rolesPlaces,
    example: EXAMPLE,
    en: {
      subject: 'You are a member of an organization',
      text: 'You are a member of the organization “{organization}” at {product} now, with these roles: {roles}.',
      reason: 'If you do not want that, leave the organization.',
    },
    de: {
      subject: 'Sie sind Mitglied einer Organisation',
      text: 'Sie sind jetzt Mitglied der Organisation „{organization}“ bei {product}, mit diesen Rollen: {roles}.',
      reason: 'Wenn Sie das nicht möchten, verlassen Sie die Organisation.',
    },
  },
  organizationRolesChanged: notice(
    rolesPlaces,
    {
      subject: 'Your roles in an organization have changed',
      text: 'Your roles in the organization “{organization}” at {product} are now: {roles}.',
    },
    {
      subject: 'Ihre Rollen in einer Organisation haben sich geändert',
      text: 'Ihre Rollen in der Organisation „{organization}“ bei {product} sind jetzt: {roles}.',
    },
  ),
  organizationMemberRemoved: notice(
    organizationPlaces,
    {
      subject: 'You are no member of an organization any more',
      text: 'You are no member of the organization “{organization}” at {product} any more.',
    },
    {
      subject: 'Sie sind nicht mehr Mitglied einer Organisation',
      text: 'Sie sind nicht mehr Mitglied der Organisation „{organization}“ bei {product}.',
    },
  ),
  organizationMemberLeft: notice(
    memberPlaces,
    {
      subject: 'A member has left your organization',
      text: '{member} has left the organization “{organization}” at {product}.',
    },
    {
      subject: 'Ein Mitglied hat Ihre Organisation verlassen',
      text: '{member} hat die Organisation „{organization}“ bei {product} verlassen.',
    },
  ),
  organizationOwnershipPassed: notice(
    organizationPlaces,
    {
      subject: 'You own an organization now',
      text: 'The only owner of the organization “{organization}” at {product} was removed. You are its owner now.',
    },
    {
      subject: 'Ihnen gehört jetzt eine Organisation',
      text: 'Der einzige Eigentümer der Organisation „{organization}“ bei {product} wurde entfernt. Sie sind jetzt ihr Eigentümer.',
    },
  ),
  organizationDeleted: {
    ...notice(
      organizationPlaces,
      {
        subject: 'An organization was deleted',
        text: 'The organization “{organization}” at {product}, of which you were a member, was deleted.',
      },
      {
        subject: 'Eine Organisation wurde gelöscht',
        text: 'Die Organisation „{organization}“ bei {product}, deren Mitglied Sie waren, wurde gelöscht.',
      },
    ),
    // One for each membership, to which the user has agreed. Counting a thousand at once would keep the store from others.
    isRateLimited: false,
  },
} as const
