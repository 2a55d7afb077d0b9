/** `npm run cli -- mail test`: one mail of each kind, as a service with the same settings sends it. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { mailKindsOf } from '#feature/texts'
import { BUILT_IN_FEATURES } from '#features/built-in'
import { temporaryFolder } from '../support/build.ts'
import { runCommand } from '../support/cli.ts'
import { readMails } from '../support/mailbox.ts'
import { startSmtp } from '../support/smtp.ts'

const ANN = 'ann@example.com'
const KINDS = Object.entries(mailKindsOf(BUILT_IN_FEATURES))

t.test('one mail of each kind is sent, in a language', async t => {
  const smtp = await startSmtp(t)
  const env = {
    MAIL_URL: smtp.url,
    MAIL_FROM: 'Acme <accounts@example.com>',
    PRODUCT_NAME: 'Acme Rockets',
    PUBLIC_URL: 'https://accounts.example.com',
  }
  const { code, stdout, stderr } = await runCommand(
    ['mail', 'test', 'Ann@Example.com', '--language', 'de-AT'],
    env,
  )
  t.match({ code, stderr }, { code: 0, stderr: /^\d+ mails sent$/m })
  const expected = KINDS.map(([, { en, de = en }]) => de.subject)
  for (const [name, { en, de = en }] of KINDS) t.match(stdout, new RegExp(`^${name} +${de.subject}$`, 'm'))
  t.match(
    smtp.mails.map(({ mail }) => mail.subject),
    expected,
  )
  for (const { mail, from, to } of smtp.mails.slice(0, KINDS.length)) {
    t.strictSame([from, to], ['accounts@example.com', [ANN]])
    t.match(mail.text, 'Acme Rockets')
    t.notMatch(`${mail.subject} ${mail.text} ${mail.html}`, /undefined|\{\w+\}/)
    for (const [, link = ''] of (mail.html ?? '').matchAll(/href="([^"]*)"/g))
      t.ok(link.startsWith('https://accounts.example.com/'), link)
  }
})

t.test('without MAIL_URL they become files, in English by default', async t => {
  const folder = temporaryFolder(t)
  const env = { DATABASE_URL: `sqlite:${join(folder, 'test.db')}` }
  const { code, stdout, stderr } = await runCommand(['mail', 'test', ANN], env)
  t.match({ code, stderr }, { code: 0, stderr: /^MAIL_URL is not set: \d+ mails became files$/m })
  t.strictSame(readdirSync(folder), ['outbox'], 'no store is created')
  const mails = await readMails(join(folder, 'outbox'))
  t.equal(stdout.match(/^\w+ +.*\.eml$/gm)?.length, mails.length)
  t.match(
    mails.map(({ subject }) => subject),
    KINDS.map(([, { en }]) => en.subject),
  )
})

t.test('what keeps mails from being sent is a sentence', async t => {
  const refusing = await startSmtp(t, {
    onRcptTo: (_address, _session, done) =>
      done(Object.assign(new Error('5.7.1 canary: relay denied'), { responseCode: 550 })),
  })
  const stopped = await startSmtp(t)
  await stopped.stop()
  const test = (MAIL_URL: string, ...args: string[]) => runCommand(['mail', 'test', ...args], { MAIL_URL })
  for (const [args, code, message] of [
    [[refusing.url, ANN], 1, /^The mail verification was not sent: .*550 5\.7\.1 canary: relay denied\n$/],
    [[stopped.url, ANN], 1, /^The mail verification was not sent: connect ECONNREFUSED .*\n$/],
    [['off', ANN], 1, /^MAIL_URL is off: no mails are sent\n$/],
    [['off', 'ann'], 2, /^The address must be a valid e-mail address\n$/],
    [[stopped.url, ANN, '--language', 'fr'], 1, /^There are no texts in this language: .*en, de\n$/],
    [[stopped.url, ANN, '--language', 'english'], 2, /^--language must be a language tag/],
  ] as const) {
    const [url, ...rest] = args
    t.match(await test(url, ...rest), { code, stdout: '', stderr: message })
  }
})
