/** `MAIL_TEMPLATES`: an operator's own mails, and the mistakes that stop the start. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Languages } from '#base/texts'
import { ACCOUNT_MAILS } from '#core/accounts/mails'
import { MailComposer } from '#core/mail/composer'
import { DEFAULT_BRAND, type MailBrand } from '#core/mail/frame'
import type { MailTemplate } from '#core/mail/kinds'
import { checkTemplateFiles, readTemplateFiles } from '#core/mail/template-files'
import { mailKindsOf } from '#feature/texts'
import { BUILT_IN_FEATURES } from '#features/built-in'
import { build, signUp, temporaryFolder } from '../support/build.ts'
import { runCommand } from '../support/cli.ts'
import { buildHost, hostConfig, signUpAt } from '../support/host.ts'
import { mailbox } from '../support/mailbox.ts'
import { until } from '../support/until.ts'

type Files = Readonly<Record<string, string | Buffer>>

const folderWith = (t: Test, files: Files): string => {
  const folder = join(temporaryFolder(t), 'mails')
  mkdirSync(folder)
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content)
  return folder
}

/** Both files of a template. */
const pair = (name: string, html = '<p>{{link}}</p>', txt = 'Subject: A subject\n\n{{link}}\n'): Files => ({
  [`${name}.html`]: html,
  [`${name}.txt`]: txt,
})

const HOSTILE = `"><img src=x> {{link}} $& \u0026amp;`

const KINDS = mailKindsOf(BUILT_IN_FEATURES)

const composerOf = (
  t: Test,
  files: Files,
  parts: { languages?: Languages; templates?: Record<string, MailTemplate>; brand?: MailBrand } = {},
) => {
  const templateFiles = readTemplateFiles(folderWith(t, files))
  checkTemplateFiles(templateFiles, KINDS, parts.brand ?? DEFAULT_BRAND)
  const site = {
    productName: 'Acme & Sons',
    publicUrl: 'https://accounts.example.com',
    webUrl: 'https://accounts.example.com',
    accountUrl: 'https://accounts.example.com/security',
  }
  return new MailComposer(KINDS, { ...site, templateFiles, ...parts }, () => undefined)
}

t.test('a service sends the mails of its folder', async t => {
  const MAIL_TEMPLATES = folderWith(t, {
    ...pair(
      'verification.en',
      '<a href="{{ link }}">{{product}}</a>',
      'Subject: Welcome to {{product}}\r\n\r\n{{link}}\r\n',
    ),
    'README.md': '{{not a template}}',
  })
  const app = await build(t, { env: { MAIL_TEMPLATES, PRODUCT_NAME: 'Acme & Sons' } })
  const { email } = await signUp(app)
  const mails = mailbox(app)
  const [mail] = await until(
    async () => (await mails.all()).filter(({ to }) => to?.[0]?.address === email),
    found => found.length > 0,
    10_000,
  )
  t.equal(mail?.subject, 'Welcome to Acme & Sons')
  t.match(mail?.html, /^<a href="https?:[^"<>]+\?token=[\w-]+">Acme &amp; Sons<\/a>/)
  t.match(mail?.text, /^https?:\S+\?token=[\w-]+\n+$/)
})

t.test('values are text in both parts', async t => {
  const composer = composerOf(t, {
    ...pair('emailChanged.en', '<p title="{{newEmail}}">{{newEmail}}</p>', 'Subject: Changed\n{{newEmail}}'),
    ...pair(
      'accessRemoved.en',
      '<p>{{more}}</p><a href="{{link}}">',
      'Subject: Removed\n\n{{more}}\n{{link}}',
    ),
    ...pair('emailCode.en', '<b>{{code}}</b>{{more}}', 'Subject: Code\n\n{{code}} {{more}}'),
  })
  const escaped = '&quot;&gt;&lt;img src=x&gt; {{link}} $&amp; &amp;amp;'
  t.strictSame(composer.compose('emailChanged', null, [{ newEmail: HOSTILE }]), {
    subject: 'Changed',
    text: HOSTILE,
    html: `<p title="${escaped}">${escaped}</p>`,
  })
  const removed = [
    { kind: '<b>', count: 1 },
    { kind: 'sessions', count: 2 },
  ]
  t.strictSame(composer.compose('accessRemoved', 'en', [{ removed }]), {
    subject: 'Removed',
    text: '– <b>\n– Sessions: 2\nhttps://accounts.example.com/security',
    html: '<p>– &lt;b&gt;<br>\n– Sessions: 2</p><a href="https://accounts.example.com/security">',
  })
  t.match(composer.compose('emailCode', 'en', [{ code: '12345678', isConfirmed: true }]), {
    html: '<b>12345678</b>',
    text: '12345678 ',
  })
})

