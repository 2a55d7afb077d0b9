/** Pages of users who are not signed in (docs/design.md, "Hosted pages"): sign-in, forgotten password, links of mails. */

import type { FastifyInstance } from 'fastify'
import { Secret, TOTP } from 'otpauth'
import type { Email } from 'postal-mime'
import t, { type Test } from 'tap'
import { RATE_LIMITS } from '#core/rate-limits/limits'
import { accountOf, changeEmail, forgot } from '../support/account-routes.ts'
import { addTotp } from '../support/authenticator-apps.ts'
import {
  accountStatus,
  asAdmin,
  bearer,
  build,
  confirmedUser,
  cookie,
  freshEmail,
  logCapture,
  manualClock,
  PASSWORD,
  signIn,
  signUp,
  updateUser,
} from '../support/build.ts'
import { codesOf, EMAIL_CODES, MAILED_SIGN_INS, otherThan, requestLink } from '../support/email-codes.ts'
import { errorsAt } from '../support/error-response.ts'
import { FormClient } from '../support/form-client.ts'
import { buildHost, signUpAt } from '../support/host.ts'
import { perAddress } from '../support/limits.ts'
import { mailbox } from '../support/mailbox.ts'
import { call as callAs, organizationOf } from '../support/organizations.ts'

const NEW = 'nine otters crossed a bridge'
const HOSTILE = `"><script>alert('1')</script>&amp;`

/** Of pages whose script calls the API: those with passkeys. */
const CONNECT = "connect-src 'self'; "

const PAGES = [
  '/sign-in',
  '/sign-up',
  '/forgot-password',
  '/reset-password?token=x',
  '/account/verify-email?token=x',
]

/** The page of a link that was used, has expired or was guessed: neither a success nor an error. */
const isDeadLink = (t: Test, browser: FormClient): void => {
  t.equal(browser.status, 400)
  t.equal(browser.heading, 'This link does not work any more')
  t.match(browser.page, 'If you have just used it, all is well')
  t.notMatch(browser.page, 'Error')
}

const linkIn = (mail: Email | undefined, path: string): string => {
  const text = mail?.text ?? ''
  const { pathname, search } = new URL(new RegExp(`https?://\\S+${path}\\?token=\\S+`).exec(text)?.[0] ?? '')
  return pathname + search
}

const app = await build(t)
const mails = mailbox(app)

