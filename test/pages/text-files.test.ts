/** The files of `TEXTS`: a language of pages and mails, and the mistakes that stop the start. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { build, freshEmail, signUp, temporaryFolder } from '../support/build.ts'
import { mailbox } from '../support/mailbox.ts'
import { until } from '../support/until.ts'

const folderWith = (
  t: Parameters<typeof temporaryFolder>[0],
  files: Readonly<Record<string, unknown>>,
): string => {
  const folder = join(temporaryFolder(t), 'texts')
  mkdirSync(folder)
  for (const [name, content] of Object.entries(files))
    writeFileSync(
      join(folder, name),
      typeof content === 'string' || Buffer.isBuffer(content) ? content : JSON.stringify(content),
    )
  return folder
}

t.test('a file adds a language of pages and mails, and what it lacks is English', async t => {
  const TEXTS = folderWith(t, {
    'fr.json': {
      'core.signIn': 'Se connecter',
      'mails.verification.subject': 'Confirmez votre adresse',
      'mails.verification.text': 'Un compte chez {product} a été ouvert avec cette adresse.',
      'mails.frame.sentBy': '{product} envoie ce message.',
    },
    'de.json': { 'core.signIn': 'Einloggen' },
    'README.md': 'not a text',
  })
  const app = await build(t, { env: { TEXTS } })
  const page = async (language: string) =>
    (await app.inject({ url: '/sign-in', headers: { accept: 'text/html', 'accept-language': language } }))
      .body
  const french = await page('fr-CH,de;q=0.5')
  t.match(french, '<html lang="fr">')
  t.match(french, 'Se connecter')
  t.match(french, 'Password')
  t.match(await page('de'), 'Einloggen')
  t.notMatch(await page('en'), 'Se connecter')

  const email = freshEmail()
  await signUp(app, { email, locale: 'fr-CA' })
  const mails = mailbox(app)
  const [mail] = await until(
    async () => (await mails.all()).filter(({ to }) => to?.[0]?.address === email),
    found => found.length > 0,
    10_000,
  )
  t.equal(mail?.subject, 'Confirmez votre adresse')
  t.match(mail?.text, /^Un compte chez /)
  t.match(mail?.html, '<html lang="fr">')
})

const MISTAKES: [files: Readonly<Record<string, unknown>>, message: RegExp][] = [
  [{ 'fr.json': { 'core.nothing': 'Rien' } }, /fr\.json: there is no text core\.nothing/],
  [{ 'fr.json': { 'core.signedInAs': 'Bonjour' } }, /fr\.json: core\.signedInAs needs the place \{email\}/],
  [{ 'fr.json': { 'core.signIn': 'Bonjour {name}' } }, /fr\.json: core\.signIn has no place \{name\}/],
  [{ 'fr.json': { 'core.signIn': 1 } }, /fr\.json: core\.signIn must be a text/],
  [{ 'fr.json': { 'core.signIn': ' ' } }, /fr\.json: core\.signIn must not be empty/],
  [
    { 'fr.json': { 'core.signIn': 'a\u202eb' } },
    /fr\.json: core\.signIn must not contain control characters/,
  ],
  [{ 'fr.json': { 'mails.signUp.subject': 'a\nBcc: b@c.example' } }, /must not contain control characters/],
  [{ 'fr.json': ['core.signIn'] }, /fr\.json: must be an object/],
  [{ 'fr.json': '{' }, /fr\.json: must be JSON/],
  [{ 'fr.json': Buffer.from([0x7b, 0xff, 0x7d]) }, /fr\.json: is not valid UTF-8/],
  [{ 'fr.json': 'x'.repeat(1_048_577) }, /fr\.json: must have at most 1 MiB/],
  [{ 'french!.json': {} }, /french!\.json: must have a language tag \(BCP 47\) in its name/],
  [{ 'pt-br.json': {} }, /pt-br\.json: must have the language as pt-BR in its name/],
]

t.test('a mistake stops the start with a sentence that names file and key', async t => {
  for (const [files, message] of MISTAKES)
    await t.rejects(build(t, { env: { TEXTS: folderWith(t, files) } }), { name: 'ConfigError', message })
  await t.rejects(build(t, { env: { TEXTS: '/nowhere/texts' } }), {
    message: /must be a folder that can be read/,
  })
  const folder = folderWith(t, {})
  symlinkSync('/dev/null', join(folder, 'fr.json'))
  await t.rejects(build(t, { env: { TEXTS: folder } }), { message: /fr\.json: must be a file, not a folder/ })
})
