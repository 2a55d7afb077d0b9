/**
 * No client can flood the mailbox of another user, over any route and with any number of accounts (docs/design.md, "Account life cycle").
 */
import t from 'tap'
import { RATE_LIMITS } from '#core/rate-limits/limits'
import { call, changeEmail, forgot, remove } from '../support/account-routes.ts'
import {
  bearer,
  confirmedUser,
  freshEmail,
  logCapture,
  manualClock,
  PASSWORD,
  signUp,
} from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { perAddress } from '../support/limits.ts'
import { mailbox } from '../support/mailbox.ts'
import { organizationOf } from '../support/organizations.ts'

const rateLimits = {
  ...RATE_LIMITS,
  perAddress: perAddress({ 'sign-in': 1_000, password: 1_000, mail: 1_000 }),
}
const { points: count } = RATE_LIMITS.perRecipient

await onEnginesOfRun(t, async (t, { build }) => {
  const start = async (t: Parameters<typeof build>[0]) => {
    const log = logCapture()
    const env = { RATE_LIMIT: 'on' }
    const app = await build(t, { env, rateLimits, hasher: quickHashing, logStream: log.stream })
    return { app, log, mails: mailbox(app) }
  }
  const dropped = ({ msg }: Record<string, unknown>) => /a mail was not sent/.test(String(msg))

  t.test('changes of a password mail an address at most ten times an hour', async t => {
    const { app, log, mails } = await start(t)
    const { email, token } = await signUp(app)
    let current = token
    for (let change = 0; change < count + 3; change += 1) {
      const passwords = {
        currentPassword: `${PASSWORD}${change || ''}`,
        newPassword: `${PASSWORD}${change + 1}`,
      }
      const response = await call(app, 'PUT', '/account/password', passwords, bearer(current))
      t.equal(response.statusCode, 200, response.body)
      current = response.json().accessToken
    }
    await forgot(app, email)
    t.ok(await mails.token(email, 'passwordReset'), 'a flood does not suppress the mail that restores access')
    t.equal((await mails.final(email)).length, count + 1)
    t.equal(log.records().filter(dropped).length, 4, 'each mail that is not sent is logged')
    t.notMatch(log.text(), email)
  })

  t.test("recreating accounts does not raise an address's limit", async t => {
    const { app, mails } = await start(t)
    const victim = freshEmail('victim')
    for (let round = 0; round < count; round += 1) {
      const { token } = await signUp(app, { email: victim })
      t.equal((await remove(app, token, { password: PASSWORD })).statusCode, 204)
    }
    t.equal((await mails.final(victim)).length, count)
  })

  t.test(
    'strangers who change to an address do not use up the mails of the account that has it later',
    async t => {
      const { app, mails } = await start(t)
      const email = freshEmail()
      for (let change = 0; change < count + 2; change += 1) {
        const { token } = await signUp(app)
        const response = await changeEmail(app, token, { email, password: PASSWORD })
        t.equal(response.statusCode, 202, response.body)
      }
      await signUp(app, { email })
      const subjects = await mails.final(email)
      t.ok(subjects.includes('Confirm your e-mail address'))
      t.equal(subjects.filter(subject => subject === 'Confirm your new e-mail address').length, count)
    },
  )

  t.test('D7: an account asks ten strangers a day whether its new address is theirs', async t => {
    const clock = manualClock(Date.now())
    const app = await build(t, { clock: clock.now })
    const { token } = await signUp(app)
    const statuses: number[] = []
    for (let hour = 0; hour < 4; hour += 1) {
      for (let each = 0; each < 5; each += 1)
        statuses.push((await changeEmail(app, token, { email: freshEmail(), password: PASSWORD })).statusCode)
      clock.advance(3_600_000)
    }
    t.same(statuses, [...Array(10).fill(202), ...Array(10).fill(429)])
    clock.advance(20 * 3_600_000)
    t.equal((await changeEmail(app, token, { email: freshEmail(), password: PASSWORD })).statusCode, 202)
  })

  t.test('a stranger who invites an address does not use up the mails that tell of changes', async t => {
    const { app, mails } = await start(t)
    const stranger = await confirmedUser(app)
    const { email, token } = await signUp(app)
    const { id } = await organizationOf(app, stranger)
    for (let invitation = 0; invitation < count + 2; invitation += 1) {
      const body = { email, roles: ['member'] }
      const response = await call(
        app,
        'POST',
        `/organizations/${id}/invitations`,
        body,
        bearer(stranger.token),
      )
      t.equal(response.statusCode, 201, response.body)
    }
    const passwords = { currentPassword: PASSWORD, newPassword: `${PASSWORD}1` }
    t.equal((await call(app, 'PUT', '/account/password', passwords, bearer(token))).statusCode, 200)
    const subjects = await mails.final(email)
    t.ok(subjects.includes('Your password has been changed'))
    t.equal(subjects.filter(subject => subject === 'You are invited to an organization').length, count)
  })

  t.test('a stop loses no mail whose limit is being counted', async t => {
    const { app, mails } = await start(t)
    const { email } = await signUp(app)
    t.equal((await mails.final(email)).length, 1)
  })
})
