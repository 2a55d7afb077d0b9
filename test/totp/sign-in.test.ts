/** Signing in with a second factor (docs/design.md, "Second factors"). */
import type { LightMyRequestResponse } from 'fastify'
import t from 'tap'
import { allEvents } from '../support/admin-routes.ts'
import { addTotp, ENCRYPTION_KEY, STEP, signInWith, totpOf } from '../support/authenticator-apps.ts'
import { accountStatus, manualClock, PASSWORD, signUp, updateUser } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { mailbox } from '../support/mailbox.ts'
import { readMetrics } from '../support/metrics.ts'

const WRONG = 'not the pass phrase'

/** Without what differs between any two responses. */
const shown = ({ statusCode, headers, body }: LightMyRequestResponse) => {
  const { 'x-request-id': _id, date: _date, ...others } = headers
  return { statusCode, headers: others, body }
}

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const clock = manualClock()
  const env = { DATABASE_URL: await newDatabase(t), ENCRYPTION_KEY }
  const app = await build(t, { clock: clock.now, env })
  const mails = mailbox(app)

  const withApp = async () => {
    const user = await signUp(app)
    const added = await addTotp(app, user.token)
    clock.advance(STEP)
    return { ...user, ...added }
  }

  t.test('the code is asked for after the correct password', async t => {
    const { email, code } = await withApp()
    t.strictSame(errorsAt(t, await signInWith(app, email), 401, ['code']), { code: ['is required'] })
    t.strictSame(errorsAt(t, await signInWith(app, email, code(2)), 401, ['code']), { code: ['is wrong'] })
    const signedIn = await signInWith(app, email, code())
    t.equal(signedIn.statusCode, 200)
    t.equal(await accountStatus(app, signedIn.json().accessToken), 200)
    const metrics = await readMetrics(app)
    for (const outcome of ['code_required', 'wrong_code', 'succeeded'])
      t.equal(metrics.sum('gatehouse_sign_ins_total', { outcome }), 1, outcome)
  })

  t.test(
    'a wrong password does not reveal whether there is a second factor, and uses no code up',
    async t => {
      const [{ email, code }, other] = [await withApp(), await signUp(app)]
      for (const sent of [undefined, code(), '000000']) {
        const [one, two] = [
          await signInWith(app, email, sent, WRONG),
          await signInWith(app, other.email, sent, WRONG),
        ]
        t.strictSame(shown(one), shown(two))
        errorsAt(t, one, 401, ['credentials'])
      }
      t.equal((await signInWith(app, email, code())).statusCode, 200)
    },
  )

  t.test('codes of this step, the one before and the one after are accepted, each once', async t => {
    const { email, code } = await withApp()
    clock.advance(5 * STEP)
    const statuses = []
    for (const steps of [-2, 2, -1, -1, 0, 0, -1, 1, 1, 0]) {
      // Spaces are as some apps show them.
      const typed = code(steps).replace(/^(...)/, '$1 ')
      statuses.push((await signInWith(app, email, typed)).statusCode)
    }
    t.strictSame(statuses, [401, 401, 200, 401, 200, 401, 401, 200, 401, 401])
  })

  t.test('a recovery code works once, in any spelling, for its user alone', async t => {
    const { id, email, token, recoveryCodes } = await withApp()
    const other = await withApp()
    const [one = '', two = ''] = recoveryCodes
    errorsAt(t, await signInWith(app, other.email, one), 401, ['code'])
    t.equal((await signInWith(app, email, one)).statusCode, 200)
    errorsAt(t, await signInWith(app, email, one), 401, ['code'])
    t.match(await totpOf(app, token), { recoveryCodes: 9 })
    t.equal((await signInWith(app, email, ` ${two.toUpperCase().replaceAll('-', ' ')}`)).statusCode, 200)
    t.match(await totpOf(app, token), { recoveryCodes: 8 })
    const used = await allEvents(app, { userId: id, type: 'recovery-code.used' })
    t.match(used, [{ actor: { type: 'user', id }, ip: '127.0.0.1', details: null }, {}])
    t.equal(used.length, 2)
    const texts = (await mails.to(email, 'recoveryCodeUsed', 2)).map(({ text = '' }) => text)
    t.same(texts.map(text => /Codes left: (\d+)/.exec(text)?.[1]).sort(), ['8', '9'])
    for (const text of texts) for (const code of recoveryCodes) t.notOk(text.includes(code))
  })

  t.test('a disabled user is told so before a code is asked for', async t => {
    const { id, email } = await withApp()
    await updateUser(app, id, { disabled: true })
    t.equal(globalErrorOf(t, await signInWith(app, email), 403), 'This account is disabled')
    errorsAt(t, await signInWith(app, email, undefined, WRONG), 401, ['credentials'])
  })

  t.test('a code of a user without a second factor is not looked at', async t => {
    const { email } = await signUp(app)
    t.equal((await signInWith(app, email, '123456')).statusCode, 200)
    errorsAt(t, await signInWith(app, email, 5 as never, PASSWORD), 400, ['code'])
  })
})
