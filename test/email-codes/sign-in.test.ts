/** Signing in with a mailed code, and what invalidates a code (docs/design.md, "E-mail codes"). */
import t from 'tap'
import { accountOf, call, changeEmail, forgot, reset, verify } from '../support/account-routes.ts'
import {
  accountStatus,
  asAdmin,
  bearer,
  build,
  confirmedUser,
  freshEmail,
  logCapture,
  manualClock,
  PASSWORD,
  signIn,
  signUp,
  updateUser,
} from '../support/build.ts'
import { codesOf, EMAIL_CODES, otherThan, requestCode, signInByCode } from '../support/email-codes.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { growth, readMetrics } from '../support/metrics.ts'
import { ACCOUNT, hasShape, isPrivateJson } from '../support/response-shapes.ts'
import { storedRows } from '../support/stored-rows.ts'

const MINUTE = 60_000
const NEW = 'another long pass phrase 8'

const WRONG = { emailCode: ['is wrong or has expired'] }

t.test('without EMAIL_CODES=on the routes do not exist', async t => {
  const app = await build(t)
  const { email } = await signUp(app)
  globalErrorOf(t, await requestCode(app, email), 404)
  globalErrorOf(t, await signInByCode(app, email, '12345678'), 404)
  const { paths } = (await app.inject('/openapi.json')).json()
  t.notOk(Object.keys(paths).some(path => path.includes('email-code')))
})

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const clock = manualClock()
  const app = await build(t, { env: EMAIL_CODES, clock: clock.now })
  const codes = codesOf(app)

  t.test('the mailed code signs in, like the password', async t => {
    const user = await confirmedUser(app)
    const code = await codes.request(user.email)
    const response = await signInByCode(app, user.email, code)
    isPrivateJson(t, response, 200)
    const { accessToken, expiresAt, user: account } = response.json()
    t.strictSame(Object.keys(response.json()).sort(), ['accessToken', 'expiresAt', 'user'])
    hasShape(t, account, ACCOUNT)
    t.match(account, { id: user.id, email: user.email })
    t.ok(Date.parse(expiresAt) > clock.now())
    const shape = (set: unknown) =>
      String(set)
        .replace(/=[^;]*;/, '=…;')
        .replace(/Max-Age=\d+/, 'Max-Age=…')
    const like = await signIn(app, user.email)
    t.equal(shape(response.headers['set-cookie']), shape(like.headers['set-cookie']), 'its cookie')
    t.match(response.headers['set-cookie'], `ACCESS_TOKEN=${accessToken};`)
    for (const token of [accessToken, user.token, like.json().accessToken])
      t.equal(await accountStatus(app, token), 200, 'no session ends')
  })

  t.test('spaces and hyphens are ignored, and so is the letter case of the address', async t => {
    const user = await signUp(app)
    const code = await codes.request(user.email)
    const typed = `${code.slice(0, 4)} ${code.slice(4, 6)}-${code.slice(6)} `
    for (const ignored of ['\t', '\u00a0', '\ufeff'])
      t.equal((await signInByCode(app, user.email, code + ignored)).statusCode, 401, 'no other character is')
    t.equal((await signInByCode(app, user.email.toUpperCase(), typed)).statusCode, 200)
  })

  t.test('the code proves the mailbox: the e-mail becomes verified, with an event', async t => {
    const user = await signUp(app)
    const eventsOf = async (): Promise<{ type: string; details: object | null }[]> => {
      const url = `/admin/events?userId=${user.id}`
      return (await app.inject({ url, headers: asAdmin })).json().results
    }
    t.match(await accountOf(app, user.token), { emailVerified: false })
    const first = await signInByCode(app, user.email, await codes.request(user.email))
    t.equal(first.json().user.emailVerified, true)
    t.equal(await accountStatus(app, user.token), 401, 'the session from before ends: it may be a stranger’s')
    clock.advance(MINUTE)
    const second = await signInByCode(app, user.email, await codes.request(user.email, 2))
    const types = (await eventsOf()).map(({ type }) => type)
    t.strictSame(
      types.toReversed(),
      [
        'user.signed-up',
        'email-code.requested',
        'email.verified',
        'password.removed',
        'sessions.ended',
        'user.signed-in',
        'email-code.requested',
        'user.signed-in',
      ],
      'verified once',
    )
    const [signedIn] = await eventsOf()
    const sessions = await call(app, 'GET', '/account/sessions', undefined, bearer(second.json().accessToken))
    const current = sessions.json().results.find(({ current }: { current: boolean }) => current)
    t.match(signedIn, { details: { session: current.id }, actor: { type: 'user', id: user.id } })
  })

  t.test('it signs in where passwords need a verified e-mail', async t => {
    const env = { ...EMAIL_CODES, REQUIRE_EMAIL_VERIFICATION: 'true' }
    const app = await build(t, { env })
    const email = freshEmail()
    const account = { email, password: PASSWORD, emailVerified: false }
    await call(app, 'POST', '/admin/users', account, asAdmin)
    globalErrorOf(t, await signIn(app, email), 403)
    t.equal((await signInByCode(app, email, await codesOf(app).request(email))).statusCode, 200)
    t.equal((await signIn(app, email)).statusCode, 401, 'the password is removed')
  })

  t.test('a code works once', async t => {
    const { email } = await signUp(app)
    const code = await codes.request(email)
    t.equal((await signInByCode(app, email, code)).statusCode, 200)
    t.strictSame(errorsAt(t, await signInByCode(app, email, code), 401, ['emailCode']), WRONG)
  })

  t.test('a code works for ten minutes', async t => {
    for (const [wait, status] of [[10 * MINUTE - 1, 200] as const, [10 * MINUTE, 401] as const]) {
      const { email } = await signUp(app)
      const code = await codes.request(email)
      clock.advance(wait)
      t.equal((await signInByCode(app, email, code)).statusCode, status)
    }
  })

  t.test('a new code replaces the former one', async t => {
    const { email } = await signUp(app)
    const [former, newest] = [await codes.request(email), await codes.request(email, 2)]
    if (former !== newest) errorsAt(t, await signInByCode(app, email, former), 401, ['emailCode'])
    t.equal((await signInByCode(app, email, newest)).statusCode, 200)
  })

  t.test('a code never works for another address', async t => {
    const [ann, ben] = [await signUp(app), await signUp(app)]
    const [codeOfAnn, codeOfBen] = [await codes.request(ann.email), await codes.request(ben.email)]
    for (const [email, code] of [
      [ann.email, codeOfBen],
      [ben.email, codeOfAnn],
      [freshEmail(), codeOfAnn],
      [ann.email.replace('@', '+x@'), codeOfAnn],
    ] as const)
      errorsAt(t, await signInByCode(app, email, code), 401, ['emailCode'], email)
    t.equal((await signInByCode(app, ann.email, codeOfAnn)).json().user.id, ann.id)
    t.equal((await signInByCode(app, ben.email, codeOfBen)).json().user.id, ben.id)
  })

  t.test('a changed e-mail invalidates the code, also for who gets the address', async t => {
    const ann = await signUp(app)
    const [former, later] = [ann.email, freshEmail()]
    const code = await codes.request(former)
    await updateUser(app, ann.id, { email: later })
    for (const email of [former, later])
      errorsAt(t, await signInByCode(app, email, code), 401, ['emailCode'], 'moved')
    const ben = await signUp(app)
    t.equal((await updateUser(app, ben.id, { email: former })).statusCode, 200)
    errorsAt(t, await signInByCode(app, former, code), 401, ['emailCode'], 'of another user')
    await updateUser(app, ben.id, { email: freshEmail() })
    await updateUser(app, ann.id, { email: former })
    errorsAt(t, await signInByCode(app, former, code), 401, ['emailCode'], 'also when it is changed back')
  })

  t.test('so does the link that confirms another e-mail, but not its request', async t => {
    const user = await confirmedUser(app)
    const later = freshEmail()
    await changeEmail(app, user.token, { email: later, password: PASSWORD })
    const token = await codes.mails.token(later, 'emailChange')
    const code = await codes.request(user.email)
    t.equal((await signInByCode(app, user.email, code)).statusCode, 200)
    const second = await codes.request(user.email, 2)
    t.equal((await verify(app, token)).statusCode, 200)
    for (const email of [user.email, later])
      errorsAt(t, await signInByCode(app, email, second), 401, ['emailCode'])
    t.equal((await signInByCode(app, later, await codes.request(later))).statusCode, 200)
  })

  t.test('a new password and a reset invalidate the code', async t => {
    const changing = await confirmedUser(app)
    const code = await codes.request(changing.email)
    const payload = { currentPassword: PASSWORD, newPassword: NEW }
    t.equal((await call(app, 'PUT', '/account/password', payload, bearer(changing.token))).statusCode, 200)
    errorsAt(t, await signInByCode(app, changing.email, code), 401, ['emailCode'], 'changed')

    const forgetful = await signUp(app)
    await forgot(app, forgetful.email)
    const token = await codes.mails.token(forgetful.email, 'passwordReset')
    const second = await codes.request(forgetful.email)
    t.equal((await reset(app, token, NEW)).statusCode, 200)
    errorsAt(t, await signInByCode(app, forgetful.email, second), 401, ['emailCode'], 'reset')
  })

  t.test('disabling invalidates the code, and a disabled user gets none', async t => {
    const user = await signUp(app)
    const code = await codes.request(user.email)
    await updateUser(app, user.id, { disabled: true })
    t.strictSame(errorsAt(t, await signInByCode(app, user.email, code), 401, ['emailCode']), WRONG)
    t.equal((await requestCode(app, user.email)).statusCode, 202)
    await updateUser(app, user.id, { disabled: false })
    errorsAt(t, await signInByCode(app, user.email, code), 401, ['emailCode'], 'enabled again')
  })

  t.test('other changes of the account keep the code', async t => {
    const user = await signUp(app)
    const code = await codes.request(user.email)
    await call(app, 'PUT', '/account', { firstName: 'Ada' }, bearer(user.token))
    await call(app, 'DELETE', '/account/sessions?scope=all', undefined, bearer(user.token))
    t.equal((await signInByCode(app, user.email, code)).statusCode, 200)
  })

  t.test('the code is deleted with its user', async t => {
    const DATABASE_URL = await newDatabase(t)
    const app = await build(t, { env: { ...EMAIL_CODES, DATABASE_URL } })
    const user = await signUp(app)
    const code = await codesOf(app).request(user.email)
    const stored = async () => /"email_codes",\[(.*?)\]/.exec(await storedRows(DATABASE_URL))?.[1] ?? ''
    t.not(await stored(), '')
    const deleted = await app.inject({ method: 'DELETE', url: `/admin/users/${user.id}`, headers: asAdmin })
    t.equal(deleted.statusCode, 204)
    t.equal(await stored(), '')
    errorsAt(t, await signInByCode(app, user.email, code), 401, ['emailCode'])
  })

  t.test('the database does not contain the code, nor its plain hash', async t => {
    const DATABASE_URL = await newDatabase(t)
    const app = await build(t, { env: { ...EMAIL_CODES, DATABASE_URL } })
    const user = await signUp(app)
    const code = await codesOf(app).request(user.email)
    const rows = await storedRows(DATABASE_URL)
    t.match(rows, user.id)
    t.notOk(rows.includes(code))
    const other = await build(t, {
      env: { ...EMAIL_CODES, DATABASE_URL, ENCRYPTION_KEY: 'another-encryption-key-0123456789abcdef' },
    })
    errorsAt(t, await signInByCode(other, user.email, code), 401, ['emailCode'], 'useless without the key')
    const env = {
      ...EMAIL_CODES,
      DATABASE_URL,
      ENCRYPTION_KEY: 'another-encryption-key-0123456789abcdef',
      ENCRYPTION_KEY_PREVIOUS: EMAIL_CODES.ENCRYPTION_KEY,
    }
    t.equal((await signInByCode(await build(t, { env }), user.email, code)).statusCode, 200, 'rotated')
  })

  t.test('invalid input is a 400 with field errors', async t => {
    const { email } = await signUp(app)
    const code = await codes.request(email)
    for (const wrong of ['', 'ann', null, 7, undefined, `${'x'.repeat(250)}@example.com`]) {
      errorsAt(t, await requestCode(app, wrong), 400, ['email'], `${wrong}`.slice(0, 20))
      errorsAt(t, await signInByCode(app, wrong, code), 400, ['email'], `${wrong}`.slice(0, 20))
    }
    for (const wrong of ['', null, 7, undefined, 'x'.repeat(65)])
      errorsAt(t, await signInByCode(app, email, wrong), 400, ['emailCode'], `${wrong}`.slice(0, 20))
    const more = await call(app, 'POST', '/account/email-code', { email, more: 1 })
    errorsAt(t, more, 400, ['more'])
    for (const wrong of ['x', '1234567', '123456789', 'ẞ\u00a0', `${code}0`])
      errorsAt(t, await signInByCode(app, email, wrong), 401, ['emailCode'], wrong)
    errorsAt(t, await signInByCode(app, email, code), 401, ['emailCode'], 'five attempts were used')
  })

  t.test('sign-ins with codes count among the sign-ins', async t => {
    const { email } = await signUp(app)
    const code = await codes.request(email)
    const before = await readMetrics(app)
    await signInByCode(app, email, otherThan(code))
    await signInByCode(app, freshEmail(), code)
    await signInByCode(app, email, code)
    const grown = growth(before, await readMetrics(app))
    t.equal(grown('gatehouse_sign_ins_total', { outcome: 'wrong_credentials' }), 2)
    t.equal(grown('gatehouse_sign_ins_total', { outcome: 'succeeded' }), 1)
    t.equal(grown('gatehouse_sign_ins_total'), 3)
  })

  t.test('no log line contains a code or an address', async t => {
    const log = logCapture()
    const env = { ...EMAIL_CODES, LOG_LEVEL: 'trace', LOG_REQUESTS: 'on' }
    const app = await build(t, { env, logStream: log.stream })
    const user = await signUp(app)
    const code = await codesOf(app).request(user.email)
    for (const each of [otherThan(code), code, code]) await signInByCode(app, user.email, each)
    await app.close()
    t.ok(log.records().length > 5)
    for (const secret of [code, otherThan(code), user.email]) t.notOk(log.text().includes(secret), secret)
  })
})
