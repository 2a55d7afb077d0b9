import type { Block, MailSite } from '#core/mail/kinds'

interface ChangeTexts<Values extends unknown[]> {
  readonly subject: string
  /** What has changed. */
  readonly text: (site: MailSite, ...values: Values) => string
  /** A sentence for the user who has made the change. */
  readonly ifYou?: string
  /** What another user does, as the end of a sentence. Default: to choose a new password. */
  readonly ifNotYou?: string
}

const english = <Values extends unknown[]>({ subject, text, ...other }: ChangeTexts<Values>) => ({
  subject,
  body: (site: MailSite, ...values: Values): readonly Block[] => [
    text(site, ...values),
    ['If it was you, you need to do nothing.', other.ifYou].filter(Boolean).join(' '),
    {
      link: site.accountUrl,
      label: `If it was not you, ${other.ifNotYou ?? 'choose a new password now'}`,
    },
  ],
})

const german = <Values extends unknown[]>({ subject, text, ...other }: ChangeTexts<Values>) => ({
  subject,
  body: (site: MailSite, ...values: Values): readonly Block[] => [
    text(site, ...values),
    ['Wenn Sie es waren, müssen Sie nichts tun.', other.ifYou].filter(Boolean).join(' '),
    {
      link: site.accountUrl,
      label: `Wenn Sie es nicht waren, ${other.ifNotYou ?? 'wählen Sie jetzt ein neues Passwort'}`,
    },
  ],
})

/** The mail about a change of a user's own credentials, which somebody else may have made. */
export const changeMail = <Values extends unknown[] = []>(
  en: ChangeTexts<Values>,
  de: ChangeTexts<Values>,
) => ({
  ...english(en),
  isRateLimited: true,
  de: german(de),
})
