/** `POST /admin/mails/test` and its form in the console, with a real SMTP server. */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { createKey } from '../support/admin-keys.ts'
import { asAdmin, build } from '../support/build.ts'
import { signedInTo } from '../support/console.ts'
import { startSmtp } from '../support/smtp.ts'

const post = (app: FastifyInstance, payload: object, headers: Record<string, string> = asAdmin) =>
  app.inject({ method: 'POST', url: '/admin/mails/test', payload, headers })

t.test('a test mail has examples, in the language that was asked for', async t => {
  const smtp = await startSmtp(t)
  const app = await build(t, { env: { MAIL_URL: smtp.url } })
  const response = await post(app, { email: ' Ops@Example.com ', kind: 'passwordReset', locale: 'DE-at' })
  t.equal(response.statusCode, 200)
  const [{ mail, to }] = (await smtp.received(1)) as [(typeof smtp.mails)[0]]
  t.strictSame(to, ['ops@example.com'])
  t.equal(response.json().subject, mail.subject)
  t.match(mail.text, /Passwort/)

  const byDefault = await post(app, { email: 'ops@example.com' })
  t.equal(byDefault.statusCode, 200)
  t.match((await smtp.received(2))[1]?.mail.text, /Confirm/i)
})

t.test('a refusal has its reason, without the words of the server', async t => {
  const smtp = await startSmtp(t, {
    onRcptTo: (_address, _session, done) =>
      done(Object.assign(new Error('5.1.1 <ops@example.com> canary'), { responseCode: 550 })),
  })
  const app = await build(t, { env: { MAIL_URL: smtp.url, CONSOLE: 'on' } })
  const response = await post(app, { email: 'ops@example.com' })
  t.equal(response.statusCode, 409)
  t.strictSame(response.json(), {
    errors: { global: ['The mail was not sent: 550 5.1.1 to RCPT TO'] },
  })
  t.equal(smtp.mails.length, 0)

  const client = await signedInTo(app)
  await client.open('/console/settings/test-mail')
  await client.submit('test-mail', { email: 'ops@example.com', kind: 'verification' })
  t.equal(client.status, 409)
  t.match(client.page, /The mail was not sent: 550 5\.1\.1 to RCPT TO/)

  await smtp.stop()
  const down = await post(app, { email: 'ops@example.com' })
  t.equal(down.statusCode, 409)
  t.match(down.json().errors.global, [/^The mail was not sent: connect ECONNREFUSED/])
})

t.test('the console sends one', async t => {
  const smtp = await startSmtp(t)
  const app = await build(t, { env: { MAIL_URL: smtp.url, CONSOLE: 'on' } })
  const client = await signedInTo(app, undefined, { headers: { 'accept-language': 'de' } })
  await client.open('/console/settings/test-mail')
  await client.submit('test-mail', { email: 'ops@example.com', kind: 'magicLink', locale: 'de' })
  t.equal(client.path, '/console/settings')
  t.match(client.page, /Der Mailserver hat die Mail angenommen/)
  t.equal((await smtp.received(1)).length, 1)
})

t.test('what is refused', async t => {
  const app = await build(t, { env: { MAIL_URL: 'off' } })
  t.equal((await post(app, { email: 'ops@example.com' })).statusCode, 409)
  const { headers } = await createKey(app, ['users:write'])
  t.equal((await post(app, { email: 'ops@example.com' }, headers)).statusCode, 403)
  const { headers: allowed } = await createKey(app, ['mails:test'])
  t.match((await post(app, { email: 'ops@example.com' }, allowed)).json(), {
    errors: { global: [/MAIL_URL is off/] },
  })
  for (const payload of [
    {},
    { email: 'ops' },
    { email: 'a@example.com\r\nBcc: b@example.com' },
    { email: ['ops@example.com'] },
    { email: 'ops@example.com', kind: 'constructor' },
    { email: 'ops@example.com', kind: '' },
    { email: 'ops@example.com', locale: '../de' },
    { email: 'ops@example.com', subject: 'x' },
  ])
    t.equal((await post(app, payload)).statusCode, 400, JSON.stringify(payload))
})

t.test('an address gets a limited number of them', async t => {
  const smtp = await startSmtp(t)
  const app = await build(t, { env: { MAIL_URL: smtp.url, RATE_LIMIT: 'on' } })
  const statuses: number[] = []
  for (let i = 0; i < 11; i += 1) statuses.push((await post(app, { email: 'ops@example.com' })).statusCode)
  t.strictSame(statuses, [...Array(10).fill(200), 429])
  t.equal((await post(app, { email: 'other@example.com' })).statusCode, 200)
})
