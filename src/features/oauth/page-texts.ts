/** The texts of the pages of the authorization server. */
import { defineTexts } from '#base/texts'

export const TEXTS = defineTexts('oauth', {
  en: {
    title: '{client} wants to use your {product} account',
    able: '{client} will be able to',
    scopes: {
      openid: 'Know who you are',
      profile: 'See your name and your language',
      email: 'See your e-mail',
      offline_access: 'Keep this access while you are away, until you end it in your account',
      'account:read': 'Read your account',
      'account:write': 'Change your names and your metadata',
      'users:read': 'List other users',
    },
    onlyIn: 'Only in the organization {organization}.',
    organization: 'Limit the access to one organization',
    everyOrganization: 'Do not limit it',
    goOn: 'You go on to {host}.',
    stranger: '{product} does not run this application.',
    goOnToDevice:
      'You go on to a program on this device. Anybody can write one with this name: only allow it if you have just started it yourself.',
    notYou: 'Not you?',
    allow: 'Allow',
    deny: 'Cancel',
    policy: 'Privacy policy',
    terms: 'Terms',
    leaving: 'You go on to the application',
    leave: 'Go on',
    since: 'since',
    end: 'End access',
    endOf: 'End the access of {client}',
    errors: {
      unknownClient: 'The application that has sent you here is not known.',
      unknownRedirectUri:
        'The application that has sent you here wants you to come back to an address that is not known.',
      requestNotFound: 'This request has expired, or was decided already. Begin again at the application.',
      grantNotFound: 'This application has no access any more.',
    },
    notices: { grantEnded: 'The application has no access any more.' },
  },
  de: {
    title: '{client} möchte Ihr Konto bei {product} verwenden',
    able: '{client} kann dann',
    scopes: {
      openid: 'Wissen, wer Sie sind',
      profile: 'Ihren Namen und Ihre Sprache sehen',
      email: 'Ihre E-Mail-Adresse sehen',
      offline_access: 'Diesen Zugriff behalten, wenn Sie nicht da sind, bis Sie ihn in Ihrem Konto beenden',
      'account:read': 'Ihr Konto lesen',
      'account:write': 'Ihren Namen und Ihre Metadaten ändern',
      'users:read': 'Andere Konten auflisten',
    },
    onlyIn: 'Nur in der Organisation {organization}.',
    organization: 'Den Zugriff auf eine Organisation beschränken',
    everyOrganization: 'Nicht beschränken',
    goOn: 'Weiter geht es bei {host}.',
    stranger: 'Diese Anwendung wird nicht von {product} betrieben.',
    goOnToDevice:
      'Weiter geht es bei einem Programm auf diesem Gerät. Jeder kann eines mit diesem Namen schreiben: Erlauben Sie es nur, wenn Sie es gerade selbst gestartet haben.',
    notYou: 'Sind Sie das nicht?',
    allow: 'Erlauben',
    deny: 'Abbrechen',
    policy: 'Datenschutz',
    terms: 'Bedingungen',
    leaving: 'Weiter zur Anwendung',
    leave: 'Weiter',
    since: 'seit',
    end: 'Zugriff beenden',
    endOf: 'Zugriff von {client} beenden',
    errors: {
      unknownClient: 'Die Anwendung, die Sie hierher geschickt hat, ist nicht bekannt.',
      unknownRedirectUri:
        'Die Anwendung, die Sie hierher geschickt hat, will Sie zu einer Adresse zurückschicken, die nicht bekannt ist.',
      requestNotFound:
        'Diese Anfrage ist abgelaufen oder schon entschieden. Beginnen Sie bei der Anwendung noch einmal.',
      grantNotFound: 'Diese Anwendung hat keinen Zugriff mehr.',
    },
    notices: { grantEnded: 'Die Anwendung hat keinen Zugriff mehr.' },
  },
})
