/** PUT /account/email (docs/design.md, "Account life cycle"): a new address takes effect when it is confirmed. */
import t from 'tap'
import { accountOf, call, changeEmail, forgot, resend, reset, verify } from '../support/account-routes.ts'
import {
  accountStatus,
  bearer,
  cookie,
  freshEmail,
  manualClock,
  PASSWORD,
  signIn,
  signUp,
  updateUser,
} from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, errorsOf, globalErrorOf } from '../support/error-response.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { hasToken, mailbox, SUBJECT } from '../support/mailbox.ts'
import { ACCOUNT, hasShape, isPrivateJson } from '../support/response-shapes.ts'
import { select } from '../support/stored-rows.ts'

const HOUR = 3_600_000
const OTHER_PASSWORD = 'another long pass phrase 8'
const HTML = { accept: 'text/html' }

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const app = await build(t, { hasher: quickHashing })
  const mails = mailbox(app)

  const ask = (accessToken: string, email: unknown, password: unknown = PASSWORD) =>
    changeEmail(app, accessToken, { email, password })

  /** A user who requested a new address, and the token that was mailed to it. */
  const pending = async () => {
    const user = await signUp(app)
    const email = freshEmail('new')
    t.equal((await ask(user.token, email)).statusCode, 202)
    return { ...user, newEmail: email, change: await mails.token(email, 'emailChange') }
  }

  t.test(
    'pending links are stored under the purposes of earlier releases, whatever mails are called',
    async t => {
      const DATABASE_URL = await newDatabase(t)
      const app = await build(t, { hasher: quickHashing, env: { DATABASE_URL } })
      const mails = mailbox(app)
      const user = await signUp(app)
      const email = freshEmail('new')
      t.equal((await changeEmail(app, user.token, { email, password: PASSWORD })).statusCode, 202)
      t.equal((await forgot(app, user.email)).statusCode, 202)
      await mails.token(user.email, 'passwordReset')
      t.same(await select(DATABASE_URL, 'SELECT purpose, email FROM email_tokens ORDER BY purpose'), [
        { purpose: 'emailChange', email },
        { purpose: 'passwordReset', email: user.email },
        { purpose: 'verification', email: user.email },
      ])
    },
  )

  t.test('nothing changes until the new address is confirmed', async t => {
    const app = await build(t, { hasher: quickHashing })
    const mails = mailbox(app)
    const user = await signUp(app)
    const email = freshEmail('new')
    const response = await changeEmail(app, user.token, {
      email: ` ${email.toUpperCase()}`,
      password: PASSWORD,
    })
    t.equal(response.statusCode, 202)
    t.strictSame(response.json(), { status: 'accepted' })
    const token = await mails.token(email, 'emailChange')
    const [notice] = await mails.to(user.email, 'emailChangeRequested')
    t.match(notice?.text, email, 'the old address is notified at once')
    t.notOk(notice && hasToken(notice), 'and cannot confirm the new one')
    t.match(await accountOf(app, user.token), { email: user.email, emailVerified: false })
    t.equal((await signIn(app, user.email)).statusCode, 200)
    t.equal((await signIn(app, email)).statusCode, 401)

    const confirmed = await verify(app, token)
    isPrivateJson(t, confirmed, 200)
    hasShape(t, confirmed.json(), ACCOUNT)
    t.match(confirmed.json(), { id: user.id, email, emailVerified: true })
    const signedIn = await signIn(app, email)
    t.match(signedIn.json(), { user: { id: user.id, email, emailVerified: true } })
    t.match(await accountOf(app, signedIn.json().accessToken), { email, emailVerified: true })
    t.equal((await signIn(app, user.email)).statusCode, 401)
    errorsOf(t, await verify(app, token), 400, 'a token works once')
    const [changed] = await mails.to(user.email, 'emailChanged')
    t.notOk(changed && hasToken(changed))
    t.match((await signUp(app, { email: user.email })).email, user.email, 'the old address is free')
    t.strictSame(await mails.final(email), [SUBJECT.emailChange])
    t.strictSame(
      (await mails.final(user.email)).sort(),
      [SUBJECT.verification, SUBJECT.verification, SUBJECT.emailChangeRequested, SUBJECT.emailChanged].sort(),
    )
  })

  t.test('the page behind the link confirms the address too', async t => {
    const user = await pending()
    const url = `/account/verify-email?token=${user.change}`
    t.ok((await call(app, 'HEAD', url)).statusCode < 400)
    t.equal((await accountOf(app, user.token)).email, user.email, 'HEAD changes nothing')
    t.equal((await call(app, 'GET', url, undefined, HTML)).statusCode, 200)
    t.equal((await accountOf(app, user.token)).email, user.email, 'nor does GET')
    const button = { token: user.change, password: PASSWORD }
    const response = await call(app, 'POST', '/account/verify-email/confirm', button, HTML)
    t.equal(response.statusCode, 200)
    t.match(response.body, user.newEmail)
    t.equal((await signIn(app, user.newEmail)).statusCode, 200)
  })

  t.test('a wrong password or invalid input is a 400 with field errors', async t => {
    const user = await signUp(app)
    const email = freshEmail()
    const rejections: [object, string[]][] = [
      [{ email, password: 'not the pass phrase' }, ['password']],
      [{ email, password: '' }, ['password']],
      [{ email, password: 'x'.repeat(10_000) }, ['password']],
      [{ email, password: null }, ['password']],
      [{ password: PASSWORD }, ['email']],
      [{ email: 'ann', password: PASSWORD }, ['email']],
      [{ email: 7, password: PASSWORD }, ['email']],
      [{ email: `${'x'.repeat(250)}@example.com`, password: PASSWORD }, ['email']],
      [{ email, password: PASSWORD, id: user.id }, ['id']],
      [{}, ['email']],
      [{ email: user.email, password: PASSWORD }, ['email']],
      [{ email: ` ${user.email.toUpperCase()} `, password: PASSWORD }, ['email']],
    ]
    for (const [payload, fields] of rejections) {
      const response = await changeEmail(app, user.token, payload)
      errorsAt(t, response, 400, fields, JSON.stringify(payload).slice(0, 60))
    }
    t.equal((await accountOf(app, user.token)).email, user.email)
  })

  t.test('a taken address is a 409, but only after the correct password', async t => {
    const [user, other] = [await signUp(app), await signUp(app)]
    const wrong = await ask(user.token, other.email, 'not the pass phrase')
    errorsAt(t, wrong, 400, ['password'])
    errorsAt(t, await ask(user.token, other.email.toUpperCase()), 409, ['email'])
    t.match(await accountOf(app, user.token), { email: user.email })
  })

  t.test('requests without a session are 401, cross-site requests 403', async t => {
    const user = await signUp(app)
    const payload = { email: freshEmail(), password: PASSWORD }
    globalErrorOf(t, await call(app, 'PUT', '/account/email', payload), 401)
    const headers = { ...cookie(user.token), origin: 'https://elsewhere.example' }
    globalErrorOf(t, await call(app, 'PUT', '/account/email', payload, headers), 403)
    t.equal((await accountOf(app, user.token)).email, user.email)
  })

  t.test('an address that was taken before confirmation is a 409', async t => {
    const user = await pending()
    const other = await signUp(app, { email: user.newEmail })
    errorsAt(t, await verify(app, user.change), 409, ['email'])
    t.equal((await accountOf(app, user.token)).email, user.email)
    t.match((await accountOf(app, other.token)).emailVerified, false, 'nor is theirs verified by it')
    const browser = await pending()
    await signUp(app, { email: browser.newEmail })
    const url = `/account/verify-email?token=${browser.change}`
    const page = await call(app, 'GET', url, undefined, HTML)
    t.equal(page.statusCode, 409)
    t.match(page.body, 'Another account uses this e-mail.')
  })

  t.test('changing or resetting the password invalidates the pending change', async t => {
    const changing = await pending()
    const payload = { currentPassword: PASSWORD, newPassword: OTHER_PASSWORD }
    const changed = await call(app, 'PUT', '/account/password', payload, bearer(changing.token))
    t.equal(changed.statusCode, 200)
    const resetting = await pending()
    t.equal((await forgot(app, resetting.email)).statusCode, 202)
    const token = await mails.token(resetting.email, 'passwordReset')
    t.equal((await reset(app, token, OTHER_PASSWORD)).statusCode, 200)
    for (const user of [changing, resetting]) {
      errorsAt(t, await verify(app, user.change), 400, ['token'])
      t.equal((await signIn(app, user.email, OTHER_PASSWORD)).statusCode, 200)
    }
  })

  t.test('changing the e-mail or disabling the account invalidates every token', async t => {
    const user = await pending()
    const verification = await mails.token(user.email, 'verification')
    const second = freshEmail('second')
    t.equal((await ask(user.token, second)).statusCode, 202)
    t.equal((await forgot(app, user.email)).statusCode, 202)
    const forReset = await mails.token(user.email, 'passwordReset')
    t.equal((await verify(app, await mails.token(second, 'emailChange'))).statusCode, 200)
    for (const token of [user.change, verification]) errorsOf(t, await verify(app, token), 400, 'changed')
    errorsOf(t, await reset(app, forReset, OTHER_PASSWORD), 400, 'changed')
    for (const changes of [{ disabled: true }, { email: freshEmail() }]) {
      const user = await pending()
      t.equal((await updateUser(app, user.id, changes)).statusCode, 200)
      errorsOf(t, await verify(app, user.change), 400, Object.keys(changes)[0])
      await updateUser(app, user.id, { disabled: false })
      errorsOf(t, await verify(app, user.change), 400, 'for good')
    }
  })

  t.test('the token lasts a day (24 h)', async t => {
    const clock = manualClock()
    const app = await build(t, { hasher: quickHashing, clock: clock.now })
    const mails = mailbox(app)
    for (const [wait, status] of [[24 * HOUR - 1, 200] as const, [24 * HOUR, 400] as const]) {
      const user = await signUp(app)
      const email = freshEmail()
      await changeEmail(app, user.token, { email, password: PASSWORD })
      const token = await mails.token(email, 'emailChange')
      clock.advance(wait)
      t.equal((await verify(app, token)).statusCode, status)
    }
  })

  t.test('after five requests an hour the response is 429 and no mail is sent', async t => {
    const clock = manualClock()
    const app = await build(t, { hasher: quickHashing, clock: clock.now })
    const mails = mailbox(app)
    const user = await signUp(app)
    const change = (email: string) => changeEmail(app, user.token, { email, password: PASSWORD })
    for (let sent = 0; sent < 5; sent += 1) t.equal((await change(freshEmail())).statusCode, 202)
    const [spared, later] = [freshEmail(), freshEmail()]
    const rejected = await change(spared)
    globalErrorOf(t, rejected, 429)
    t.ok(Number(rejected.headers['retry-after']) > 0)
    t.equal((await resend(app, user.token)).statusCode, 202, 'each kind has its own count')
    clock.advance(HOUR)
    t.equal((await change(later)).statusCode, 202)
    t.strictSame(await mails.final(spared), [])
    t.strictSame(await mails.final(later), [SUBJECT.emailChange])
    t.equal((await mails.final(user.email)).filter(each => each === SUBJECT.emailChangeRequested).length, 6)
  })

  t.test('existing sessions stay signed in after the change', async t => {
    const user = await pending()
    t.equal((await verify(app, user.change)).statusCode, 200)
    const status = await accountStatus(app, user.token)
    t.ok([200, 401].includes(status), `${status}`)
    if (status === 200) t.equal((await accountOf(app, user.token)).email, user.newEmail, 'seen at once')
  })
})
