/** `mail`: tries out how mails are sent, and how they look. */
import type { Command } from 'commander'
import { newId } from '#base/ids'
import { type Reader, SettingError } from '#base/settings/readers'
import { fitting } from '#base/texts'
import { composerDepsOf, MailComposer } from '#core/mail/composer'
import type { MailKind, MailKinds } from '#core/mail/kinds'
import { checkTemplateFiles, type TemplateFiles } from '#core/mail/template-files'
import { openTransport } from '#core/mail/transports'
import { canonicalLocale, INVALID_LOCALE } from '#core/users/locale'
import { canonicalEmail } from '#core/users/user'
import { CommandError, UsageError } from '#feature/commands/failure'
import { option } from '#feature/commands/options'
import { count, print, printable, printStatus } from '#feature/commands/output'
import { allFeatures } from '#features/built-in'
import { newEmailViolations } from '#http/validation/formats'
import { mailOf, siteOf } from '../config/config.ts'
import { settings } from './store.ts'
import { checked, serviceTexts, unknownLanguage } from './texts.ts'

const language: Reader<string> = text => {
  const locale = canonicalLocale(text)
  if (locale === null) throw new SettingError(INVALID_LOCALE)
  return locale
}

/** @throws {UsageError} */
const recipientOf = (address: string): string => {
  const email = canonicalEmail(address)
  const [violation] = newEmailViolations(email)
  if (violation !== undefined) throw new UsageError(`The address ${violation}`)
  return email
}

/** A host's templates are not known here. */
const unexpected = (error: Error): never => {
  throw error
}

const composerFor = async (
  locale: string,
  templateFiles: TemplateFiles | null,
): Promise<[MailComposer<MailKinds>, MailKinds]> => {
  const { languages } = await serviceTexts()
  const { mailKindsOf } = await import('#feature/texts')
  const kinds = mailKindsOf(allFeatures())
  const ofSite = composerDepsOf(siteOf(settings({})))
  if (templateFiles !== null)
    checked('MAIL_TEMPLATES', () => checkTemplateFiles(templateFiles, kinds, ofSite.brand))
  const ofTemplates = [...(templateFiles?.templates.values() ?? [])].flatMap(ofKind => [...ofKind.keys()])
  if (fitting(locale, [...languages.tags, ...ofTemplates]) === undefined) throw unknownLanguage(languages)
  return [new MailComposer(kinds, { ...ofSite, languages, templateFiles }, unexpected), kinds]
}

const hasValues = ({ places, example }: MailKind): boolean => places === undefined || example !== undefined

const oneLine = (text: string): string => printable(text.replaceAll(/\s+/g, ' '))

const sendTest = async (address: string, { language: locale }: { language: string }): Promise<void> => {
  const to = recipientOf(address)
  const { url, from, folder, templates } = mailOf(settings({}))
  if (url === 'off') throw new CommandError('MAIL_URL is off: no mails are sent')
  const [composer, kinds] = await composerFor(locale, templates)
  const names = Object.keys(kinds)
  const width = Math.max(...names.map(name => name.length))
  const left = names.filter(name => !hasValues(kinds[name] as MailKind))
  const sent = names.filter(name => !left.includes(name))
  let written = ''
  const transport = openTransport({ url, from, folder }, file => {
    written = file
  })
  try {
    for (const name of sent) {
      const content = composer.compose(name, locale, [kinds[name]?.example])
      await transport.send({ ...content, id: newId(), date: new Date(), to }).catch((error: Error) => {
        throw new CommandError(`The mail ${name} was not sent: ${oneLine(error.message)}`)
      })
      print(false, null, [`${name.padEnd(width)}  ${printable(written || content.subject)}`])
    }
  } finally {
    transport.close()
  }
  printStatus(
    url === null
      ? `MAIL_URL is not set: ${count(sent.length, 'mail')} became files`
      : `${count(sent.length, 'mail')} sent`,
  )
  if (left.length > 0) printStatus(`Left out, because they declare no example: ${left.join(', ')}`)
}

export const mailCommand = (program: Command): void => {
  program
    .command('mail')
    .description('Mails')
    .command('test <address>')
    .description('Send one mail of each kind by MAIL_URL, with values and links that are examples')
    .addOption(option('--language <language>', 'of the mails, such as de', language).default('en'))
    .action(sendTest)
}
