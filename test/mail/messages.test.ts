/** The content of mails, and SMTP (docs/design.md, "Account life cycle"). Parsed as mail clients parse them. */

import type { AddressInfo } from 'node:net'
import type { SMTPServerAuthentication } from 'smtp-server'
import t from 'tap'
import type { AccountMails } from '#core/accounts/mails'
import { ADMIN_KEY, bearer, build, freshEmail, PASSWORD, signUp } from '../support/build.ts'
import { MAILED_SIGN_INS } from '../support/email-codes.ts'
import { mailbox, SUBJECT } from '../support/mailbox.ts'
import { lines, RawConnection, withJson } from '../support/raw-http.ts'
import { liveRoutes } from '../support/routes.ts'
import { createMailer, recipient, startSmtp } from '../support/smtp.ts'

const TOKEN = 'canary-token_9f3ac1d0'
const ANN = 'ann@example.com'

const missing = (what = 'a mail'): never => {
  throw new Error(`${what} is missing`)
}

const decode = (html: string): string =>
  html
    .replaceAll(
      /&(lt|gt|quot|#39);/g,
      (_entity, name) => ({ lt: '<', gt: '>', quot: '"', '#39': "'" })[name as 'lt'],
    )
    .replaceAll('&amp;', '&')

const linksOf = (html = ''): string[] =>
  [...html.matchAll(/href="([^"]*)"/g)].map(([, url = '']) => decode(url))

const API = 'https://accounts.example.com/api'

const RESET_LINK = `https://app.example.com/welcome/reset-password?from=mail&token=${TOKEN}`

const WITH_TOKEN: [
  kind: 'verification' | 'signUp' | 'emailChange' | 'passwordReset',
  subject: RegExp,
  link: string,
  lasts: RegExp,
][] = [
  ['verification', /Confirm/, `${API}/account/verify-email?token=${TOKEN}`, /24 hours/],
  ['emailChange', /Confirm/, `${API}/account/verify-email?token=${TOKEN}`, /24 hours/],
  ['passwordReset', /another password/, RESET_LINK, /one hour/],
  ['signUp', /Confirm/, `${API}/account/verify-email?token=${TOKEN}`, /24 hours/],
]

t.test('mails with a token have link, token and validity in both parts', async t => {
  for (const [kind, subject, link, lasts] of WITH_TOKEN) {
    const smtp = await startSmtp(t)
    const { mailer, log } = createMailer(t, smtp.url)
    mailer.send(kind, recipient(ANN), { token: TOKEN })
    const [received] = await smtp.received(1)
    const { mail, from, to } = received ?? missing()
    t.same([from, to], ['no-reply@gatehouse.example', [ANN]], kind)
    t.same(mail.from, { name: 'Gatehouse', address: 'no-reply@gatehouse.example' })
    t.same(mail.to, [{ name: '', address: ANN }])
    t.match(mail.subject, subject)
    t.notMatch(mail.subject, TOKEN)
    t.same(linksOf(mail.html), [link, link], 'the button, and the address in full')
    for (const part of [mail.text, decode(mail.html ?? '')]) {
      t.ok(part?.includes(link), 'the link')
      t.notMatch(part, 'POST ', 'no instructions for programs')
      t.match(part, lasts)
    }
    t.equal(mail.headers.find(({ key }) => key === 'auto-submitted')?.value, 'auto-generated')
    t.same(log.lines, [])
  }
})

const NOTICES: { [Kind in keyof AccountMails]?: RegExp } = {
  emailChangeRequested: /new address was requested .*: new@example\.com/,
  emailChanged: /has a new address: new@example\.com/,
  passwordChanged: /password .* has been changed/,
  accountDeleted: /have been deleted/,
}

t.test('notices name the event and the service in both parts, without a token', async t => {
  const smtp = await startSmtp(t)
  const { mailer } = createMailer(t, smtp.url)
  mailer.send('emailChangeRequested', recipient(ANN), { newEmail: 'new@example.com' })
  mailer.send('emailChanged', recipient(ANN), { newEmail: 'new@example.com' })
  mailer.send('passwordChanged', recipient(ANN), { isFirstConfirmation: true })
  mailer.send('accountDeleted', recipient(ANN))
  const mails = await smtp.received(4)
  for (const [kind, said] of Object.entries(NOTICES)) {
    const { mail } = mails.find(({ mail }) => said.test(mail.text ?? '')) ?? missing(kind)
    t.match(mail.html, said, kind)
    t.match(mail.text, /at accounts\.example\.com/)
    t.notMatch(mail.text + (mail.html ?? ''), /token/)
    t.ok(linksOf(mail.html).every(link => link === 'https://app.example.com/welcome?from=mail'))
  }
  t.equal(new Set(mails.map(({ mail }) => mail.subject)).size, 4)
  t.equal(new Set(mails.map(({ mail }) => mail.messageId)).size, 4)
})

t.test('values are escaped in HTML and encoded in links', async t => {
  const smtp = await startSmtp(t)
  const { mailer } = createMailer(t, smtp.url)
  const hostile = `"><script>alert('1')</script>&amp;?a=b#c`
  mailer.send('emailChanged', recipient(ANN), { newEmail: hostile })
  mailer.send('passwordReset', recipient(ANN), { token: hostile })
  for (const { mail } of await smtp.received(2)) {
    t.notMatch(mail.html, /<script|alert\('/)
    t.notMatch(mail.html, /&(?!amp;|lt;|gt;|quot;|#39;)/)
    const tokens = linksOf(mail.html).flatMap(link => new URL(link).searchParams.get('token') ?? [])
    for (const token of tokens) t.equal(token, hostile)
    const parameter = new URLSearchParams([['', hostile]]).toString()
    for (const content of [decode(mail.html ?? ''), mail.text ?? ''])
      t.ok(content.includes(hostile) || content.includes(parameter))
  }
})

t.test('an address is one recipient or none, and never a header', async t => {
  const smtp = await startSmtp(t)
  const { mailer, log } = createMailer(t, smtp.url)
  const hostile = [
    'a@canary.example, b@canary.example',
    'a@canary.example\r\nBcc: b@canary.example',
    'a@canary.example\nSubject: canary',
    'a@canary.example>\r\nRCPT TO:<b@canary.example',
    'group: a@canary.example, b@canary.example;',
    'Ann <a@canary.example>',
    'a\0@canary.example',
    '',
  ]
  for (const address of hostile) mailer.send('passwordReset', recipient(address), { token: TOKEN })
  mailer.send('passwordReset', recipient(ANN), { token: TOKEN })
  await mailer.close()
  t.same(
    smtp.mails.map(({ to }) => to),
    [[ANN]],
  )
  t.equal(log.lines.length, hostile.length)
  for (const line of log.lines)
    t.match(line, /^error a mail was refused \(passwordReset\): MailFailure: (501 |EENVELOPE)/)
  t.notMatch(log.lines.join(), /canary/)
})

t.test('the service uses the credentials and TLS of MAIL_URL', async t => {
  const seen: SMTPServerAuthentication[] = []
  const smtp = await startSmtp(t, {
    authOptional: false,
    disabledCommands: [],
    onAuth(auth, _session, done) {
      seen.push(auth as SMTPServerAuthentication)
      done(null, { user: auth.username })
    },
  })
  const url = smtp.url.replace('//', '//user%40example.com:canary%2Fpass@')
  const app = await build(t, {
    env: {
      MAIL_URL: `${url}?requireTLS=true&tls.rejectUnauthorized=false`,
      MAIL_FROM: 'accounts@example.com',
      PUBLIC_URL: API,
    },
  })
  app.services.mails.send('verification', recipient(ANN), { token: TOKEN })
  const [received] = await smtp.received(1)
  t.match(received, { from: 'accounts@example.com', to: [ANN], secure: true, user: 'user@example.com' })
  t.match(received?.mail.text, `${API}/account/verify-email?token=${TOKEN}`)
  t.match(seen, [{ username: 'user@example.com', password: 'canary/pass' }])

  app.services.mails.send('accountDeleted', recipient(ANN))
  await app.close()
  t.equal(smtp.mails.length, 2, 'what waits when the service stops is sent')
})

/** Each of these decides about URLs in some frameworks. */
const FORGED = [
  'Host: evil.example',
  'X-Forwarded-Host: evil.example',
  'X-Forwarded-Proto: evil',
  'X-Forwarded-Port: 666',
  'X-Forwarded-Prefix: /evil',
  'X-Forwarded-Server: evil.example',
  'X-Original-URL: /evil',
  'X-Rewrite-URL: /evil',
  'X-Host: evil.example',
  'Forwarded: for=192.0.2.1;host=evil.example;proto=evil',
  'Referer: https://evil.example/',
]

t.test('R4: links are those of PUBLIC_URL, also behind a proxy that passes on what clients send', async t => {
  for (const TRUST_PROXY of ['none', 'loopback']) {
    const PUBLIC_URL = 'https://accounts.example.com'
    const app = await build(t, { env: { ...MAILED_SIGN_INS, PUBLIC_URL, TRUST_PROXY } })
    const mails = mailbox(app)
    await app.listen({ port: 0, host: '127.0.0.1' })
    const { port } = app.server.address() as AddressInfo
    const { email, token } = await signUp(app)
    const [newEmail, created] = [freshEmail(), freshEmail()]
    const authorization = `Authorization: ${bearer(token).authorization}`
    const bodies: Record<string, object> = {
      'POST /account/sign-up': { email: created, password: PASSWORD },
      'POST /account/forgot-password': { email },
      'POST /account/email-code': { email },
      'POST /account/magic-link': { email },
      'POST /account/verify-email/resend': {},
      'PUT /account/email': { email: newEmail, password: PASSWORD },
    }
    const mailing = liveRoutes(app).filter(({ rateLimit }) => rateLimit === 'mail')
    t.same(mailing.map(({ method, url }) => `${method} ${url}`).sort(), Object.keys(bodies).sort())
    const adminKey = `X-Admin-Key: ${ADMIN_KEY}`
    const form = new URLSearchParams({ email }).toString()
    const connection = new RawConnection(port)
    for (const [route, body] of Object.entries(bodies))
      connection.write(withJson([`${route} HTTP/1.1`, ...FORGED, authorization], body))
    connection
      .write(withJson(['POST /admin/users HTTP/1.1', ...FORGED, adminKey], { email: freshEmail() }))
      .write(lines('GET /admin/users?limit=1 HTTP/1.1', ...FORGED, adminKey))
      .write(lines('GET /security HTTP/1.1', ...FORGED))
      .write(lines('GET /sign-in HTTP/1.1', ...FORGED))
      .write(
        lines(
          'POST /forgot-password HTTP/1.1',
          ...FORGED,
          'Content-Type: application/x-www-form-urlencoded',
          `Content-Length: ${form.length}`,
          'Connection: close',
        ) + form,
      )
    const responses = await connection.untilClosed()
    t.same(
      responses.map(({ statusCode }) => statusCode),
      [201, 202, 202, 202, 202, 202, 201, 200, 303, 200, 200],
      TRUST_PROXY,
    )
    t.notMatch(connection.received, /evil/, 'no response has what a client has sent')
    for (const [address, kind, count] of [
      [email, 'verification', 2],
      [email, 'passwordReset', 2],
      [email, 'emailCode', 1],
      [email, 'magicLink', 1],
      [created, 'verification', 1],
      [newEmail, 'emailChange', 1],
    ] as const)
      await mails.to(address, kind, count)
    for (const { subject = '', text = '', html = '', headers } of await mails.all()) {
      t.notMatch(JSON.stringify([headers, text, html]), /evil/, subject)
      const urls = `${text} ${html}`.match(/https?:[^\s"<]+/g) ?? []
      const origins = [...new Set(urls.map(url => new URL(url).origin))]
      t.same(origins, subject === SUBJECT.emailCode ? [] : [PUBLIC_URL], subject)
    }
  }
})
