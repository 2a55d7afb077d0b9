/** Password resets by mail (docs/design.md, "Account life cycle"). */
import t from 'tap'
import { call, forgot, NO_TOKENS, reset, verify } from '../support/account-routes.ts'
import {
  accountStatus,
  bearer,
  confirmedUser,
  freshEmail,
  logCapture,
  manualClock,
  PASSWORD,
  signIn,
  signUp,
  updateUser,
} from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt } from '../support/error-response.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { FormClient } from '../support/form-client.ts'
import { hasToken, mailbox, SUBJECT, tokenIn } from '../support/mailbox.ts'
import { ACCOUNT, hasShape, isPrivateJson } from '../support/response-shapes.ts'

const HOUR = 3_600_000
const NEW = 'another long pass phrase 8'

await onEnginesOfRun(t, async (t, { build }) => {
  const app = await build(t, { hasher: quickHashing })
  const mails = mailbox(app)

  /** A user, and the token of a mailed reset. */
  const forgetful = async (fields = {}) => {
    const user = await signUp(app, fields)
    t.equal((await forgot(app, user.email)).statusCode, 202)
    return { ...user, reset: await mails.token(user.email, 'passwordReset') }
  }

  t.test('the mailed token sets a new password and signs in', async t => {
    const user = await forgetful()
    const second = (await signIn(app, user.email)).json().accessToken
    t.equal(await accountStatus(app, second), 200, 'asking changes nothing')
    const response = await reset(app, user.reset, NEW)
    isPrivateJson(t, response, 200)
    const { accessToken, expiresAt, user: account } = response.json()
    t.strictSame(Object.keys(response.json()).sort(), ['accessToken', 'expiresAt', 'user'])
    hasShape(t, account, ACCOUNT)
    t.match(account, { id: user.id, emailVerified: true }, 'who reads the mail has the address')
    const like = (await signIn(app, user.email, NEW)).headers['set-cookie']
    const shape = (set: unknown) =>
      String(set)
        .replace(/=[^;]*;/, '=…;')
        .replace(/Max-Age=\d+/, 'Max-Age=…')
    t.equal(shape(response.headers['set-cookie']), shape(like), 'the cookie of a sign-in')
    t.match(response.headers['set-cookie'], `ACCESS_TOKEN=${accessToken};`)
    t.ok(Date.parse(expiresAt) > Date.now())
    t.equal(await accountStatus(app, accessToken), 200)
    for (const token of [user.token, second]) t.equal(await accountStatus(app, token), 401, 'all others end')
    t.equal((await signIn(app, user.email)).statusCode, 401)
    t.equal((await signIn(app, user.email, NEW)).statusCode, 200)
    errorsAt(t, await reset(app, user.reset, PASSWORD), 400, ['token'], 'once')
    t.equal((await signIn(app, user.email, NEW)).statusCode, 200)
    const [notice] = await mails.to(user.email, 'passwordChanged')
    t.notOk(notice && hasToken(notice))
  })

  t.test('a reset accepts the current password, which a refusal would reveal to the mailbox', async t => {
    const user = await forgetful()
    const response = await reset(app, user.reset, PASSWORD)
    t.equal(response.statusCode, 200)
    t.equal(await accountStatus(app, user.token), 401, 'other sessions end all the same')
    t.equal((await signIn(app, user.email)).statusCode, 200)
    const { email, reset: token } = await forgetful()
    const page = await new FormClient(app).open(`/reset-password?token=${token}`)
    await page.submit('reset-password', { password: PASSWORD })
    t.equal(page.status, 200)
    t.match(page.page, email, 'signed in')
  })

  t.test('a reset ends every other session of a confirmed account, and pending mails', async t => {
    const user = await confirmedUser(app)
    const second = (await signIn(app, user.email)).json().accessToken
    await forgot(app, user.email)
    await forgot(app, user.email)
    const [first = '', last = ''] = (await mails.to(user.email, 'passwordReset', 2)).map(tokenIn)
    const response = await reset(app, first, NEW)
    t.equal(response.statusCode, 200)
    for (const token of [user.token, second]) t.equal(await accountStatus(app, token), 401)
    t.equal(await accountStatus(app, response.json().accessToken), 200)
    errorsAt(t, await reset(app, last, PASSWORD), 400, ['token'])
    t.equal((await signIn(app, user.email)).statusCode, 401)
  })

  t.test('forgot-password has the same response for every e-mail', async t => {
    const [known, disabled] = [await signUp(app), await signUp(app)]
    await updateUser(app, disabled.id, { disabled: true })
    const seen = []
    for (const email of [freshEmail(), known.email, disabled.email, ` ${known.email.toUpperCase()} `]) {
      const { statusCode, headers, body } = await forgot(app, email)
      const { date: _date, 'x-request-id': _id, ...others } = headers
      seen.push({ statusCode, body, headers: others })
    }
    for (const each of seen) t.strictSame(each, seen[0])
    t.strictSame([seen[0]?.statusCode, seen[0]?.body], [202, '{"status":"accepted"}'])
    t.equal((await mails.to(known.email, 'passwordReset', 2)).length, 2, 'in any letter case')
  })

  t.test('only the owner of an account gets a mail', async t => {
    const app = await build(t, { hasher: quickHashing })
    const mails = mailbox(app)
    const [unknown, known, disabled] = [freshEmail(), await signUp(app), await signUp(app)]
    await updateUser(app, disabled.id, { disabled: true })
    for (const email of [unknown, disabled.email, known.email])
      t.equal((await forgot(app, email)).statusCode, 202)
    await mails.to(known.email, 'passwordReset')
    t.strictSame(await mails.final(unknown), [])
    t.strictSame(await mails.final(disabled.email), [SUBJECT.verification])
  })

  t.test('invalid input is a 400 with field errors, for every e-mail', async t => {
    for (const email of [
      '',
      'ann',
      null,
      7,
      undefined,
      `${'x'.repeat(250)}@example.com`,
      'a\u0000@b.example',
    ])
      errorsAt(t, await forgot(app, email), 400, ['email'], `${email}`.slice(0, 20))
    const more = await call(app, 'POST', '/account/forgot-password', { email: freshEmail(), more: 1 })
    errorsAt(t, more, 400, ['more'])
    for (const token of NO_TOKENS) {
      errorsAt(t, await reset(app, token, NEW), 400, ['token'], `${JSON.stringify(token)?.slice(0, 40)}`)
    }
  })

  t.test('a rejected password does not use up the token (400)', async t => {
    const email = freshEmail('melchior')
    const user = await forgetful({ email })
    const local = email.slice(0, email.indexOf('@'))
    const rejected = ['short', 'password', 'x'.repeat(129), email, local.toUpperCase()]
    for (const password of [...rejected, null, 7, undefined]) {
      errorsAt(t, await reset(app, user.reset, password), 400, ['password'], `${password}`.slice(0, 40))
    }
    t.equal(await accountStatus(app, user.token), 200)
    t.equal((await signIn(app, email)).statusCode, 200)
    t.equal((await reset(app, user.reset, NEW)).statusCode, 200)
  })

  t.test('a token lasts an hour', async t => {
    const clock = manualClock()
    const app = await build(t, { hasher: quickHashing, clock: clock.now })
    const mails = mailbox(app)
    for (const [wait, status] of [[HOUR - 1, 200] as const, [HOUR, 400] as const]) {
      const user = await signUp(app)
      await forgot(app, user.email)
      const token = await mails.token(user.email, 'passwordReset')
      clock.advance(wait)
      t.equal((await reset(app, token, NEW)).statusCode, status)
      t.equal((await signIn(app, user.email, NEW)).statusCode, status === 200 ? 200 : 401)
    }
  })

  t.test('a reset, a new password, a new e-mail or disabling invalidates other tokens', async t => {
    const twice = await forgetful()
    await forgot(app, twice.email)
    const [first = '', second = ''] = (await mails.to(twice.email, 'passwordReset', 2)).map(tokenIn)
    t.equal((await reset(app, second, NEW)).statusCode, 200)
    const changing = await forgetful()
    await updateUser(app, changing.id, { emailVerified: true })
    const payload = { currentPassword: PASSWORD, newPassword: `${NEW}!` }
    await call(app, 'PUT', '/account/password', payload, bearer(changing.token))
    const [moved, disabled] = [await forgetful(), await forgetful()]
    await updateUser(app, moved.id, { email: freshEmail() })
    await updateUser(app, disabled.id, { disabled: true })
    errorsAt(t, await reset(app, disabled.reset, NEW), 400, ['token'])
    await updateUser(app, disabled.id, { disabled: false })
    for (const token of [first, changing.reset, moved.reset, disabled.reset])
      errorsAt(t, await reset(app, token, NEW), 400, ['token'])
    const verification = await mails.token(changing.email, 'verification')
    t.equal((await verify(app, verification, `${NEW}!`)).statusCode, 200, 'the address is the same as before')
  })

  t.test('an account gets five reset mails an hour, and the response does not reveal it', async t => {
    const clock = manualClock()
    const app = await build(t, { hasher: quickHashing, clock: clock.now })
    const mails = mailbox(app)
    const user = await signUp(app)
    for (let sent = 0; sent < 8; sent += 1)
      t.strictSame((await forgot(app, user.email)).json(), { status: 'accepted' })
    t.equal((await mails.final(user.email)).filter(each => each === SUBJECT.passwordReset).length, 5)
  })

  t.test('the next mail is sent an hour later', async t => {
    const clock = manualClock()
    const app = await build(t, { hasher: quickHashing, clock: clock.now })
    const mails = mailbox(app)
    const user = await signUp(app)
    for (let sent = 0; sent < 5; sent += 1) await forgot(app, user.email)
    await mails.to(user.email, 'passwordReset', 5)
    clock.advance(HOUR)
    await forgot(app, user.email)
    t.equal((await mails.to(user.email, 'passwordReset', 6)).length, 6)
  })

  t.test('no log line contains a token or a password', async t => {
    const log = logCapture()
    const env = { LOG_LEVEL: 'trace', LOG_REQUESTS: 'on' }
    const app = await build(t, { hasher: quickHashing, env, logStream: log.stream })
    const mails = mailbox(app)
    const user = await signUp(app)
    const verification = await mails.token(user.email, 'verification')
    await forgot(app, user.email)
    const token = await mails.token(user.email, 'passwordReset')
    for (const accept of ['text/html', 'application/json'])
      for (const each of [verification, verification, token])
        await call(app, 'GET', `/account/verify-email?token=${each}`, undefined, { accept })
    for (const password of ['password', NEW, NEW]) await reset(app, token, password)
    t.equal((await signIn(app, user.email, NEW)).statusCode, 200)
    await app.close()
    t.ok(log.records().length > 10)
    for (const secret of [verification, token, NEW, PASSWORD, user.token, user.email])
      t.notOk(log.text().includes(secret), secret)
  })
})
