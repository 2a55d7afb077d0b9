/** Rate limits of the account routes, and five mails of a kind per hour (rate limits; docs/design.md, "Account life cycle"). */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import t from 'tap'
import { call, changeEmail, forgot, remove, resend, reset } from '../support/account-routes.ts'
import { accountStatus, bearer, freshEmail, PASSWORD, signIn, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { globalErrorOf } from '../support/error-response.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { mailbox, SUBJECT } from '../support/mailbox.ts'

const WRONG = 'not the pass phrase'
const NEW = 'another long pass phrase 8'
const limited = { hasher: quickHashing, env: { RATE_LIMIT: 'on' } }

/** Repeats a request until it is rate-limited. @returns the statuses before. */
const exhaust = async (attempt: () => Promise<LightMyRequestResponse>): Promise<number[]> => {
  const statuses: number[] = []
  for (;;) {
    const { statusCode } = await attempt()
    if (statusCode === 429) return statuses
    statuses.push(statusCode)
    if (statuses.length > 200) throw new Error('nothing was rate-limited')
  }
}

await onEnginesOfRun(t, async (t, { build }) => {
  t.test('an address may request twenty mails a minute', async t => {
    const app = await build(t, limited)
    const user = await signUp(app)
    const attempts: [string, (app: FastifyInstance) => Promise<LightMyRequestResponse>][] = [
      ['forgot-password', app => forgot(app, freshEmail())],
      ['resend', app => resend(app, user.token)],
      ['another e-mail', app => changeEmail(app, user.token, { email: freshEmail(), password: PASSWORD })],
    ]
    for (const [name, attempt] of attempts) {
      const { statusCode, headers } = await attempt(app)
      t.equal(statusCode, 202, name)
      const policies = String(headers['ratelimit-policy']).split(', ')
      t.equal(policies[0], '"mail";q=20;w=60', name)
      t.equal(policies.includes('"write";q=120;w=60'), name !== 'forgot-password', 'for users')
      t.match(headers.ratelimit, /^"mail";r=\d+;t=\d+(, "write";r=\d+;t=\d+)?$/, name)
    }
    const statuses = await exhaust(() => forgot(app, freshEmail()))
    t.strictSame(statuses, Array(16).fill(202), 'counted together, with the sign-up')
    for (const [name, attempt] of attempts) {
      const rejected = await attempt(app)
      globalErrorOf(t, rejected, 429, name)
      t.ok(Number(rejected.headers['retry-after']) > 0, name)
    }
    t.equal(await accountStatus(app, user.token), 200, 'nothing else is rejected')
    t.equal((await signIn(app, user.email)).statusCode, 200)
  })

  t.test('a stolen session cannot guess the password over any route', async t => {
    const loginThrottle: ((app: FastifyInstance, token: string) => Promise<LightMyRequestResponse>)[] = [
      (app, token) => remove(app, token, { password: WRONG }),
      (app, token) => changeEmail(app, token, { email: freshEmail(), password: WRONG }),
    ]
    for (const guess of loginThrottle) {
      const app = await build(t, limited)
      const user = await signUp(app)
      const statuses = await exhaust(() => guess(app, user.token))
      t.ok(statuses.length > 0 && statuses.length < 10 && statuses.every(status => status === 400))
      globalErrorOf(t, await remove(app, user.token, { password: PASSWORD }), 429, 'the right one waits')
      t.equal(await accountStatus(app, user.token), 200)
      t.equal((await signIn(app, user.email)).statusCode, 200, 'the owner signs in as ever')
    }
  })

  t.test('used or invalidated verification tokens still count towards five mails an hour', async t => {
    const app = await build(t, { hasher: quickHashing })
    const mails = mailbox(app)
    const user = await signUp(app)
    let { token } = user
    let password = PASSWORD
    const otherUsers = Array.from({ length: 12 }, () => freshEmail('stranger'))
    for (const [index, email] of otherUsers.entries()) {
      await changeEmail(app, token, { email, password })
      // Changing the password invalidates pending e-mail changes.
      const newPassword = `${NEW} ${index}`
      const payload = { currentPassword: password, newPassword }
      const changed = await call(app, 'PUT', '/account/password', payload, bearer(token))
      t.equal(changed.statusCode, 200)
      token = changed.json().accessToken
      password = newPassword
    }
    await mails.final(user.email)
    const kinds = (await mails.all()).map(({ subject }) => subject)
    t.equal(kinds.filter(kind => kind === SUBJECT.emailChange).length, 5)
    t.equal(kinds.filter(kind => kind === SUBJECT.emailChangeRequested).length, 5)
  })

  t.test('used reset tokens still count towards five mails an hour', async t => {
    const app = await build(t, { hasher: quickHashing })
    const mails = mailbox(app)
    const user = await signUp(app)
    for (let sent = 0; sent < 5; sent += 1) await forgot(app, user.email)
    await mails.to(user.email, 'passwordReset', 5)
    t.equal((await reset(app, await mails.token(user.email, 'passwordReset', 5), NEW)).statusCode, 200)
    for (let sent = 0; sent < 5; sent += 1) await forgot(app, user.email)
    t.equal((await mails.final(user.email)).filter(kind => kind === SUBJECT.passwordReset).length, 5)
  })
})
