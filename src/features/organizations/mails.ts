/** The mails of organizations, in both languages. */

import { linkTo } from '#core/mail/kinds'
import type { MailSite } from '#feature/declaration'

/** The page that accepts an invitation. */
const ACCEPT = '/organizations/accept'

const ACCEPT_ROUTE = '/account/invitations/accept'

type OrganizationValue = {
  /** The name of the organization, which its owners choose. */
  readonly organization: string
}

type InvitationValue = OrganizationValue & { readonly token: string; readonly days: number }

/** The e-mail of the member, which owners and admins see in the list too. */
type MemberValue = OrganizationValue & { readonly member: string }

type RolesValue = OrganizationValue & { readonly roles: readonly string[] }

const acceptLink = ({ webUrl }: MailSite, { token }: InvitationValue): string => linkTo(webUrl, ACCEPT, token)

type Text<Value> = (site: MailSite, value: Value) => string

/** A mail of one sentence, which others cause. */
const notice = <Value>(subject: string, text: Text<Value>, germanSubject: string, german: Text<Value>) => ({
  subject,
  isRateLimited: 'alone' as const,
  body: (site: MailSite, value: Value) => [text(site, value)],
  de: { subject: germanSubject, body: (site: MailSite, value: Value) => [german(site, value)] },
})

export const MAILS = {
  organizationInvitation: {
    subject: 'You are invited to an organization',
    isRateLimited: 'alone',
    link: acceptLink,
    body: (site: MailSite, values: InvitationValue) => [
      `You are invited to the organization “${values.organization}” at ${site.name}.`,
      { link: acceptLink(site, values), label: 'Accept the invitation' },
      `Without a browser, send this token to POST ${site.publicUrl}${ACCEPT_ROUTE}:`,
      { code: values.token },
      `The link works for ${values.days} days, for an account with this e-mail: sign in, or sign up first.`,
      'If you do not know the organization, ignore this mail.',
    ],
    de: {
      subject: 'Sie sind in eine Organisation eingeladen',
      body: (site: MailSite, values: InvitationValue) => [
        `Sie sind in die Organisation „${values.organization}“ bei ${site.name} eingeladen.`,
        { link: acceptLink(site, values), label: 'Die Einladung annehmen' },
        `Ohne Browser senden Sie dieses Token an POST ${site.publicUrl}${ACCEPT_ROUTE}:`,
        { code: values.token },
        `Der Link gilt ${values.days} Tage lang, für ein Konto mit dieser E-Mail-Adresse: Melden Sie sich an, oder registrieren Sie sich zuerst.`,
        'Wenn Sie die Organisation nicht kennen, ignorieren Sie diese E-Mail.',
      ],
    },
  },
  organizationInvitationAccepted: notice<MemberValue>(
    'Your invitation is accepted',
    ({ name }, { organization, member }) =>
      `${member} has accepted your invitation to the organization “${organization}” at ${name}, and is a member now.`,
    'Ihre Einladung ist angenommen',
    ({ name }, { organization, member }) =>
      `${member} hat Ihre Einladung in die Organisation „${organization}“ bei ${name} angenommen und ist jetzt Mitglied.`,
  ),
  organizationMemberAdded: {
    subject: 'You are a member of an organization',
    isRateLimited: 'alone',
    body: (site: MailSite, { organization, roles }: RolesValue) => [
      `You are a member of the organization “${organization}” at ${site.name} now, with these roles: ${roles.join(', ')}.`,
      'If you do not want that, leave the organization.',
    ],
    de: {
      subject: 'Sie sind Mitglied einer Organisation',
      body: (site: MailSite, { organization, roles }: RolesValue) => [
        `Sie sind jetzt Mitglied der Organisation „${organization}“ bei ${site.name}, mit diesen Rollen: ${roles.join(', ')}.`,
        'Wenn Sie das nicht möchten, verlassen Sie die Organisation.',
      ],
    },
  },
  organizationRolesChanged: notice<RolesValue>(
    'Your roles in an organization have changed',
    ({ name }, { organization, roles }) =>
      `Your roles in the organization “${organization}” at ${name} are now: ${roles.join(', ')}.`,
    'Ihre Rollen in einer Organisation haben sich geändert',
    ({ name }, { organization, roles }) =>
      `Ihre Rollen in der Organisation „${organization}“ bei ${name} sind jetzt: ${roles.join(', ')}.`,
  ),
  organizationMemberRemoved: notice<OrganizationValue>(
    'You are no member of an organization any more',
    ({ name }, { organization }) =>
      `You are no member of the organization “${organization}” at ${name} any more.`,
    'Sie sind nicht mehr Mitglied einer Organisation',
    ({ name }, { organization }) =>
      `Sie sind nicht mehr Mitglied der Organisation „${organization}“ bei ${name}.`,
  ),
  organizationMemberLeft: notice<MemberValue>(
    'A member has left your organization',
    ({ name }, { organization, member }) =>
      `${member} has left the organization “${organization}” at ${name}.`,
    'Ein Mitglied hat Ihre Organisation verlassen',
    ({ name }, { organization, member }) =>
      `${member} hat die Organisation „${organization}“ bei ${name} verlassen.`,
  ),
  organizationOwnershipPassed: notice<OrganizationValue>(
    'You own an organization now',
    ({ name }, { organization }) =>
      `The only owner of the organization “${organization}” at ${name} was removed. You are its owner now.`,
    'Ihnen gehört jetzt eine Organisation',
    ({ name }, { organization }) =>
      `Der einzige Eigentümer der Organisation „${organization}“ bei ${name} wurde entfernt. Sie sind jetzt ihr Eigentümer.`,
  ),
  organizationDeleted: {
    ...notice<OrganizationValue>(
      'An organization was deleted',
      ({ name }, { organization }) =>
        `The organization “${organization}” at ${name}, of which you were a member, was deleted.`,
      'Eine Organisation wurde gelöscht',
      ({ name }, { organization }) =>
        `Die Organisation „${organization}“ bei ${name}, deren Mitglied Sie waren, wurde gelöscht.`,
    ),
    // One for each membership, to which the user has agreed. Counting a thousand at once would keep the store from others.
    isRateLimited: false,
  },
} as const
