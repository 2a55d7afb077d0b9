/** All texts of a service that `TEXTS` can translate or replace. */
import type { OwnedTexts } from '#base/texts'
import { ACCOUNT_MAILS } from '#core/accounts/mails'
import { ownedBy } from '#core/mail/composer'
import { FRAME_TEXTS } from '#core/mail/frame'
import type { MailKinds } from '#core/mail/kinds'
import { ACCOUNT_TEXTS } from '#http/pages/account-texts'
import { CORE_TEXTS } from '#http/pages/texts'
import type { Feature } from './declaration.ts'

/** Every kind of mail of the core and of some features. */
export const mailKindsOf = (features: readonly Feature[]): typeof ACCOUNT_MAILS & MailKinds =>
  Object.assign({}, ACCOUNT_MAILS, ...features.map(({ mails }) => mails))

/**
 * The texts of pages and mails, of the core first.
 * @param settings of the features.
 */
export const allTexts = async (
  features: readonly Feature[],
  settings: Readonly<Record<string, unknown>>,
): Promise<OwnedTexts[]> => {
  const ofPages = features.map(async ({ pages }) => {
    const exported = (await pages?.())?.default
    return (typeof exported === 'function' ? exported(settings) : exported)?.texts ?? []
  })
  const ofMails = Object.entries(mailKindsOf(features)).map(([name, kind]) => ownedBy(name, kind))
  return [CORE_TEXTS, ACCOUNT_TEXTS, ...(await Promise.all(ofPages)).flat(), FRAME_TEXTS, ...ofMails]
}
