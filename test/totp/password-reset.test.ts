/** A password reset needs the code of a user with an authenticator app (docs/design.md, "Second factors"). */
import t from 'tap'
import { call, forgot } from '../support/account-routes.ts'
import { addTotp, ENCRYPTION_KEY, STEP, signInWith, totpOf } from '../support/authenticator-apps.ts'
import { accountStatus, confirmedUser, manualClock, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt } from '../support/error-response.ts'
import { mailbox } from '../support/mailbox.ts'

const NEW = 'another long pass phrase 8'

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const clock = manualClock()
  const app = await build(t, {
    clock: clock.now,
    env: { DATABASE_URL: await newDatabase(t), ENCRYPTION_KEY },
  })
  const mails = mailbox(app)

  const forgetful = async () => {
    const user = await confirmedUser(app)
    const added = await addTotp(app, user.token)
    clock.advance(STEP)
    await forgot(app, user.email)
    return { ...user, ...added, mailed: await mails.token(user.email, 'passwordReset') }
  }
  const reset = (token: string, code?: string) =>
    call(app, 'POST', '/account/reset-password', { token, password: NEW, ...(code && { code }) })

  t.test('neither a missing nor a wrong code uses the token up', async t => {
    const { email, token, mailed, code, recoveryCodes } = await forgetful()
    t.strictSame(errorsAt(t, await reset(mailed), 401, ['code']), { code: ['is required'] })
    for (const wrong of [code(2), 'k3wf-7hqa-x9mz-24tn-p6dr-8ubc'])
      t.strictSame(errorsAt(t, await reset(mailed, wrong), 401, ['code']), { code: ['is wrong'] })
    t.equal(await accountStatus(app, token), 200)
    const done = await reset(mailed, code())
    t.equal(done.statusCode, 200)
    t.equal(await accountStatus(app, done.json().accessToken), 200)
    t.equal(await accountStatus(app, token), 401)
    errorsAt(t, await signInWith(app, email, undefined, NEW), 401, ['code'], 'the app stays')
    t.equal((await signInWith(app, email, recoveryCodes[0], NEW)).statusCode, 200)
  })

  t.test('a recovery code works too', async t => {
    const { mailed, recoveryCodes } = await forgetful()
    const done = await reset(mailed, recoveryCodes[0])
    t.equal(done.statusCode, 200)
    t.match(await totpOf(app, done.json().accessToken), { recoveryCodes: 9 })
  })

  t.test('a wrong token does not reveal whether there is an app, and uses no code up', async t => {
    const { email, code } = await forgetful()
    for (const sent of [undefined, code()]) errorsAt(t, await reset('x'.repeat(43), sent), 400, ['token'])
    t.equal((await signInWith(app, email, code())).statusCode, 200)
  })

  t.test('users without an app need no code', async t => {
    const { email } = await signUp(app)
    for (const code of [undefined, '123456']) {
      await forgot(app, email)
      const mailed = await mails.token(email, 'passwordReset', code === undefined ? 1 : 2)
      t.equal((await reset(mailed, code)).statusCode, 200)
    }
  })
})
