/** The texts of the pages of organizations. */

const en = {
  title: 'Organizations',
  text: 'What you share with others.',
  manage: 'Manage organizations',
  none: 'You are in no organization.',
  waiting: 'Invitations',
  waitingText: 'The link in the mail accepts an invitation.',
  create: 'Create an organization',
  name: 'Name',
  slug: 'Short name',
  slugHint: 'For addresses: a to z, 0 to 9 and hyphens.',
  save: 'Save',
  settings: 'Settings',
  members: 'Members',
  you: 'you',
  roles: 'Roles',
  changeRoles: 'Change roles',
  changeRolesOf: (name: string) => `Change roles of ${name}`,
  remove: 'Remove',
  removeOf: (name: string) => `Remove ${name}`,
  leave: 'Leave the organization',
  next: 'Next page',
  invitations: 'Invitations that wait',
  until: 'until',
  invite: 'Invite',
  inviteTitle: 'Invite somebody',
  email: 'E-mail',
  revoke: 'Revoke',
  revokeOf: (email: string) => `Revoke the invitation of ${email}`,
  delete: 'Delete the organization',
  deleteText: (name: string) =>
    `All members of “${name}” lose their access, and what your application keeps for the organization may be lost. This cannot be undone.`,
  back: 'Back to the organization',
  backToList: 'Back to your organizations',
  acceptTitle: 'Invitation',
  acceptText: (name: string, email: string) =>
    `You are invited to the organization “${name}”, with the e-mail ${email}.`,
  accept: 'Accept the invitation',
  signInFirst:
    'Sign in to the account with this e-mail, or sign up with it. This page opens again after that; if it does not, open the link in the mail again.',
  confirmFirst:
    'Your e-mail is not confirmed yet. Open the link in the mail that confirms it, then the link of the invitation again.',
  badInvitation: 'The invitation does not work',
  badInvitationText:
    'The link has been used or replaced, was revoked, or has expired. Ask for another invitation.',
}

const de: typeof en = {
  title: 'Organisationen',
  text: 'Was Sie mit anderen teilen.',
  manage: 'Organisationen verwalten',
  none: 'Sie sind in keiner Organisation.',
  waiting: 'Einladungen',
  waitingText: 'Der Link in der E-Mail nimmt eine Einladung an.',
  create: 'Organisation anlegen',
  name: 'Name',
  slug: 'Kurzname',
  slugHint: 'Für Adressen: a bis z, 0 bis 9 und Bindestriche.',
  save: 'Speichern',
  settings: 'Einstellungen',
  members: 'Mitglieder',
  you: 'Sie',
  roles: 'Rollen',
  changeRoles: 'Rollen ändern',
  changeRolesOf: name => `Rollen ändern: ${name}`,
  remove: 'Entfernen',
  removeOf: name => `${name} entfernen`,
  leave: 'Organisation verlassen',
  next: 'Nächste Seite',
  invitations: 'Offene Einladungen',
  until: 'bis',
  invite: 'Einladen',
  inviteTitle: 'Jemanden einladen',
  email: 'E-Mail',
  revoke: 'Widerrufen',
  revokeOf: email => `Einladung von ${email} widerrufen`,
  delete: 'Organisation löschen',
  deleteText: name =>
    `Alle Mitglieder von „${name}“ verlieren den Zugang, und was Ihre Anwendung für die Organisation aufbewahrt, kann verloren gehen. Das lässt sich nicht rückgängig machen.`,
  back: 'Zurück zur Organisation',
  backToList: 'Zurück zu Ihren Organisationen',
  acceptTitle: 'Einladung',
  acceptText: (name, email) =>
    `Sie sind in die Organisation „${name}“ eingeladen, mit der E-Mail-Adresse ${email}.`,
  accept: 'Einladung annehmen',
  signInFirst:
    'Melden Sie sich bei dem Konto mit dieser E-Mail-Adresse an, oder erstellen Sie eines. Danach öffnet sich diese Seite wieder; wenn nicht, öffnen Sie den Link in der E-Mail noch einmal.',
  confirmFirst:
    'Ihre E-Mail-Adresse ist noch nicht bestätigt. Öffnen Sie den Link in der E-Mail, die sie bestätigt, und dann noch einmal den Link der Einladung.',
  badInvitation: 'Die Einladung gilt nicht',
  badInvitationText:
    'Der Link wurde benutzt, ersetzt oder widerrufen, oder er ist abgelaufen. Bitten Sie um eine neue Einladung.',
}

