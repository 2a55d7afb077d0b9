/** `mail`: tries out how mails are sent, and how they look. */
import type { Command } from 'commander'
import { newId } from '#base/ids'
import { type Reader, SettingError } from '#base/settings/readers'
import { fitting } from '#base/texts'
import { composerDepsOf, MailComposer } from '#core/mail/composer'
import { canBeTried, type MailKinds } from '#core/mail/kinds'
import { checkTemplateFiles } from '#core/mail/template-files'
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

/** How the service would send mails. @throws {CommandError}; {ConfigError} */
const prepare = async (locale: string) => {
  const values = settings({})
  const { url, from, folder, templates: templateFiles } = mailOf(values)
  if (url === 'off') throw new CommandError('MAIL_URL is off: no mails are sent')
  const { languages } = await serviceTexts()
  const { mailKindsOf } = await import('#feature/texts')
  const kinds: MailKinds = mailKindsOf(allFeatures())
  const deps = composerDepsOf(siteOf(values))
  if (templateFiles !== null)
    checked('MAIL_TEMPLATES', () => checkTemplateFiles(templateFiles, kinds, deps.brand))
  const ofTemplates = [...(templateFiles?.templates.values() ?? [])].flatMap(ofKind => [...ofKind.keys()])
  if (fitting(locale, [...languages.tags, ...ofTemplates]) === undefined) throw unknownLanguage(languages)
  const composer = new MailComposer(kinds, { ...deps, languages, templateFiles }, unexpected)
  return { kinds, composer, mail: { url, from, folder } }
}

const oneLine = (text: string): string => printable(text.replaceAll(/\s+/g, ' '))

const sendTest = async (address: string, { language: locale }: { language: string }): Promise<void> => {
  const to = recipientOf(address)
  const { kinds, composer, mail } = await prepare(locale)
  const names = Object.keys(kinds)
  const width = Math.max(...names.map(name => name.length))
  const sent = Object.entries(kinds).filter(([, kind]) => canBeTried(kind))
  let file = ''
  const transport = openTransport(mail, written => {
    file = written
  })
  try {
    for (const [name, { example }] of sent) {
      const content = composer.compose(name, locale, [example])
      await transport.send({ ...content, id: newId(), date: new Date(), to }).catch((error: Error) => {
        throw new CommandError(`The mail ${name} was not sent: ${oneLine(error.message)}`)
      })
      print(false, null, [`${name.padEnd(width)}  ${printable(file || content.subject)}`])
    }
  } finally {
    transport.close()
  }
  const mails = count(sent.length, 'mail')
  printStatus(mail.url === null ? `MAIL_URL is not set: ${mails} became files` : `${mails} sent`)
  const left = names.filter(name => !sent.some(([each]) => each === name))
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