t.test('the language is the best of those of files and texts', async t => {
  const languages = new Languages(new Map([['fr', { 'mails.passwordReset.subject': 'Un mot de passe' }]]))
  const files = {
    ...pair('passwordReset.en', 'en {{link}}'),
    ...pair('passwordReset.it', 'it {{link}}'),
    ...pair('passwordReset.pt-BR', 'pt {{link}}'),
  }
  const composer = composerOf(t, files, { languages })
  const htmlFor = (locale: string | null) => composer.compose('passwordReset', locale, [{ token: 't' }]).html
  for (const [locale, text] of [
    ['en', /^en /],
    ['en-GB', /^en /],
    [null, /^en /],
    ['nl', /^en /],
    ['it', /^it /],
    ['it-CH', /^it /],
    ['pt-BR', /^pt /],
    ['pt-PT', /^pt /],
    ['de', /<html lang="de">[\s\S]*Anderes Passwort wählen/],
    ['fr-CA', /<html lang="fr">[\s\S]*Un mot de passe/],
  ] as const)
    t.match(htmlFor(locale), text, String(locale))
})

t.test('a template of a host comes before the files, which come before the texts', async t => {
  const templates: Record<string, MailTemplate> = {
    verification: () => ({ subject: 'Of the host', text: 'text' }),
    passwordReset: () => {
      throw new Error('no template')
    },
  }
  const composer = composerOf(t, { ...pair('verification.en'), ...pair('passwordReset.en') }, { templates })
  const subjectOf = (kind: string) => composer.compose(kind, 'en', [{ token: 't' }]).subject
  t.equal(subjectOf('verification'), 'Of the host')
  t.equal(subjectOf('passwordReset'), 'A subject')
  t.equal(subjectOf('signUp'), ACCOUNT_MAILS.signUp.en.subject)
})

t.test('a template can show the logo, if mails have one', async t => {
  const files = pair('emailChanged.en', '<img src="{{logo}}" alt="Acme">', 'Subject: x\n\nx')
  const logo = { content: Buffer.from('png'), ratio: 1 }
  const read = readTemplateFiles(folderWith(t, files))
  checkTemplateFiles(read, KINDS, { logo })
  const composer = composerOf(t, files, { brand: { ...DEFAULT_BRAND, logo } })
  t.match(composer.compose('emailChanged', 'en', [{ newEmail: HOSTILE }]), {
    html: '<img src="cid:logo@gatehouse" alt="Acme">',
    logo: logo.content,
  })
  for (const other of ['letter', 'name'] as const)
    t.throws(() => checkTemplateFiles(read, KINDS, { logo: other }), {
      message: /there is no \{\{logo\}\} here/,
    })
})

t.test('a host application can use files too', async t => {
  const MAIL_TEMPLATES = folderWith(t, pair('verification.en'))
  const config = { ...hostConfig(t), MAIL_URL: undefined, MAIL_TEMPLATES }
  const host = await buildHost(t, { config })
  t.equal((await signUpAt(host, '/auth')).statusCode, 201)
})