export const TEXTS = { en, de }

export const ERROR_TEXTS = {
  en: {
    nameWithLink: 'A name must not contain “://” or “www.”.',
    nameAndSlug: 'Fill in the name or the short name, not both.',
    organizationRoleRequired: 'Your roles in the organization do not allow this.',
    invitationForAnother:
      'The invitation is for another e-mail, or yours is not confirmed. Sign in to the account with the invited e-mail, and confirm it.',
    organizationNotFound: 'You are not in this organization any more.',
    memberNotFound: 'This member is gone already.',
    invitationNotFound: 'This invitation is gone already.',
    slugTaken: 'Another organization has this short name. Choose another one.',
    tooManyOrganizations: 'You have created as many organizations as you may.',
    tooManyMemberships: 'You are in as many organizations as possible.',
    tooManyInvitations: 'Too many invitations wait. Revoke one first.',
    alreadyMember: 'This person is a member already.',
    noSeat: 'The organization has no seat left.',
    lastOwner: 'This is the last owner. Make another member owner first, or delete the organization.',
    soleOwner:
      'You are the only owner of an organization with other members. Make another member owner first, or delete it.',
  },
  de: {
    nameWithLink: 'Ein Name darf weder „://“ noch „www.“ enthalten.',
    nameAndSlug: 'Füllen Sie den Namen oder den Kurznamen aus, nicht beide.',
    organizationRoleRequired: 'Ihre Rollen in der Organisation erlauben das nicht.',
    invitationForAnother:
      'Die Einladung gilt einer anderen E-Mail-Adresse, oder Ihre ist nicht bestätigt. Melden Sie sich bei dem Konto mit der eingeladenen Adresse an, und bestätigen Sie sie.',
    organizationNotFound: 'Sie sind nicht mehr in dieser Organisation.',
    memberNotFound: 'Dieses Mitglied ist schon entfernt.',
    invitationNotFound: 'Diese Einladung gibt es nicht mehr.',
    slugTaken: 'Eine andere Organisation hat diesen Kurznamen. Wählen Sie einen anderen.',
    tooManyOrganizations: 'Sie haben so viele Organisationen angelegt, wie Sie dürfen.',
    tooManyMemberships: 'Sie sind in so vielen Organisationen wie möglich.',
    tooManyInvitations: 'Zu viele Einladungen sind offen. Widerrufen Sie zuerst eine.',
    alreadyMember: 'Diese Person ist schon Mitglied.',
    noSeat: 'Die Organisation hat keinen freien Platz.',
    lastOwner:
      'Das ist der letzte Eigentümer. Machen Sie zuerst ein anderes Mitglied zum Eigentümer, oder löschen Sie die Organisation.',
    soleOwner:
      'Ihnen allein gehört eine Organisation mit anderen Mitgliedern. Machen Sie zuerst ein anderes Mitglied zum Eigentümer, oder löschen Sie sie.',
  },
}

export const NOTICES = {
  en: {
    organizationSaved: 'The organization is saved.',
    organizationDeleted: 'The organization is deleted.',
    organizationLeft: 'You have left the organization.',
    memberRemoved: 'The member is removed.',
    memberChanged: 'The roles are changed.',
    invitationSent: 'The invitation is mailed.',
    invitationRevoked: 'The invitation is revoked.',
    invitationAccepted: 'You are a member now.',
  },
  de: {
    organizationSaved: 'Die Organisation ist gespeichert.',
    organizationDeleted: 'Die Organisation ist gelöscht.',
    organizationLeft: 'Sie haben die Organisation verlassen.',
    memberRemoved: 'Das Mitglied ist entfernt.',
    memberChanged: 'Die Rollen sind geändert.',
    invitationSent: 'Die Einladung ist verschickt.',
    invitationRevoked: 'Die Einladung ist widerrufen.',
    invitationAccepted: 'Sie sind jetzt Mitglied.',
  },
}
