/** A mailed code together with a code of an authenticator app (docs/design.md, "Second factors" and "E-mail codes"). */
import t from 'tap'
import { newEvent, OPERATOR } from '#core/audit-log/event'
import { newSession } from '#core/auth/session'
import { type EmailCodeStore, storedEmailCodes } from '#features/email-codes/stored-email-codes'
import { addTotp, STEP } from '../support/authenticator-apps.ts'
import { accountStatus, confirmedUser, manualClock, signUp } from '../support/build.ts'
import { codesOf, EMAIL_CODES, otherThan, signInByCode } from '../support/email-codes.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'

const WRONG_CODE = '000000'

await onEnginesOfRun(t, async (t, { build }) => {
  const clock = manualClock()
  const options = { env: { ...EMAIL_CODES, RATE_LIMIT: 'on' }, clock: clock.now }
  const app = await build(t, options)
  const codes = codesOf(app)

  const withTotp = async () => {
    const user = await confirmedUser(app)
    const totp = await addTotp(app, user.token)
    const emailCode = await codes.request(user.email)
    // The code of the confirmation is used up.
    clock.advance(STEP)
    return { ...user, totp, emailCode }
  }

  t.test('the code of the app is required too, after the correct mailed code', async t => {
    const { email, emailCode, totp } = await withTotp()
    for (const code of [undefined, totp.code(), WRONG_CODE])
      errorsAt(t, await signInByCode(app, email, otherThan(emailCode), code), 401, ['emailCode'])
    t.strictSame(errorsAt(t, await signInByCode(app, email, emailCode), 401, ['code']), {
      code: ['is required'],
    })
    t.strictSame(errorsAt(t, await signInByCode(app, email, emailCode, WRONG_CODE), 401, ['code']), {
      code: ['is wrong'],
    })
    const response = await signInByCode(app, email, emailCode, totp.code())
    t.equal(response.statusCode, 200, 'neither code was used up')
    t.equal(await accountStatus(app, response.json().accessToken), 200)
    errorsAt(t, await signInByCode(app, email, emailCode, totp.code()), 401, ['emailCode'], 'used up now')
  })

  t.test('a recovery code works too', async t => {
    const { email, emailCode, totp } = await withTotp()
    t.equal((await signInByCode(app, email, emailCode, totp.recoveryCodes[0])).statusCode, 200)
  })

  t.test('a code of the app is not used up by a wrong mailed code', async t => {
    const { email, emailCode, totp } = await withTotp()
    errorsAt(t, await signInByCode(app, email, otherThan(emailCode), totp.code()), 401, ['emailCode'])
    t.equal((await signInByCode(app, email, emailCode, totp.code())).statusCode, 200)
  })

  t.test('wrong codes of the app are throttled, and do not count as attempts of the mailed one', async t => {
    const { email, emailCode, totp } = await withTotp()
    for (let attempt = 1; attempt <= 6; attempt += 1)
      errorsAt(t, await signInByCode(app, email, emailCode, WRONG_CODE), 401, ['code'], `${attempt}`)
    globalErrorOf(t, await signInByCode(app, email, emailCode, totp.code()), 429)
    errorsAt(
      t,
      await signInByCode(app, email, otherThan(emailCode)),
      401,
      ['emailCode'],
      'no guess is throttled',
    )
  })

  t.test('users without a second factor need no code, and one that is sent is ignored', async t => {
    const { email } = await signUp(app)
    t.equal((await signInByCode(app, email, await codes.request(email), WRONG_CODE)).statusCode, 200)
  })

  t.test('a session only opens with the factors that were verified', async t => {
    const user = await confirmedUser(app)
    const emailCode = await codes.request(user.email)
    const { features, accounts } = app.services.storage
    const store = features[storedEmailCodes.name] as EmailCodeStore
    const now = clock.now()
    const {
      codes: [found],
    } = await store.countAttempt(user.email, '00', null, now)
    const totp = await addTotp(app, user.token)
    const session = newSession(
      user.id,
      now,
      { lifetime: STEP, idle: STEP },
      { method: 'emailCode', amr: ['otp'] },
    )
    const signedIn = newEvent('user.signed-in', OPERATOR, user.id, now, { session: session.id })
    const proof = { name: 'email-codes.useEmailCode', args: [found?.id ?? ''] }
    const read = { proof, email: user.email, emailVerified: true, factors: [], newHash: null }
    t.equal(await accounts.signIn(read, session, signedIn), 'userChanged')
    clock.advance(STEP)
    t.equal((await signInByCode(app, user.email, emailCode, totp.code())).statusCode, 200, 'not used up')
  })
})