const MISTAKES: [files: Files, message: RegExp][] = [
  [
    pair('verification.en', `<p>{{link}}</p>{{${' '.repeat(100_000)}`),
    /verification\.en\.html: has \{\{ without a name/,
  ],
  [
    pair('verifikation.en'),
    /verifikation\.en\.html: there is no mail verifikation, the mails are verification, signUp/,
  ],
  [pair('toString.en'), /there is no mail toString/],
  [
    pair('verification.en', '{{link}} {{name}}'),
    /verification\.en\.html: there is no \{\{name\}\} here, there are \{\{product\}\}, .*\{\{link\}\}/,
  ],
  [
    pair('emailChanged.en', '{{newEmail}}', 'Subject: x\n\n{{link}}'),
    /emailChanged\.en\.txt: there is no \{\{link\}\} here/,
  ],
  [pair('verification.en', '{{link}} {{#if link}}'), /there is no \{\{#if link\}\} here/],
  [pair('verification.en', '{{link}} {{link}'), /verification\.en\.html: has \{\{ without a name and \}\}/],
  [
    pair('verification.en', '{{{link}}}', undefined),
    /verification\.en\.html: has \{\{ without a name and \}\}/,
  ],
  [pair('verification.en', 'no link'), /verification\.en\.html: needs \{\{link\}\}/],
  [pair('emailCode.en', '{{code}}', 'Subject: x\n\nno code'), /emailCode\.en\.txt: needs \{\{code\}\}/],
  [
    pair('emailChanged.en', 'x', 'Subject: {{newEmail}}\n\nx'),
    /emailChanged\.en\.txt, the subject: there is no \{\{newEmail\}\} here, there are \{\{product\}\}, \{\{host\}\}, \{\{publicUrl\}\}$/,
  ],
  [
    { 'verification.en.html': '{{link}}' },
    /verification\.en\.html: there must be verification\.en\.txt beside it/,
  ],
  [
    { 'verification.en.txt': 'Subject: x\n\n{{link}}' },
    /verification\.en\.txt: there must be verification\.en\.html beside it/,
  ],
  [pair('verification.en', 'x'.repeat(262_145)), /verification\.en\.html: must have at most 256 KiB/],
  [pair('verification.english!'), /verification\.english!\.html: must have a language tag/],
  [pair('verification.EN'), /verification\.EN\.html: must have the language as en in its name/],
  [
    pair('verification'),
    /verification\.html: must be named by its kind and language, such as verification\.en\.html/,
  ],
  [pair('a.b.en'), /a\.b\.en\.html: must be named by its kind/],
  [pair('verification.en', ' \n'), /verification\.en\.html: must not be empty/],
  [pair('verification.en', '{{link}}\0'), /verification\.en\.html: must not contain control characters/],
  [
    pair('verification.en', '{{link}}', '{{link}}'),
    /verification\.en\.txt: must begin with a line such as “Subject: /,
  ],
  [
    pair('verification.en', '{{link}}', 'Subject:\n\n{{link}}'),
    /verification\.en\.txt: must begin with a line/,
  ],
  [pair('verification.en', '{{link}}', 'Subject: x'), /verification\.en\.txt: must begin with a line/],
  [
    { ...pair('verification.en'), 'verification.en.html': Buffer.from([0xff, 0xff, 0xff]) },
    /verification\.en\.html: is not valid UTF-8/,
  ],
]

t.test('a mistake stops the start with a sentence that names the file', async t => {
  for (const [files, message] of MISTAKES)
    await t.rejects(build(t, { env: { MAIL_TEMPLATES: folderWith(t, files) } }), {
      name: 'ConfigError',
      message,
    })
  await t.rejects(build(t, { env: { MAIL_TEMPLATES: '/nowhere/mails' } }), {
    message: /MAIL_TEMPLATES has a mistake in \/nowhere\/mails: must be a folder that can be read/,
  })
  const MAIL_TEMPLATES = folderWith(t, pair('verifikation.en'))
  t.match(await runCommand(['mail', 'test', 'ann@example.com'], { MAIL_TEMPLATES }), {
    code: 1,
    stdout: '',
    stderr: /^MAIL_TEMPLATES has a mistake in .*verifikation\.en\.html: there is no mail verifikation/,
  })
})
