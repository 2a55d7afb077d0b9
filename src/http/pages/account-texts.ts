/** The texts of the frame of all pages, and of the account page. */
import { defineTexts } from '#base/texts'
import type { PageContext } from './layout.ts'

export const ACCOUNT_TEXTS = defineTexts('account', {
  en: {
    skip: 'Skip to the content',
    privacy: 'Privacy',
    terms: 'Terms',
    help: 'Help',
    yourAccount: 'Your account',
    backTo: 'Back to {product}',
    showPassword: 'Show the password',
    copy: 'Copy',
    copied: 'Copied',
    download: 'Download',
    print: 'Print',
    strength: 'Too short, Easy to guess, Good, Strong',

    change: 'Change',
    cancel: 'Cancel',
    add: 'Add',
    save: 'Save',
    none: 'None',

    profile: 'Profile',
    profileText: 'What the applications of {product} know about you.',
    name: 'Name',
    saveName: 'Save name',
    confirmed: 'Confirmed',
    notConfirmed: 'Not confirmed',
    newEmail: 'New e-mail',
    newEmailHint: 'We send a link there. Your account changes when you open it.',
    sendLink: 'Send link',
    language: 'Language',
    languageLabel: 'Language of pages and mails',
    languageOfBrowser: 'As in your browser',
    saveLanguage: 'Save language',

    signIn: 'Ways to sign in',
    signInText: 'With two ways, you get in when one is lost.',
    passwordSet: 'Set',
    passwordNotSet: 'Not set',
    choosePassword: 'Choose',
    remove: 'Remove',

    secondStep: 'Second step',
    secondStepText: 'After your password, a code that only you have.',

    devices: 'Devices',
    devicesText: 'Where you are signed in.',
    thisDevice: 'This device',
    signOutDevice: 'Sign out',
    signOutDeviceOf: 'Sign out {device}',
    signOutOthers: 'Sign out all others',

    applications: 'Applications',
    applicationsText: 'What you have given access to your account.',

    close: 'Close account',
    closeText: 'Deletes your account and what belongs to it.',
    closeFinal: 'Cannot be undone',
    closeExplanation:
      'Your profile, sessions, keys and connections are deleted at once. Nobody can restore them.',
    closeConfirm: 'I want to delete {email} for good',
    closeButton: 'Close my account',
    closed: 'Your account is closed',
    closedText: 'Your account and your personal data are deleted.',
  },
  de: {
    skip: 'Zum Inhalt springen',
    privacy: 'Datenschutz',
    terms: 'Nutzungsbedingungen',
    help: 'Hilfe',
    yourAccount: 'Ihr Konto',
    backTo: 'Zurück zu {product}',
    showPassword: 'Passwort zeigen',
    copy: 'Kopieren',
    copied: 'Kopiert',
    download: 'Herunterladen',
    print: 'Drucken',
    strength: 'Zu kurz, Leicht zu erraten, Gut, Stark',

    change: 'Ändern',
    cancel: 'Abbrechen',
    add: 'Hinzufügen',
    save: 'Speichern',
    none: 'Keine Angabe',

    profile: 'Profil',
    profileText: 'Was die Anwendungen von {product} über Sie wissen.',
    name: 'Name',
    saveName: 'Namen speichern',
    confirmed: 'Bestätigt',
    notConfirmed: 'Nicht bestätigt',
    newEmail: 'Neue E-Mail',
    newEmailHint: 'Dorthin senden wir einen Link. Ihr Konto ändert sich, wenn Sie ihn öffnen.',
    sendLink: 'Link senden',
    language: 'Sprache',
    languageLabel: 'Sprache von Seiten und Mails',
    languageOfBrowser: 'Wie im Browser',
    saveLanguage: 'Sprache speichern',

    signIn: 'Anmeldung',
    signInText: 'Mit zwei Wegen kommen Sie auch dann in Ihr Konto, wenn einer verloren geht.',
    passwordSet: 'Gesetzt',
    passwordNotSet: 'Nicht gesetzt',
    choosePassword: 'Wählen',
    remove: 'Entfernen',

    secondStep: 'Zweiter Schritt',
    secondStepText: 'Nach dem Passwort ein Code, den nur Sie haben.',

    devices: 'Geräte',
    devicesText: 'Wo Sie angemeldet sind.',
    thisDevice: 'Dieses Gerät',
    signOutDevice: 'Abmelden',
    signOutDeviceOf: '{device} abmelden',
    signOutOthers: 'Alle anderen abmelden',

    applications: 'Anwendungen',
    applicationsText: 'Was auf Ihr Konto zugreifen darf.',

    close: 'Konto schließen',
    closeText: 'Löscht Ihr Konto und alles, was dazugehört.',
    closeFinal: 'Nicht rückgängig zu machen',
    closeExplanation:
      'Ihr Profil, Ihre Sitzungen, Schlüssel und Verbindungen werden sofort gelöscht. Niemand kann sie wiederherstellen.',
    closeConfirm: 'Ich will {email} endgültig löschen',
    closeButton: 'Mein Konto schließen',
    closed: 'Ihr Konto ist geschlossen',
    closedText: 'Ihr Konto und Ihre persönlichen Daten sind gelöscht.',
  },
})

export const accountTexts = ({ textsOf }: Pick<PageContext, 'textsOf'>): typeof ACCOUNT_TEXTS.en =>
  textsOf(ACCOUNT_TEXTS)
