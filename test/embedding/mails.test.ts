import { dirname, join } from 'node:path'
import t from 'tap'
import type { MailSite } from '#feature/declaration'
import { notes } from '../../examples/notes/notes.ts'
import { bearer, logCapture } from '../support/build.ts'
import { unlessTaken } from '../support/examples.ts'
import { buildHost, hostConfig, signUpAt } from '../support/host.ts'
import { readMails } from '../support/mailbox.ts'
import { until } from '../support/until.ts'

t.test('a host replaces the texts, the product name and the sender of mails', async t => {
  const config = { ...hostConfig(t), MAIL_URL: undefined, PUBLIC_URL: 'https://app.example/auth' }
  const log = logCapture()
  const host = await buildHost(t, {
    config,
    server: { logger: { level: 'error', stream: log.stream } },
    mails: {
      productName: 'Acme & Sons',
      from: 'Acme <no-reply@acme.example>',
      templates: {
        verification: ({ name, link, token, host, locale }) => ({
          subject: `Welcome to ${name}`,
          text: `Open ${link}\nor use <${token}>\n\nYour ${host} (${locale})`,
        }),
        passwordReset: () => {
          throw new Error('no template')
        },
        accountExists: () => ({ subject: 'two\nlines', text: 'text' }),
      },
    },
  })
  const email = 'ada@example.com'
  const forgot = { method: 'POST', url: '/auth/account/forgot-password', payload: { email } } as const
  t.equal((await signUpAt(host, '/auth', { email, locale: 'fr' })).statusCode, 201)
  t.equal((await host.inject(forgot)).statusCode, 202)
  const folder = join(dirname(String(config.DATABASE_URL).slice('sqlite:'.length)), 'outbox')
  const mails = await until(
    () => readMails(folder),
    found => found.length >= 2,
    10_000,
  )
  const [welcome, reset] = mails
  t.match(welcome, {
    subject: 'Welcome to Acme & Sons',
    from: { name: 'Acme', address: 'no-reply@acme.example' },
    text: /^Open https:\/\/app\.example\/auth\/account\/verify-email\?token=[\w-]+\nor use <[\w-]+>\n\nYour app\.example \(fr\)\n$/,
  })
  t.match(welcome?.html, /<p>Open <a href="(https:[^"]+)">\1<\/a><br>\nor use &lt;[\w-]+&gt;<\/p>/)
  t.match(reset, { subject: 'Choose another password', text: /your account at Acme & Sons\./ })
  t.match(log.records(), [
    {
      msg: 'the template of a mail failed, the built-in text is sent (passwordReset)',
      err: { message: 'no template' },
    },
  ])
})

t.test(
  'a host replaces the texts of mails of features, its own and the built-in ones',
  unlessTaken('notes'),
  async t => {
    const config = { ...hostConfig(t), MAIL_URL: undefined, PUBLIC_URL: 'https://app.example/auth' }
    const host = await buildHost(t, {
      config,
      features: [notes],
      mails: {
        templates: {
          noteAdded: ({ host, text }: MailSite & { readonly text: string }) => ({
            subject: 'A new note',
            text: `At ${host}: ${text}`,
          }),
          apiKeyCreated: ({ scopes }: { readonly scopes: readonly string[] }) => ({
            subject: 'A new key',
            text: `It may ${scopes.join(' and ')}`,
          }),
        },
      },
    })
    const { accessToken } = (await signUpAt(host, '/auth')).json()
    const post = (url: string, payload: object) =>
      host.inject({ method: 'POST', url, headers: bearer(accessToken), payload })
    t.equal((await post('/auth/notes', { text: 'buy hay' })).statusCode, 201)
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
    const key = await post('/auth/account/api-keys', { name: 'a key', scopes: ['notes:read'], expiresAt })
    t.equal(key.statusCode, 201)
    await host.close()
    const folder = join(dirname(String(config.DATABASE_URL).slice('sqlite:'.length)), 'outbox')
    const texts = new Map((await readMails(folder)).map(({ subject, text }) => [subject, text]))
    t.equal(texts.get('A new note'), 'At app.example: buy hay\n')
    t.equal(texts.get('A new key'), 'It may notes:read\n')
  },
)

t.test('a template of a mail that no feature has stops the start', async t => {
  const templates = { unknown: () => ({ subject: 'A mail', text: 'text' }) }
  await t.rejects(buildHost(t, { mails: { templates } }), {
    message: /^There is no mail unknown: the mails are verification, .*apiKeyCreated/,
  })
})
