/** Verification of an account's e-mail (docs/design.md, "Account life cycle"). */
import t from 'tap'
import { accountOf, call, forgot, NO_TOKENS, resend, reset, verify } from '../support/account-routes.ts'
import { bearer, freshEmail, manualClock, PASSWORD, signIn, signUp, updateUser } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, errorsOf, globalErrorOf } from '../support/error-response.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { mailbox, tokenIn } from '../support/mailbox.ts'
import { ACCOUNT, hasShape, isPrivateJson } from '../support/response-shapes.ts'

const HOUR = 3_600_000
const WEB_URL = 'https://app.example.com/welcome?from=mail'
const HTML = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

/** Text that PostgreSQL rejects, in the part of a token that the store looks up. */
const NO_TEXT = ['%00', 'abcdefghijk%00', '01890000000%00x', '0189000000%F0%9F%98%80', '%ED%A0%80'].map(
  token => `?token=${token}`,
)

await onEnginesOfRun(t, async (t, { build }) => {
  const app = await build(t, { hasher: quickHashing, env: { WEB_URL, PAGES: 'off' } })
  const mails = mailbox(app)

  const follow = (token: string, headers: Record<string, string> = HTML) =>
    call(app, 'GET', `/account/verify-email?token=${encodeURIComponent(token)}`, undefined, headers)

  t.test('sign-up mails a token that verifies the address once', async t => {
    const user = await signUp(app)
    t.equal((await accountOf(app, user.token)).emailVerified, false)
    const token = await mails.token(user.email, 'verification')
    const response = await verify(app, token)
    isPrivateJson(t, response, 200)
    hasShape(t, response.json(), ACCOUNT)
    t.match(response.json(), { id: user.id, email: user.email, emailVerified: true })
    t.equal(response.headers['set-cookie'], undefined, 'it opens no session')
    t.equal((await accountOf(app, user.token)).emailVerified, true, 'seen at once')
    errorsAt(t, await verify(app, token), 400, ['token'], 'a second time')
    t.equal((await accountOf(app, user.token)).emailVerified, true)
  })

  const press = (token: string, password = PASSWORD) =>
    call(app, 'POST', '/account/verify-email/confirm', { token, password }, HTML)

  t.test('the link in the mail opens a page, whose button verifies', async t => {
    const user = await signUp(app)
    const token = await mails.token(user.email, 'verification')
    const [mail] = await mails.to(user.email, 'verification')
    const link = /https?:\/\/\S+verify-email\?token=\S+/.exec(mail?.text ?? '')?.[0] ?? ''
    const { pathname, search } = new URL(link)
    const page = await call(app, 'GET', pathname + search, undefined, HTML)
    t.equal(page.statusCode, 200)
    t.match(page.headers['content-type'], 'text/html')
    t.equal(page.headers['cache-control'], 'no-store')
    t.match(page.body, `<input type="hidden" name="token" value="${token}">`)
    t.equal((await accountOf(app, user.token)).emailVerified, false)
    t.equal((await press(token)).headers.location, WEB_URL)
    t.equal((await accountOf(app, user.token)).emailVerified, true)
  })

  t.test('opening the link changes nothing: mail scanners do', async t => {
    const user = await signUp(app)
    const token = await mails.token(user.email, 'verification')
    for (const method of ['GET', 'HEAD'] as const)
      for (const headers of [HTML, { accept: '*/*' }, {}])
        for (let opened = 0; opened < 2; opened += 1) {
          const response = await call(app, method, `/account/verify-email?token=${token}`, undefined, headers)
          t.equal(response.statusCode, 200)
          t.equal((await accountOf(app, user.token)).emailVerified, false)
        }
    t.equal((await verify(app, token)).statusCode, 200, 'the token is not used up')
  })

  t.test('the button redirects to WEB_URL, with the error if there is one', async t => {
    const user = await signUp(app)
    const token = await mails.token(user.email, 'verification')
    const wrong = await press(token, 'not the pass phrase')
    t.equal(wrong.statusCode, 400)
    t.match(wrong.body, 'The password is wrong.', 'the form is shown again')
    const response = await press(token)
    t.match(response, { statusCode: 303, headers: { location: WEB_URL } })
    t.equal(response.headers['set-cookie'], undefined, 'it opens no session')
    const failed = await press(token)
    t.equal(failed.statusCode, 303)
    const target = new URL(String(failed.headers.location))
    t.equal(target.searchParams.get('error'), 'The token is not valid or has expired')
    target.searchParams.delete('error')
    t.equal(target.href, WEB_URL)
  })

  t.test('a link that cannot be used leads to WEB_URL too', async t => {
    const user = await signUp(app)
    const token = await mails.token(user.email, 'verification')
    t.equal((await verify(app, token)).statusCode, 200)
    const browser = await follow(token)
    t.equal(browser.statusCode, 303)
    t.equal(browser.headers['cache-control'], 'no-store')
    t.match(new URL(String(browser.headers.location)).searchParams.get('error'), /token/i)
    const plain = await follow(token, { accept: 'application/json' })
    errorsAt(t, plain, 400, ['token'], 'another client gets the error')
    t.equal(plain.headers.location, WEB_URL)
  })

  t.test('HEAD has the status and headers of GET (RFC 9110 §9.3.2)', async t => {
    const link = (token: string) => `/account/verify-email?token=${token}`
    const look = async (method: 'GET' | 'HEAD', token: string, headers: Record<string, string>) => {
      const { statusCode, headers: fields } = await call(app, method, link(token), undefined, headers)
      return {
        statusCode,
        location: fields.location,
        type: fields['content-type'],
        cached: fields['cache-control'],
      }
    }
    const same = async (token: string, status: number, title: string): Promise<void> => {
      for (const headers of [HTML, {}]) {
        const seen = await look('HEAD', token, headers)
        t.equal(seen.statusCode, headers === HTML ? 303 : status, `${title}: ${seen.statusCode}`)
        t.strictSame(seen, await look('GET', token, headers), title)
      }
    }
    const used = await signUp(app)
    const usedToken = await mails.token(used.email, 'verification')
    await verify(app, usedToken)
    await same(usedToken, 400, 'used')
    await same('nonsense', 400, 'none')
    await same('%FF', 400, 'no text')

    const disabled = await signUp(app)
    const disabledToken = await mails.token(disabled.email, 'verification')
    await updateUser(app, disabled.id, { disabled: true })
    await same(disabledToken, 400, 'of a disabled user')

    const moved = await signUp(app)
    const movedToken = await mails.token(moved.email, 'verification')
    await updateUser(app, moved.id, { email: freshEmail() })
    await same(movedToken, 400, 'of another address')

    const changing = await signUp(app)
    const wanted = freshEmail()
    const payload = { email: wanted, password: PASSWORD }
    await call(app, 'PUT', '/account/email', payload, bearer(changing.token))
    const changeToken = await mails.token(wanted, 'emailChange')
    t.equal((await look('HEAD', changeToken, {})).statusCode, 200, 'as long as it can be used')
    await signUp(app, { email: wanted })
    await same(changeToken, 409, 'for an address that is taken')

    const resetting = await signUp(app)
    await forgot(app, resetting.email)
    await same(await mails.token(resetting.email, 'passwordReset'), 400, 'for another purpose')
  })

  t.test('an invalid token is a 400 under `token`', async t => {
    for (const token of NO_TOKENS) {
      const response = await verify(app, token)
      errorsAt(t, response, 400, ['token'], `${JSON.stringify(token)?.slice(0, 40)}`)
    }
    for (const query of [
      '',
      '?token=',
      '?token=x',
      '?token=x&token=y',
      `?token=${'x'.repeat(5_000)}`,
      ...NO_TEXT,
    ]) {
      const url = `/account/verify-email${query}`
      errorsAt(t, await call(app, 'GET', url), 400, ['token'], query.slice(0, 20))
      const html = await call(app, 'GET', url, undefined, HTML)
      t.ok([303, 400].includes(html.statusCode), `${query.slice(0, 20)}: ${html.statusCode}`)
    }
    const user = await signUp(app)
    const token = await mails.token(user.email, 'verification')
    t.match(token, /^[0-9a-f]{12}[\w-]{43}$/)
    for (const other of [token.slice(0, -1), `${token}x`, token.toUpperCase(), ` ${token}`])
      errorsOf(t, await verify(app, other), 400)
    const more = await call(app, 'POST', '/account/verify-email', { token, more: 1 })
    errorsAt(t, more, 400, ['more'])
    t.equal((await verify(app, token)).statusCode, 200, 'no rejection used it up')
  })

  t.test('a token works only for the purpose that it was mailed for', async t => {
    const user = await signUp(app)
    const verification = await mails.token(user.email, 'verification')
    t.equal((await forgot(app, user.email)).statusCode, 202)
    const forReset = await mails.token(user.email, 'passwordReset')
    errorsAt(t, await verify(app, forReset), 400, ['token'])
    errorsAt(t, await reset(app, verification, `${PASSWORD}!`), 400, ['token'])
    t.equal((await verify(app, verification)).statusCode, 200)
    t.equal((await reset(app, forReset, `${PASSWORD}!`)).statusCode, 200)
  })

  t.test('a token lasts a day (24 h)', async t => {
    const clock = manualClock()
    const app = await build(t, { hasher: quickHashing, clock: clock.now })
    const mails = mailbox(app)
    const [inTime, tooLate] = [await signUp(app), await signUp(app)]
    const tokens = [
      await mails.token(inTime.email, 'verification'),
      await mails.token(tooLate.email, 'verification'),
    ]
    clock.advance(24 * HOUR - 1)
    t.equal((await verify(app, tokens[0])).statusCode, 200)
    clock.advance(1)
    errorsAt(t, await verify(app, tokens[1]), 400, ['token'])
    t.equal((await accountOf(app, tooLate.token)).emailVerified, false)
  })

  t.test('resend mails another token', async t => {
    const user = await signUp(app)
    globalErrorOf(t, await call(app, 'POST', '/account/verify-email/resend'), 401)
    const response = await resend(app, user.token)
    t.equal(response.statusCode, 202)
    t.strictSame(response.json(), { status: 'accepted' })
    const tokens = (await mails.to(user.email, 'verification', 2)).map(tokenIn)
    t.not(tokens[0], tokens[1])
    t.equal((await verify(app, tokens[1])).statusCode, 200)
  })

  t.test('an account gets five verification mails an hour, then 429', async t => {
    const clock = manualClock()
    const app = await build(t, { hasher: quickHashing, clock: clock.now })
    const mails = mailbox(app)
    const [user, other] = [await signUp(app), await signUp(app)]
    for (let sent = 1; sent < 5; sent += 1) t.equal((await resend(app, user.token)).statusCode, 202)
    const rejected = await resend(app, user.token)
    globalErrorOf(t, rejected, 429)
    t.ok(Number(rejected.headers['retry-after']) > 0, 'it says when')
    t.equal((await resend(app, other.token)).statusCode, 202, 'each account has its own count')
    clock.advance(HOUR)
    t.equal((await resend(app, user.token)).statusCode, 202, 'an hour later')
    t.equal((await mails.final(user.email)).length, 6)
  })

  t.test('a verified user gets no mail', async t => {
    const app = await build(t, { hasher: quickHashing })
    const mails = mailbox(app)
    const user = await signUp(app)
    t.equal((await verify(app, await mails.token(user.email, 'verification'))).statusCode, 200)
    t.equal((await resend(app, user.token)).statusCode, 202)
    t.equal((await mails.final(user.email)).length, 1)
  })

  t.test('changing the e-mail or disabling the account invalidates every token', async t => {
    for (const changes of [{ email: freshEmail() }, { disabled: true }]) {
      const user = await signUp(app)
      const token = await mails.token(user.email, 'verification')
      t.equal((await updateUser(app, user.id, changes)).statusCode, 200)
      errorsAt(t, await verify(app, token), 400, ['token'])
      const enabled = await updateUser(app, user.id, { disabled: false })
      t.match(enabled.json(), { emailVerified: false })
      errorsAt(t, await verify(app, token), 400, ['token'], 'for good')
      const signedIn = await signIn(app, enabled.json().email)
      const again = await resend(app, signedIn.json().accessToken)
      t.equal(again.statusCode, 202, 'a new one is to be had')
    }
  })

  t.test('a session of the account verifies without a password, and no session ends', async t => {
    const [user, other] = [await signUp(app), await signUp(app)]
    const token = await mails.token(user.email, 'verification')
    const verifyAs = (accessToken: string) =>
      call(app, 'POST', '/account/verify-email', { token }, bearer(accessToken))
    globalErrorOf(t, await verifyAs(other.token), 403)
    t.match((await verifyAs(user.token)).json(), { id: user.id, emailVerified: true })
    t.equal((await accountOf(app, other.token)).emailVerified, false)
    t.equal((await accountOf(app, user.token)).id, user.id)
  })
})