t.test('pages are HTML with a strict policy, and are not stored', async t => {
  for (const url of [...PAGES, '/nope-security?x'])
    for (const method of ['GET', 'HEAD'] as const) {
      const { statusCode, headers } = await app.inject({ method, url })
      if (url.startsWith('/nope')) {
        t.match(headers['content-type'], 'application/json', 'unknown pages are unknown routes')
        continue
      }
      t.ok([200, 400].includes(statusCode), `${method} ${url}`)
      t.match(headers, {
        'content-type': 'text/html; charset=utf-8',
        'cache-control': 'no-store',
        'referrer-policy': 'strict-origin',
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        vary: /accept-language/,
        'content-security-policy': `default-src 'none'; script-src 'self'; ${url === '/sign-in' ? CONNECT : ''}style-src 'self'; img-src 'self' data:; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
      })
    }
})

t.test('the stylesheet is cached by a hash of its content', async t => {
  const { page } = await new FormClient(app).open('/sign-in')
  t.match(page, '<link rel="stylesheet" href="./pages/style.css">')
  const { statusCode, headers } = await app.inject('/pages/style.css')
  t.equal(statusCode, 200)
  t.match(headers, { 'content-type': 'text/css; charset=utf-8', etag: /^"[\w-]{22}"$/ })
  const again = await app.inject({
    url: '/pages/style.css',
    headers: { 'if-none-match': String(headers.etag) },
  })
  t.equal(again.statusCode, 304)
})

t.test('the language follows Accept-Language', async t => {
  const languageOf = async (accepted: string): Promise<string | undefined> => {
    const { body } = await app.inject({ url: '/sign-in', headers: { 'accept-language': accepted } })
    const [, language] = /<html lang="(\w+)">/.exec(body) ?? []
    t.match(body, language === 'de' ? 'Passwort vergessen?' : 'Forgot your password?')
    return language
  }
  for (const accepted of ['de', 'de-AT', 'fr, de;q=0.8, en;q=0.5', 'DE'])
    t.equal(await languageOf(accepted), 'de')
  for (const accepted of ['en', 'en-US, de;q=0.9', 'fr', '*', '', ';;', 'constructor'])
    t.equal(await languageOf(accepted), 'en', accepted)
})

t.test('sign-in sets the cookie and leads to the security page', async t => {
  const { email } = await signUp(app)
  const browser = await new FormClient(app).open('/sign-in')
  await browser.submit('sign-in', { email, password: PASSWORD })
  t.equal(browser.path, '/security')
  t.equal(await accountStatus(app, browser.cookie('ACCESS_TOKEN') ?? ''), 200)
})

t.test('a wrong password keeps the e-mail, never the password', async t => {
  const { email } = await signUp(app)
  const browser = await new FormClient(app).open('/sign-in')
  await browser.submit('sign-in', { email, password: 'wrong "words" here' })
  t.equal(browser.status, 401)
  t.equal(browser.response?.headers['www-authenticate'], 'Bearer')
  t.match(browser.page, 'The e-mail or the password is wrong.')
  t.match(browser.page, '<title>Error: Sign in')
  t.match(browser.page, `value="${email}"`)
  t.notMatch(browser.page, 'words')
  t.equal(browser.cookie('ACCESS_TOKEN'), undefined)
  await browser.submit('sign-in', { password: PASSWORD })
  t.equal(browser.path, '/security')
})

t.test('errors of fields are tied to them', async t => {
  const browser = await new FormClient(app).open('/sign-in')
  await browser.submit('sign-in', { email: HOSTILE, password: '' })
  t.equal(browser.status, 400)
  t.match(browser.page, /<input id="email"[^>]* aria-describedby="email-error" aria-invalid="true"/)
  t.match(browser.page, /<p class="error" id="email-error">This is not an e-mail address. <\/p>/)
  t.match(browser.page, '<a href="#email">E-mail: This is not an e-mail address.</a>')
  t.match(browser.page, /<div class="notice bad" role="alert" tabindex="-1" autofocus>/)
  t.match(browser.page, 'value="&quot;&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;amp;"')
  t.notMatch(browser.page, '<script>')
})

t.test('a disabled account, and one that is not verified', async t => {
  const { id, email } = await signUp(app)
  await updateUser(app, id, { disabled: true })
  const browser = await new FormClient(app, { headers: { 'accept-language': 'de' } }).open('/sign-in')
  await browser.submit('sign-in', { email, password: PASSWORD })
  t.equal(browser.status, 403)
  t.match(browser.page, 'Dieses Konto ist gesperrt.')

  const strict = await build(t, { env: { REQUIRE_EMAIL_VERIFICATION: 'true' } })
  const payload = { email: freshEmail(), password: PASSWORD }
  await strict.inject({ method: 'POST', url: '/admin/users', headers: asAdmin, payload })
  const other = await new FormClient(strict).open('/sign-in')
  await other.submit('sign-in', payload)
  t.match(other.page, 'Your e-mail is not confirmed yet.')
})

t.test('the link of a sign-up opens the account with its password, and signs the browser in', async t => {
  const strict = await build(t, { env: { REQUIRE_EMAIL_VERIFICATION: 'true' } })
  const payload = { email: freshEmail(), password: PASSWORD }
  await strict.inject({ method: 'POST', url: '/account/sign-up', payload })
  const link = linkIn((await mailbox(strict).to(payload.email, 'signUp'))[0], '/account/verify-email')
  const browser = await new FormClient(strict).open(link)
  t.match(browser.page, `Confirm ${payload.email} to open your account.`)
  await browser.submit('confirm', { password: '' })
  t.equal(browser.status, 403)
  t.match(browser.page, 'Enter the password of the account.')
  await browser.submit('confirm', { password: 'wrong "words" here' })
  t.equal(browser.status, 400)
  t.match(browser.page, 'The password is wrong.')
  t.notMatch(browser.page, 'words')
  await browser.submit('confirm', { password: PASSWORD })
  t.equal(browser.heading, 'Your e-mail is confirmed')
  t.equal(await accountStatus(strict, browser.cookie('ACCESS_TOKEN') ?? ''), 200)
})

t.test('the button “This was not me” removes what the link belongs to, and says so', async t => {
  const { email, token } = await signUp(app)
  const link = linkIn((await mails.to(email, 'verification'))[0], '/account/verify-email')
  const headers = { 'accept-language': 'de' }
  const browser = await new FormClient(app, { headers }).open(link)
  t.match(browser.page, 'Jemand anderes hat mit Ihrer Adresse ein Konto eröffnet?')
  await browser.submit('not-me')
  t.equal(browser.heading, 'Danke')
  t.match(browser.page, 'Das Konto ist entfernt.')
  t.equal(await accountStatus(app, token), 401)
  await browser.open(link)
  t.match(browser.page, 'Dieser Link gilt nicht mehr')

  const stranger = await signUp(app)
  const victim = freshEmail()
  await changeEmail(app, stranger.token, { email: victim, password: PASSWORD })
  const change = linkIn((await mails.to(victim, 'emailChange'))[0], '/account/verify-email')
  const other = new FormClient(app)
  await other.post('/sign-in', { email: stranger.email, password: PASSWORD })
  await other.open(change)
  t.match(other.page, `Confirm that your account shall use ${victim} from now on.`)
  await other.submit('not-me')
  t.match(other.page, 'The change is ended.')
  t.match(other.page, 'Back to account security', 'the browser is still signed in')
  t.match(await accountOf(app, stranger.token), { email: stranger.email })
})

t.test(
  'the link asks no password where the browser is signed in, and a code where the account needs one',
  async t => {
    const { email, token } = await signUp(app)
    const link = linkIn((await mails.to(email, 'verification'))[0], '/account/verify-email')
    const browser = await new FormClient(app).open('/sign-in')
    await browser.submit('sign-in', { email, password: PASSWORD })
    await browser.open(link)
    t.notMatch(browser.page, 'type="password"')
    t.match(browser.page, 'not-me', 'a stranger may have signed it in')
    await browser.submit('confirm')
    t.equal(browser.heading, 'Your e-mail is confirmed')

    const own = await build(t, { env: EMAIL_CODES })
    const user = await signUp(own)
    const { recoveryCodes } = await addTotp(own, user.token)
    const other = linkIn((await mailbox(own).to(user.email, 'verification'))[0], '/account/verify-email')
    const guest = await new FormClient(own).open(other)
    t.match(guest.page, 'The account needs a code from your authenticator app too.')
    await guest.submit('confirm', { password: PASSWORD })
    t.equal(guest.status, 401)
    await guest.submit('confirm', { password: PASSWORD, code: recoveryCodes[0] ?? '' })
    t.equal(guest.heading, 'Your e-mail is confirmed')
    t.equal((await accountOf(app, token)).emailVerified, true)
  },
)

t.test('a forgotten password: from the page over the mail to a new one', async t => {
  const { email, token: session } = await signUp(app)
  const browser = await new FormClient(app).open('/sign-in')
  t.match(browser.page, '<a href="./forgot-password">')
  await browser.open('/forgot-password')
  await browser.submit('forgot-password', { email })
  t.equal(browser.heading, 'Check your mail')
  const unknown = await new FormClient(app).open('/forgot-password')
  await unknown.submit('forgot-password', { email: freshEmail() })
  t.equal(unknown.page, browser.page, 'the same page whether the account exists')

  const token = await mails.token(email, 'passwordReset')
  const [mail] = await mails.to(email, 'passwordReset')
  t.match(mail?.text, `${app.config.publicUrl}/reset-password?token=${token}`)
  const link = linkIn(mail, '/reset-password')
  for (const method of ['HEAD', 'GET', 'GET'] as const)
    t.equal((await app.inject({ method, url: link })).statusCode, 200, 'scanners change nothing')
  await browser.open(link)
  await browser.submit('reset-password', { password: 'short' })
  t.equal(browser.status, 400)
  t.match(browser.page, 'New password: At least 8 characters are needed.')
  t.match(browser.page, /aria-describedby="password-hint password-error"/)
  await browser.submit('reset-password', { password: 'password1' })
  t.match(browser.page, 'Many people use this password.')
  await browser.submit('reset-password', { password: NEW })
  t.equal(browser.path, '/security')
  t.match(browser.page, 'Your password is changed.')
  t.equal(await accountStatus(app, session), 401, 'earlier sessions have ended')
  t.equal((await signIn(app, email, NEW)).statusCode, 200)
  t.equal((await signIn(app, email, NEW)).statusCode, 200)
})

t.test('a link to reset the password that does not work says so before it asks for a password', async t => {
  const clock = manualClock(Date.now())
  const own = await build(t, { clock: clock.now })
  const linkOf = async (email: string): Promise<string> => {
    await own.inject({ method: 'POST', url: '/account/forgot-password', payload: { email } })
    return linkIn((await mailbox(own).to(email, 'passwordReset')).at(-1), '/reset-password')
  }
  const isDead = async (link: string): Promise<void> => {
    const browser = await new FormClient(own).open(link)
    isDeadLink(t, browser)
    t.match(browser.page, 'href="./forgot-password">Ask for a new link</a>')
  }
  const [used, expired, disabled] = [await signUp(own), await signUp(own), await signUp(own)]
  const link = await linkOf(used.email)
  const browser = await new FormClient(own).open(link)
  const twin = browser.twin()
  await browser.submit('reset-password', { password: NEW })
  await isDead(link)
  await twin.submit('reset-password', { password: NEW })
  isDeadLink(t, twin)
  t.match(twin.page, 'Ask for a new link')
  const ofDisabled = await linkOf(disabled.email)
  await updateUser(own, disabled.id, { disabled: true })
  await isDead(ofDisabled)
  const late = await linkOf(expired.email)
  clock.advance(60 * 60_000)
  await isDead(late)
  for (const token of ['x', '%00', 'a'.repeat(500)]) await isDead(`/reset-password?token=${token}`)
})

t.test(
  '/.well-known/change-password leads to the page that changes it, also by way of the sign-in',
  async t => {
    const response = await app.inject('/.well-known/change-password')
    t.match(response, { statusCode: 303, headers: { location: '../security/password' } })
    const { email } = await signUp(app)
    const browser = await new FormClient(app).open('/.well-known/change-password')
    t.equal(browser.path, '/sign-in')
    await browser.submit('sign-in', { email, password: PASSWORD })
    t.equal(browser.path, '/security/password')
    await browser.open('/.well-known/change-password')
    t.equal(browser.path, '/security/password')
    const unknown = '/.well-known/resource-that-should-not-exist-whose-status-code-should-not-be-200'
    t.equal((await app.inject(unknown)).statusCode, 404)
  },
)

t.test('sign-in with a mailed code, where the service has them', async t => {
  t.notMatch((await new FormClient(app).open('/sign-in')).page, 'email-code')
  t.equal((await app.inject('/sign-in/email-code')).statusCode, 404)
  const own = await build(t, { env: EMAIL_CODES })
  const codes = codesOf(own)
  const { email } = await signUp(own)
  const browser = await new FormClient(own).open('/sign-in')
  await browser.submit('email-code', { email: '' })
  t.equal(browser.heading, 'Sign in with a code by e-mail')
  t.equal(browser.status, 200)
  await browser.open('/sign-in/email-code')
  await browser.submit('email-code', { email: HOSTILE })
  t.equal(browser.status, 400)
  t.match(browser.page, 'E-mail: This is not an e-mail address.')
  await browser.submit('email-code', { email })
  t.match(browser.page, 'a code is on its way')
  const emailCode = await codes.newest(email)
  await browser.submit('confirm', { emailCode: otherThan(emailCode) })
  t.equal(browser.status, 401)
  t.match(browser.page, 'The code is wrong, has expired or was used already.')
  const again = browser.twin()
  await browser.submit('confirm', { emailCode })
  t.equal(browser.path, '/security')
  await again.submit('confirm', { emailCode })
  t.match(again.page, 'The code is wrong, has expired or was used already.')

  await browser.submit('security/totp')
  const secret = (/class="secret"><code>([^<]+)</.exec(browser.page)?.[1] ?? '').replaceAll(' ', '')
  const totp = new TOTP({ secret: Secret.fromBase32(secret) })
  await browser.submit('totp/confirm', { code: totp.generate() })
  t.equal(browser.heading, 'Save your recovery codes')
  const [, code = ''] = /<li>([a-z\d-]+)<\/li>/.exec(browser.page) ?? []
  await browser.open('/sign-in/email-code')
  await browser.submit('email-code', { email })
  const second = await codes.newest(email, 2)
  await browser.submit('confirm', { emailCode: second })
  t.equal(browser.status, 200)
  t.equal(browser.heading, 'Enter your code')
  await browser.submit('confirm', { code: '000000' })
  t.equal(browser.status, 401)
  t.equal(browser.heading, 'Enter your code', 'the code of the mail is not asked for again')
  await browser.submit('confirm', { code })
  t.equal(browser.path, '/security')
})

t.test('a link that confirms an e-mail changes nothing until its button is pressed', async t => {
  const { email, token } = await signUp(app)
  const mail = (await mails.to(email, 'verification'))[0]
  const link = linkIn(mail, '/account/verify-email')
  const browser = new FormClient(app)
  for (let opened = 0; opened < 3; opened += 1) {
    await browser.open(link)
    t.equal((await accountOf(app, token)).emailVerified, false)
  }
  const again = browser.twin()
  await browser.submit('confirm', { password: PASSWORD })
  t.equal(browser.heading, 'Your e-mail is confirmed')
  t.equal((await accountOf(app, token)).emailVerified, true)
  await again.submit('confirm', { password: PASSWORD })
  isDeadLink(t, again)
  isDeadLink(t, await browser.open(link))
  const guessed = await new FormClient(app).open(link.replace(/.{8}$/, 'AAAAAAAA'))
  t.equal(guessed.page, browser.page, 'nobody learns whether a link was real')
  isDeadLink(t, await browser.open('/account/verify-email'))
  t.equal((await accountOf(app, token)).emailVerified, true)
})

t.test('signing out twice signs out', async t => {
  const { email } = await signUp(app)
  const browser = await new FormClient(app).open('/sign-in')
  await browser.submit('sign-in', { email, password: PASSWORD })
  const again = browser.twin()
  for (const each of [browser, again]) {
    await each.submit('sign-out')
    t.equal(each.path, '/sign-in')
    t.equal(each.cookie('ACCESS_TOKEN'), undefined)
  }
})

t.test('errors are JSON for clients that prefer it, and pages for all others', async t => {
  const { email } = await signUp(app)
  const post = (url: string, payload: object, headers = {}) => ({
    method: 'POST' as const,
    url,
    payload: new URLSearchParams(payload as Record<string, string>).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
  })
  const errors = [
    [401, 'credentials', post('/sign-in', { email, password: 'wrong' })],
    [400, 'email', post('/forgot-password', { email: 'x' })],
    [400, 'token', post('/reset-password', { token: 'x', password: NEW })],
    [400, 'token', post('/account/verify-email/confirm', { token: 'x' })],
    [400, 'token', { url: '/account/verify-email?token=x' }],
    [400, 'next', { url: `/sign-in?next=${'x'.repeat(2_049)}` }],
    [400, 'global', post('/sign-in', { email }, { 'content-type': 'application/json' })],
    [403, 'global', post('/sign-in', { email, password: PASSWORD }, { 'sec-fetch-site': 'cross-site' })],
    [415, 'global', post('/sign-in', { email }, { 'content-type': 'text/plain' })],
  ] as const
  for (const [status, field, request] of errors)
    for (const [accept, isJson] of [
      ['application/json', true],
      ['application/json, text/plain, */*', true],
      ['text/html;q=0.8, application/json', true],
      ['application/*', true],
      ['text/html;q=0, */*', true],
      ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', false],
      ['application/json;q=0.5, text/html', false],
      ['text/html, application/json', false],
      ['*/*', false],
      ['image/png', false],
      ['', false],
      [undefined, false],
    ] as const) {
      const headers = {
        ...('headers' in request && request.headers),
        ...(accept !== undefined && { accept }),
      }
      const response = await app.inject({ ...request, headers })
      const what = `${request.url} for ${accept}`
      t.match(String(response.headers.vary), /accept(,|$)/i, what)
      if (isJson) errorsAt(t, response, status, [field], what)
      else {
        t.equal(response.statusCode, status, what)
        t.equal(response.headers['content-type'], 'text/html; charset=utf-8', what)
      }
    }
  const page = await app.inject({ url: '/sign-in', headers: { accept: 'application/json' } })
  t.equal(page.headers['content-type'], 'text/html; charset=utf-8', 'no error')
})

t.test('links of mails work with what gateways and trackers append to them', async t => {
  const own = await build(t, { env: MAILED_SIGN_INS })
  const ann = await confirmedUser(own)
  const { email } = await signUp(own)
  await forgot(own, ann.email)
  await requestLink(own, ann.email)
  const { id } = await organizationOf(own, ann)
  await callAs(own, ann, 'POST', `/organizations/${id}/invitations`, { email, roles: ['member'] })
  const link = async (path: string, to: string, kind: string) =>
    `${path}?token=${await mailbox(own).token(to, kind)}&`
  for (const url of [
    await link('/reset-password', ann.email, 'passwordReset'),
    await link('/magic-link', ann.email, 'magicLink'),
    await link('/account/verify-email', email, 'verification'),
    await link('/organizations/accept', email, 'organizationInvitation'),
    '/forgot-password?',
    '/security?',
  ]) {
    const [plain, appended] = [new FormClient(own), new FormClient(own)]
    await plain.open(url.slice(0, -1))
    await appended.open(`${url}utm_source=mail&fbclid=a%22b&next=//evil.example`)
    t.equal(appended.status, 200, url)
    t.equal(appended.page, plain.page)
  }
})

t.test('a page shows no text of a link, and no control characters', async t => {
  const { email, token } = await signUp(app)
  const opened = await new FormClient(app).open('/sign-in?Call%20us%20at%20%2B1=1')
  t.equal(opened.status, 200)
  t.notMatch(opened.page, 'Call us')
  const security = await app.inject({ url: '/security?done=password', headers: cookie(token) })
  t.equal(security.statusCode, 200)
  t.notMatch(security.body, 'Your password is changed.')
  const sign = (fields: Record<string, string>) => ({
    method: 'POST' as const,
    url: '/sign-in',
    payload: new URLSearchParams(fields).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  })
  const controls = '\0\u0001\b\u000b\f\r\u001b\u007f\u0085\ufffe'
  const encoded = encodeURIComponent(controls)
  for (const request of [
    { url: `/sign-in?a${encoded}=1` },
    { url: `/reset-password?token=${encoded}` },
    { url: `/account/verify-email?token=${encoded}` },
    sign({ email: `a${controls}@example.com`, password: 'x' }),
    sign({ email, password: 'x', [controls]: 'x' }),
  ]) {
    const { body } = await app.inject({
      ...request,
      headers: { ...('headers' in request && request.headers) },
    })
    t.match(body, '<!DOCTYPE html>')
    t.notMatch(body, /(?![\t\n])[\p{Cc}\ufffe]/u, JSON.stringify(request))
  }
  const refused = `/sign-in?x=${'x'.repeat(3_000)}`
  const bearerOnly = await app.inject({ url: refused, headers: bearer(token) })
  t.notMatch(bearerOnly.body, 'Sign out', 'pages use the cookie')
  const withCookie = await app.inject({ url: refused, headers: cookie(token) })
  t.match(withCookie.body, 'Sign out')
})

t.test('forms of other sites are refused, also without a cookie', async t => {
  const { email, token } = await signUp(app)
  const post = (headers: Record<string, string>) =>
    app.inject({
      method: 'POST',
      url: '/sign-in',
      headers: { 'content-type': 'application/x-www-form-urlencoded', host: 'gatehouse.test', ...headers },
      payload: new URLSearchParams({ email, password: PASSWORD }).toString(),
    })
  for (const headers of [
    { origin: 'https://elsewhere.example' },
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { origin: 'https://elsewhere.example', ...cookie(token) },
  ]) {
    const response = await post(headers)
    t.equal(response.statusCode, 403, JSON.stringify(headers))
    t.match(response.body, 'This form was sent from another site.')
    t.equal(response.headers['set-cookie'], undefined)
  }
  for (const headers of [{ origin: 'http://gatehouse.test' }, { 'sec-fetch-site': 'same-origin' }, {}])
    t.equal((await post(headers)).statusCode, 303)
})

t.test('what is no form of the page gets an error page', async t => {
  const send = (payload: string, type = 'application/x-www-form-urlencoded') =>
    app.inject({ method: 'POST', url: '/sign-in', headers: { 'content-type': type }, payload })
  for (const [status, response] of [
    [400, await send('email=a&email=b&password=c')],
    [400, await send('email=a')],
    [400, await send('email=a&password=b&nonsense=1')],
    [400, await send('email=%ff&password=b')],
    [413, await send(`email=${'x'.repeat(20_000)}`)],
    [415, await send('{}', 'text/plain')],
    [400, await send('email=a%&password=b')],
    [400, await app.inject(`/sign-in?email=${'x'.repeat(20_000)}`)],
  ] as const) {
    t.equal(response.statusCode, status, response.body)
    t.match(response.headers['content-type'], 'text/html')
    t.match(response.body, /<div class="notice bad"/)
  }
})

t.test('sessions and limits see the browser, not the page', async t => {
  const limited = await build(t, {
    env: { RATE_LIMIT: 'on', TRUST_PROXY: '10.0.0.0/8' },
    rateLimits: { ...RATE_LIMITS, perAddress: perAddress({ 'sign-in': 3 }) },
  })
  const { email, token } = await signUp(limited)
  const proxied = { 'user-agent': 'A Browser', 'x-forwarded-for': '198.51.100.7' }
  const attempt = async (app: FastifyInstance, remoteAddress: string, headers: Record<string, string>) => {
    const browser = await new FormClient(app, { remoteAddress, headers }).open('/sign-in')
    await browser.submit('sign-in', { email, password: PASSWORD })
    const sessions = await app.inject({ url: '/account/sessions', headers: cookie(token) })
    return sessions.json().results[0]
  }
  t.match(await attempt(limited, '10.1.2.3', proxied), { ip: '198.51.100.7', userAgent: 'A Browser' })
  const forged = await attempt(limited, '203.0.113.9', proxied)
  t.equal(forged.ip, '203.0.113.9', 'nobody becomes a trusted proxy by a page')
  const stranger = { remoteAddress: '203.0.113.10' }
  const statuses: number[] = []
  for (let sent = 0; sent < 4; sent += 1) {
    const browser = await new FormClient(limited, stranger).open('/sign-in')
    await browser.submit('sign-in', { email: freshEmail(), password: PASSWORD })
    statuses.push(browser.status)
    if (browser.status !== 429) continue
    t.match(browser.response?.headers, { 'retry-after': /^\d+$/ })
    t.match(browser.page, 'That was too often.')
  }
  t.same(statuses, [401, 401, 401, 429])
  const other = await new FormClient(limited, { remoteAddress: '203.0.113.11' }).open('/sign-in')
  t.equal((await other.submit('sign-in', { email, password: PASSWORD })).path, '/security')
})

t.test('no log line has a token, a password or an e-mail of a page', async t => {
  const log = logCapture()
  const logged = await build(t, { env: { LOG_LEVEL: 'trace', LOG_REQUESTS: 'on' }, logStream: log.stream })
  const { email } = await signUp(logged)
  await forgot(logged, email)
  const reset = await mailbox(logged).token(email, 'passwordReset')
  const browser = await new FormClient(logged).open(`/reset-password?token=${reset}`)
  await browser.submit('reset-password', { password: 'short' })
  await browser.submit('reset-password', { password: NEW })
  await browser.open('/sign-in')
  await browser.submit('sign-in', { email, password: 'not the one' })
  await logged.close()
  t.ok(log.records().length > 5)
  for (const secret of [reset, NEW, 'not the one', email]) t.notOk(log.text().includes(secret), secret)
})

t.test('with PAGES=off there is only the page that confirms an e-mail', async t => {
  const own = await build(t, { env: { WEB_URL: 'https://app.example.com/start', PAGES: 'off' } })
  for (const url of [
    '/sign-in',
    '/forgot-password',
    '/reset-password?token=x',
    '/security',
    '/.well-known/change-password',
  ]) {
    const response = await own.inject({ url, headers: { accept: 'text/html' } })
    t.equal(response.statusCode, 404, url)
    t.match(response.headers['content-type'], 'application/json')
  }
  const { email } = await signUp(own)
  const token = await mailbox(own).token(email, 'verification')
  const page = await own.inject(`/account/verify-email?token=${token}`)
  t.equal(page.statusCode, 200)
  t.match(page.headers['content-security-policy'], "form-action 'self' https://app.example.com;")
  const confirm = (accept: string, payload = 'token=x') =>
    own.inject({
      method: 'POST',
      url: '/account/verify-email/confirm',
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept },
      payload,
    })
  const location = 'https://app.example.com/start'
  t.match(await confirm('text/html'), {
    statusCode: 303,
    headers: { location: `${location}?error=The+token+is+not+valid+or+has+expired` },
  })
  const error = await confirm('application/json')
  errorsAt(t, error, 400, ['token'])
  t.equal(error.headers.location, location)
  const incomplete = await confirm('text/html', 'x=1')
  t.match(incomplete.body, 'This link does not work any more')
  t.notMatch(incomplete.body, '<a ', 'no link to a page that is not there')
})

t.test('in an application of another team the pages are below its prefix', async t => {
  const host = await buildHost(t, {
    before: async app => {
      app.setErrorHandler((_error, _request, reply) => reply.code(500).send('host'))
      app.addContentTypeParser('application/x-www-form-urlencoded', (_request, _payload, done) =>
        done(null, 'host'),
      )
    },
  })
  const response = await signUpAt(host)
  const { email } = response.json().user
  const browser = await new FormClient(host).open('/auth/sign-in')
  t.match(browser.page, 'href="./pages/style.css"')
  await browser.submit('sign-in', { email, password: 'wrong' })
  t.equal(browser.status, 401)
  await browser.submit('sign-in', { email, password: PASSWORD })
  t.equal(browser.path, '/auth/security')
  await browser.submit('security/totp')
  t.equal(browser.path, '/auth/security/totp')
  t.equal(browser.heading, 'Add an authenticator app')
  await browser.open('/auth/security')
  await browser.submit('sign-out')
  t.equal(browser.path, '/auth/sign-in')
  t.equal((await host.inject('/auth/pages/style.css')).statusCode, 200)
})
