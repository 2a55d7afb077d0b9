import type { MailSite } from '#core/mail/kinds'

interface ChangeTexts {
  readonly subject: string
  /** What has changed. */
  readonly text: string
  /** A sentence for the user who has made the change. */
  readonly ifYou?: string
  /** What another user does, as the end of a sentence. Default: to choose a new password. */
  readonly ifNotYou?: string
}

const english = ({ subject, text, ifYou, ifNotYou = 'choose a new password now' }: ChangeTexts) => ({
  subject,
  text,
  button: 'Account security',
  reason: ['If it was you, you need to do nothing.', ifYou, `If it was not you, ${ifNotYou}.`]
    .filter(Boolean)
    .join(' '),
})

const german = ({ subject, text, ifYou, ifNotYou = 'wählen Sie jetzt ein neues Passwort' }: ChangeTexts) => ({
  subject,
  text,
  button: 'Kontosicherheit',
  reason: ['Wenn Sie es waren, müssen Sie nichts tun.', ifYou, `Wenn Sie es nicht waren, ${ifNotYou}.`]
    .filter(Boolean)
    .join(' '),
})

/** The mail about a change of a user's own credentials, which somebody else may have made. */
export const changeMail = (en: ChangeTexts, de: ChangeTexts) => ({
  isRateLimited: true,
  link: ({ accountUrl }: MailSite): string => accountUrl,
  en: english(en),
  de: german(de),
})
