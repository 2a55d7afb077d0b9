/** `npm run cli -- texts`, and the example of a language, which has every text. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { build, temporaryFolder } from '../support/build.ts'
import { runCommand } from '../support/cli.ts'

const EXAMPLE = 'examples/languages'

const texts = (TEXTS: string, ...args: string[]) => runCommand(['texts', ...args], TEXTS ? { TEXTS } : {})

const folderWith = (t: Test, files: Readonly<Record<string, object>>): string => {
  const folder = join(temporaryFolder(t), 'texts')
  mkdirSync(folder)
  for (const [name, content] of Object.entries(files))
    writeFileSync(join(folder, name), JSON.stringify(content))
  return folder
}

t.test('texts export writes every text of a language, as a file of TEXTS', async t => {
  const english = await texts('', 'export')
  t.match(english, { code: 0, stderr: '' })
  const all = JSON.parse(english.stdout)
  t.match(all, {
    'core.signIn': 'Sign in',
    'account.profile': 'Profile',
    'totp.codes': 'Save your recovery codes',
    'console.errors.scopeRequired': /./,
    'mails.frame.help': 'Help',
    'mails.passwordReset.subject': 'Choose another password',
  })
  t.strictSame(await texts('', 'export', 'en'), english)
  const german = JSON.parse((await texts('', 'export', 'de')).stdout)
  t.strictSame(Object.keys(german), Object.keys(all))
  t.equal(german['core.signIn'], 'Anmelden')

  const folder = folderWith(t, { 'de.json': { 'core.signIn': 'Los' }, 'nl.json': all })
  t.match(await texts(folder, 'export', 'de'), { code: 0, stdout: /"core\.signIn": "Los"/ })
  t.strictSame(await texts(folder, '--missing', 'nl'), {
    code: 0,
    stdout: '{}\n',
    stderr: `nl lacks 0 texts of ${Object.keys(all).length}, which are in English\n`,
  })
})

t.test('texts --missing writes the English texts that a language lacks', async t => {
  const all = JSON.parse((await texts('', 'export')).stdout)
  const { 'core.signIn': signIn, ...others } = all
  const folder = folderWith(t, { 'nl.json': others, 'nl-BE.json': {}, 'de-AT.json': {} })
  for (const tag of ['nl', 'nl-BE'])
    t.match(await texts(folder, '--missing', tag), {
      code: 0,
      stdout: `${JSON.stringify({ 'core.signIn': signIn }, null, 2)}\n`,
      stderr: `${tag} lacks 1 text of`,
    })
  // The mail to the operator is in English only.
  for (const tag of ['de', 'de-AT']) {
    const { stdout } = await texts(folder, '--missing', tag)
    t.ok(Object.keys(JSON.parse(stdout)).every(key => key.startsWith('mails.webhookDisabled.')))
  }
})

t.test('mistakes are sentences', async t => {
  for (const args of [
    ['export', 'fr'],
    ['--missing', 'fr'],
    ['export', 'EN'],
  ])
    t.strictSame(await texts('', ...args), {
      code: 1,
      stdout: '',
      stderr:
        'There are no texts in this language: TEXTS names a folder with its file, such as fr.json. The languages are en, de\n',
    })
  const unknown = folderWith(t, { 'fr.json': { 'core.nothing': 'Rien' } })
  t.match(await texts(unknown, '--missing', 'fr'), {
    code: 1,
    stdout: '',
    stderr: /^TEXTS has a mistake in .*fr\.json: there is no text core\.nothing\n$/,
  })
  t.match(await texts(join(unknown, 'none'), 'export'), {
    code: 2,
    stdout: '',
    stderr: /^ +TEXTS has a mistake in .*: must be a folder/m,
  })
  t.match(await texts(''), { code: 2, stdout: '', stderr: /^Usage: gatehouse texts/ })
})

t.test('the example has every text in French, and a service starts with it', async t => {
  t.match(await texts(EXAMPLE, '--missing', 'fr'), { code: 0, stdout: '{}\n' })
  for (const CONSOLE of ['on', 'off']) {
    const app = await build(t, { env: { TEXTS: EXAMPLE, CONSOLE } })
    const page = await app.inject({
      url: '/sign-in',
      headers: { accept: 'text/html', 'accept-language': 'fr-CA, en;q=0.5' },
    })
    t.match(page.body, '<html lang="fr">')
    t.match(page.body, '<h1>Se connecter</h1>')
  }
})
