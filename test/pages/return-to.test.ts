/** `return_to` through the flows of the hosted pages, and the page of the code. */

import { createHmac } from 'node:crypto'
import t from 'tap'
import { addTotp } from '../support/authenticator-apps.ts'
import { asAdmin, bearer, build, freshEmail, manualClock, PASSWORD, signUp } from '../support/build.ts'
import { FormClient } from '../support/form-client.ts'
import { mailbox } from '../support/mailbox.ts'

const TARGET = 'https://app.example.com/welcome?from=mail'
const RETURN = `return_to=${encodeURIComponent(TARGET)}`
const env = { RETURN_ORIGINS: 'https://app.example.com' }

const app = await build(t, { env })
const mails = mailbox(app)

const isLedBack = (t: Pick<typeof import('tap').t, 'equal' | 'match'>, browser: FormClient): void => {
  t.equal(browser.status, 200, 'no redirect, which the policy for forms would stop')
  t.match(browser.page, `content="0; url=${TARGET}"`)
}

t.test('a sign-in with a password leads back, also by way of other pages', async t => {
  const { email } = await signUp(app)
  const browser = await new FormClient(app).open(`/sign-in?${RETURN}&email=${email}&utm_source=x`)
  t.match(browser.page, `value="${email}"`)
  for (const page of ['sign-up', 'forgot-password']) t.match(browser.page, `./${page}?${RETURN}`)
  await browser.submit(`sign-in?${RETURN}`, { password: 'wrong wrong wrong' })
  t.equal(browser.status, 401)
  await browser.submit(`sign-in?${RETURN}`, { password: PASSWORD })
  isLedBack(t, browser)
  await browser.open(`/sign-in?${RETURN}`)
  t.match(browser.page, `You are signed in as ${email}.`)
  t.notMatch(browser.page, 'http-equiv', 'no loop with an application that does not see the session')
})

t.test('a proof of identity leads back, and a user without one signs in again', async t => {
  const { email } = await signUp(app)
  const browser = await new FormClient(app).open('/sign-in')
  await browser.submit('sign-in', { email, password: PASSWORD })
  await browser.open(`/security/proof?${RETURN}`)
  await browser.submit(`security/proof?${RETURN}`, { password: 'wrong wrong wrong' })
  t.equal(browser.status, 400)
  await browser.submit(`security/proof?${RETURN}`, { password: PASSWORD })
  isLedBack(t, browser)
  await browser.open(`/sign-in?again&${RETURN}`)
  await browser.submit(`sign-in?${RETURN}`, { email, password: PASSWORD })
  isLedBack(t, browser)
})

t.test('O11: another target ends on the own pages', async t => {
  const { email } = await signUp(app)
  for (const query of ['return_to=//e.example', 'return_to=https://e.example', `${RETURN}&${RETURN}`]) {
    const browser = await new FormClient(app).open(`/sign-in?${query}`)
    t.notMatch(browser.page, /e\.example|return_to/)
    await browser.submit('sign-in', { email, password: PASSWORD })
    t.equal(browser.path, '/security')
  }
})

t.test('the code has a page, which has no password and does not ask for it', async t => {
  const { email, token } = await signUp(app)
  const { recoveryCodes } = await addTotp(app, token)
  const browser = await new FormClient(app).open(`/sign-in?${RETURN}`)
  await browser.submit(`sign-in?${RETURN}`, { email, password: PASSWORD })
  t.equal(browser.heading, 'Enter your code')
  t.notMatch(browser.page, 'type="password"')
  t.notMatch(browser.page, PASSWORD)
  const forged = browser.twin()
  await browser.submit(`code?${RETURN}`, { code: '000000' })
  t.equal(browser.status, 401)
  await browser.submit(`code?${RETURN}`, { code: recoveryCodes[0] ?? '' })
  isLedBack(t, browser)
  await forged.submit(`code?${RETURN}`, {
    step: `${Date.now() + 1_000}.${'A'.repeat(43)}`,
    code: recoveryCodes[1] ?? '',
  })
  t.equal(forged.heading, 'Please sign in again')
})

t.test('a first step is no failure in the log', async t => {
  const lines: string[] = []
  const logged = await build(t, { logStream: { write: (line: string) => void lines.push(line) } })
  const { email, token } = await signUp(logged)
  await addTotp(logged, token)
  const browser = await new FormClient(logged).open('/sign-in')
  await browser.submit('sign-in', { email, password: PASSWORD })
  t.equal(browser.heading, 'Enter your code')
  t.notMatch(lines.join(''), '"level":50')
})

