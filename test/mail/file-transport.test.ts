/** The file transport: without an SMTP server mails are files (docs/design.md, "Account life cycle"). */
import { chmodSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import type { MailKinds } from '#core/mail/kinds'
import { Mailer } from '#core/mail/mailer'
import { SHUTDOWN } from '#process/shutdown'
import { build, logCapture, temporaryFolder } from '../support/build.ts'
import { readMails, tokenIn } from '../support/mailbox.ts'
import { createMailer, mailLog, recipient } from '../support/smtp.ts'

const TOKEN = 'canary-token_9f3ac1d0'
const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8)

t.test('each mail is a file readable only by its owner, and a log line has its path', async t => {
  const log = logCapture()
  const app = await build(t, { logStream: log.stream })
  const { folder } = app.config.mail
  app.services.mails.send('verification', recipient('canary@example.com'), { token: TOKEN })
  t.throws(() => statSync(folder), 'nothing has happened when the caller goes on')
  await app.close()

  const [file = ''] = readdirSync(folder)
  t.match(file, /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z-[0-9a-f-]{36}\.eml$/)
  t.same([modeOf(folder), modeOf(join(folder, file))], ['700', '600'])
  const [mail] = await readMails(folder)
  t.match(mail, { to: [{ address: 'canary@example.com' }], from: { address: 'no-reply@localhost' } })
  for (const part of [mail?.text, mail?.html]) t.match(part, `/account/verify-email?token=${TOKEN}`)

  const lines = log.records().filter(({ msg }) => String(msg).includes(folder))
  t.match(lines, [{ level: 30, msg: `a mail was written to ${join(folder, file)}` }])
  t.notMatch(log.text(), /canary/)
})

t.test('file names are unique and in the order of the mails', async t => {
  const folder = join(temporaryFolder(t), 'outbox')
  const mail = { url: null, from: 'no-reply@localhost', folder }
  // Each file waits for the disk: 200 can take longer than a stopping service waits for its mails.
  const parts = { mail, closing: 60_000 }
  const mailers = [createMailer(t, null, parts).mailer, createMailer(t, null, parts).mailer]
  for (let count = 0; count < 100; count += 1)
    for (const [index, mailer] of mailers.entries())
      mailer.send('passwordReset', recipient(`user-${index}@example.com`), { token: `token-${count}` })
  await Promise.all(mailers.map(mailer => mailer.close()))
  const mails = await readMails(folder)
  t.equal(mails.length, 200)
  for (const index of mailers.keys()) {
    const own = mails.filter(({ to }) => to?.[0]?.address === `user-${index}@example.com`)
    t.same(
      own.map(tokenIn),
      Array.from({ length: 100 }, (_, count) => `token-${count}`),
    )
  }
})

t.test('the headers of a file are those of the mail, for any address', async t => {
  const folder = join(temporaryFolder(t), 'outbox')
  const { mailer } = createMailer(t, null, { mail: { url: null, from: 'no-reply@localhost', folder } })
  mailer.send('accountExists', recipient('a@example.com\r\nBcc: b@example.com\r\nSubject: canary\r\n\r\n<p>'))
  await mailer.close()
  const [mail] = await readMails(folder)
  t.equal(mail?.bcc, undefined)
  t.equal(mail?.subject, 'You have an account already')
  t.equal(mail?.headers.filter(({ key }) => key === 'subject').length, 1)
  t.equal(mail?.to?.length, 1)
})

t.test('a failed write is retried and leaves no partial file', async t => {
  const folder = join(temporaryFolder(t), 'folder', 'outbox')
  const mail = { url: null, from: 'no-reply@localhost', folder }
  const { mailer, log } = createMailer(t, null, { mail, limits: { firstDelay: 1, maxDelay: 1 } })
  writeFileSync(dirname(folder), 'in the way')
  mailer.send('passwordReset', recipient('canary@example.com'), { token: TOKEN })
  await log.until(/^warn mails cannot be sent and are retried: ENOTDIR|^warn .*EEXIST/)
  rmSync(dirname(folder))
  mkdirSync(dirname(folder))
  await log.until(/^info a mail was written/)
  chmodSync(folder, 0o500)
  t.equal(readdirSync(folder).length, 1)
  chmodSync(folder, 0o700)
  t.notMatch(log.lines.join(), /canary/)
})

t.test('a kind of mail needs its declaration alone, which types what is sent', async t => {
  const folder = join(temporaryFolder(t), 'outbox')
  const kinds = {
    noteShared: {
      isRateLimited: true,
      places: ({ title }: { title: string }) => ({ title }),
      en: { subject: 'A note was shared with you', text: 'The note {title} at {host}.' },
    },
    notesDeleted: { isRateLimited: true, en: { subject: 'Your notes are deleted', text: 'All of them.' } },
  } satisfies MailKinds
  const mailer = new Mailer(kinds, {
    mail: { url: null, from: 'no-reply@localhost', folder },
    productName: 'notes.example.com',
    publicUrl: 'https://notes.example.com/api',
    webUrl: 'https://notes.example.com',
    accountUrl: 'https://notes.example.com',
    log: mailLog(),
    closing: SHUTDOWN.mails,
  })
  mailer.send('noteShared', recipient('ann@example.com'), { title: 'a < b' })
  mailer.send('notesDeleted', recipient('ann@example.com'))
  // @ts-expect-error a title is missing
  const incomplete = () => mailer.send('noteShared', recipient('ann@example.com'))
  // @ts-expect-error no such kind
  const unknown = () => mailer.send('noteLost', recipient('ann@example.com'))
  t.same([incomplete, unknown].length, 2, 'neither compiles')
  await mailer.close()
  const mails = await readMails(folder)
  t.same(
    mails.map(({ subject }) => subject),
    ['A note was shared with you', 'Your notes are deleted'],
  )
  for (const part of [mails[0]?.text, mails[0]?.html])
    t.match(part, /The note a (<|&lt;) b at notes\.example\.com\./)
})