t.test('the hash of a password does not replace it', async t => {
  const { email } = await signUp(app)
  const exported = await app.inject({ url: '/admin/users/export?passwordHashes=true', headers: asAdmin })
  const lines = exported.body
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
  const { passwordHash } = lines.find(user => user.email === email)
  const expiresAt = Date.now() + 60_000
  const userAgent = 'a thief'
  for (const text of [
    ['sign-in step', expiresAt, email, userAgent],
    ['sign-in step', expiresAt, email, userAgent, passwordHash],
  ]) {
    const seal = createHmac('sha256', passwordHash).update(JSON.stringify(text)).digest('base64url')
    const response = await app.inject({
      method: 'POST',
      url: '/sign-in/code',
      headers: { 'user-agent': userAgent, 'content-type': 'application/x-www-form-urlencoded' },
      payload: new URLSearchParams({ email, step: `${expiresAt}.${seal}`, code: 'none' }).toString(),
    })
    t.equal(response.statusCode, 401)
    t.notOk(response.headers['set-cookie'])
  }
})

t.test('a reset leads back in another browser, with nothing of the target in mail and URL', async t => {
  const { email } = await signUp(app)
  const asking = await new FormClient(app).open(`/forgot-password?${RETURN}`)
  await asking.submit(`forgot-password?${RETURN}`, { email })
  const [mail] = await mails.to(email, 'passwordReset')
  t.notMatch(mail?.text, 'app.example.com')
  const other = await new FormClient(app).open(
    `/reset-password?token=${await mails.token(email, 'passwordReset')}`,
  )
  await other.submit('reset-password', { password: 'nine otters crossed a bridge' })
  isLedBack(t, other)
})

t.test('signing out has a page, which changes nothing until its button is pressed', async t => {
  const email = freshEmail()
  const browser = await new FormClient(app).open(`/sign-up?${RETURN}`)
  await browser.submit(`sign-up?${RETURN}`, { email, password: PASSWORD })
  isLedBack(t, browser)
  await browser.open(`/sign-out?${RETURN}`)
  await browser.open(`/sign-out?${RETURN}`)
  t.match(browser.page, email)
  await browser.submit(`sign-out?${RETURN}`)
  isLedBack(t, browser)
  await browser.open(`/sign-out?${RETURN}`)
  t.equal(browser.heading, 'You are signed out')
})

t.test('a browser that has been signed in for a while sees whose account it is', async t => {
  const clock = manualClock(Date.now())
  const own = await build(t, { env, clock: clock.now })
  const { email } = await signUp(own)
  const browser = await new FormClient(own).open('/sign-in')
  await browser.submit('sign-in', { email, password: PASSWORD })
  await browser.open(`/sign-in/continue?${RETURN}`)
  isLedBack(t, browser)
  clock.advance(61_000)
  await browser.open(`/sign-in/continue?${RETURN}`)
  t.match(browser.page, `You are signed in as ${email}.`)
  t.notMatch(browser.page, 'http-equiv')
})

t.test('mails that a signed-in user asks for lead back too', async t => {
  const user = await signUp(app)
  const send = (method: 'POST' | 'PUT', url: string, payload: object) =>
    app.inject({ method, url, headers: bearer(user.token), payload })
  const confirmedBy = async (token: string) => {
    const browser = await new FormClient(app).open(`/account/verify-email?token=${token}`)
    return browser.submit('confirm', { password: PASSWORD })
  }
  const resent = { returnTo: TARGET }
  t.equal((await send('POST', '/account/verify-email/resend', resent)).statusCode, 202)
  t.match((await confirmedBy(await mails.token(user.email, 'verification', 2))).page, `href="${TARGET}"`)
  const email = freshEmail()
  const change = { email, returnTo: TARGET, password: PASSWORD }
  t.equal((await send('PUT', '/account/email', change)).statusCode, 202)
  t.match((await confirmedBy(await mails.token(email, 'emailChange'))).page, `href="${TARGET}"`)
  const foreign = { returnTo: 'https://e.example' }
  t.equal((await send('POST', '/account/verify-email/resend', foreign)).statusCode, 400)
})

t.test('browsers get a page for unknown URLs, programs JSON', async t => {
  const browser = await new FormClient(app).open('/unknown')
  t.equal(browser.status, 404)
  t.equal(browser.heading, 'This page does not exist')
  const { headers } = await app.inject('/unknown')
  t.match(headers['content-type'], 'application/json')
})
