/**
 * A password reset that confirms the e-mail for the first time removes what somebody else could have added: passkeys, API keys and
 * authenticator apps (docs/design.md, "Account life cycle").
 */

import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { RATE_LIMITS } from '#core/rate-limits/limits'
import { call, forgot, reset, verify } from '../support/account-routes.ts'
import { allEvents, factorsOf } from '../support/admin-routes.ts'
import { createKey, listKeys } from '../support/api-keys.ts'
import { addTotp, ENCRYPTION_KEY, STEP, totpOf } from '../support/authenticator-apps.ts'
import {
  accountStatus,
  bearer,
  confirmedUser,
  manualClock,
  PASSWORD,
  type SignedUp,
  signIn,
  signUp,
} from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt } from '../support/error-response.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { perAddress } from '../support/limits.ts'
import { mailbox, SUBJECT } from '../support/mailbox.ts'
import { ENV, listPasskeys, register, signInWith } from '../support/passkeys.ts'
import { race, rounds } from '../support/races.ts'
import { until } from '../support/until.ts'

const NEW = 'another long pass phrase 8'

/** Milliseconds within which another instance follows (docs/design.md, "Storage"). */
const SECOND = 1_000

const access = async (app: FastifyInstance, { token }: Pick<SignedUp, 'token'>) => ({
  passkeys: [await register(app, token), await register(app, token)],
  keys: [await createKey(app, token), await createKey(app, token)],
})

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const clock = manualClock()
  const env = { ...ENV, ENCRYPTION_KEY, DATABASE_URL: await newDatabase(t) }
  const options = { hasher: quickHashing, clock: clock.now, env }
  const app = await build(t, options)
  const other = await build(t, options)
  const mails = mailbox(app)

  const resetTokenOf = async (email: string, count = 1) => {
    await forgot(app, email)
    return mails.token(email, 'passwordReset', count)
  }

  const confirmed = async () => {
    const user = await signUp(app)
    t.equal((await verify(app, await mails.token(user.email, 'verification'))).statusCode, 200)
    return user
  }

  t.test(
    'passkeys and API keys of an unconfirmed account end with the reset, also in warm caches',
    async t => {
      const [user, bystander] = [await signUp(app), await signUp(app)]
      const { passkeys, keys } = await access(app, user)
      const others = await access(app, bystander)
      const mailed = await resetTokenOf(user.email)
      for (const { token } of keys)
        for (const each of [app, other]) t.equal(await accountStatus(each, token), 200, 'cached')

      const done = await reset(app, mailed, NEW)
      const refused = await Promise.all(keys.map(({ token }) => accountStatus(app, token)))
      t.same([done.statusCode, ...refused], [200, 401, 401], 'at once')
      for (const { token } of keys) {
        const status = await until(
          () => accountStatus(other, token),
          status => status === 401,
          SECOND,
        )
        t.equal(status, 401, 'within a second on another instance')
      }
      for (const { authenticator } of passkeys)
        t.equal((await signInWith(app, authenticator)).statusCode, 401)
      const { accessToken, user: account } = done.json()
      t.equal(account.emailVerified, true)
      t.same([await listPasskeys(app, accessToken), await listKeys(app, accessToken)], [[], []])
      t.same(await factorsOf(app, user.id), [])

      t.same((await listPasskeys(app, bystander.token)).length, 2)
      for (const { token } of others.keys) t.equal(await accountStatus(app, token), 200)
      for (const { authenticator } of others.passkeys)
        t.equal((await signInWith(app, authenticator)).statusCode, 200)
    },
  )

  t.test(
    'each of them is an event of the user who reset the password, between confirmation and reset',
    async t => {
      const user = await signUp(app)
      const { passkeys, keys } = await access(app, user)
      await reset(app, await resetTokenOf(user.email), NEW)
      const events = (await allEvents(app, { userId: user.id })).toReversed()
      const last = events.slice(events.findIndex(({ type }) => type === 'email.verified'))
      const expected = [
        ['email.verified', { emptied: true }],
        ['sessions.ended', null],
        ...passkeys.map(({ id }) => ['passkey.removed', { passkey: id }]),
        ...keys.map(({ apiKey }) => ['api-key.revoked', { apiKey: apiKey.id }]),
        ['password.reset', null],
      ]
      t.same(
        last.map(({ type, details }) => [type, details]),
        expected,
      )
      for (const { actor } of last) t.match(actor, { type: 'user', id: user.id })
    },
  )

  t.test('a mail lists them, which other mails cannot use up, to users of whom it is true', async t => {
    const app = await build(t, {
      ...options,
      env: { ...ENV, ENCRYPTION_KEY, RATE_LIMIT: 'on' },
      rateLimits: { ...RATE_LIMITS, perAddress: perAddress(), perRecipient: { points: 1, seconds: 3_600 } },
    })
    const mails = mailbox(app)
    const [user, other] = [await signUp(app), await confirmedUser(app)]
    for (const each of [user, other]) await access(app, each)
    for (const { email } of [user, other]) {
      await forgot(app, email)
      await reset(app, await mails.token(email, 'passwordReset'), NEW)
    }
    const [mail] = await mails.to(user.email, 'accessRemoved')
    for (const line of ['Sessions', 'Passkeys: 2', 'API keys: 2']) t.match(mail?.text, line)
    t.notOk((await mails.final(other.email)).includes(SUBJECT.accessRemoved))
  })

  t.test('a new password of the stranger does not end the mailed ways in of the owner', async t => {
    const user = await signUp(app)
    const mailed = await resetTokenOf(user.email)
    const payload = { currentPassword: PASSWORD, newPassword: `${PASSWORD} 2` }
    const changed = await call(app, 'PUT', '/account/password', payload, bearer(user.token))
    t.equal(changed.statusCode, 200)
    t.equal((await reset(app, mailed, NEW)).statusCode, 200)
    t.equal(await accountStatus(app, changed.json().accessToken), 401)

    const own = await confirmed()
    const link = await resetTokenOf(own.email)
    t.equal((await call(app, 'PUT', '/account/password', payload, bearer(own.token))).statusCode, 200)
    errorsAt(t, await reset(app, link, NEW), 400, ['token'], 'of a confirmed account it does')
  })

  t.test('a user with a confirmed e-mail keeps passkeys and API keys', async t => {
    const user = await confirmed()
    const { passkeys, keys } = await access(app, user)
    const done = await reset(app, await resetTokenOf(user.email), NEW)
    t.equal(done.statusCode, 200)
    for (const { token } of keys) t.equal(await accountStatus(app, token), 200)
    for (const { authenticator } of passkeys) t.equal((await signInWith(app, authenticator)).statusCode, 200)
    t.same(await factorsOf(app, user.id), ['passkey'])
    const types = (await allEvents(app, { userId: user.id })).map(({ type }) => type)
    t.notOk(types.includes('passkey.removed') || types.includes('api-key.revoked'))
  })

  t.test('only the first reset removes', async t => {
    const user = await signUp(app)
    const first = await reset(app, await resetTokenOf(user.email), NEW)
    const { passkeys, keys } = await access(app, { token: first.json().accessToken })
    t.equal((await reset(app, await resetTokenOf(user.email, 2), NEW)).statusCode, 200)
    for (const { token } of keys) t.equal(await accountStatus(app, token), 200)
    for (const { authenticator } of passkeys) t.equal((await signInWith(app, authenticator)).statusCode, 200)
  })

  t.test('an authenticator app is removed too: the reset needs no code (L3)', async t => {
    const user = await signUp(app)
    await addTotp(app, user.token)
    clock.advance(STEP)
    const done = await reset(app, await resetTokenOf(user.email), NEW)
    t.equal(done.statusCode, 200)
    t.same(await factorsOf(app, user.id), [])
    t.equal((await totpOf(app, done.json().accessToken)).recoveryCodes ?? 0, 0)
    t.equal((await signIn(app, user.email, NEW)).statusCode, 200)
  })

  t.test('the app of a confirmed account stays: the reset needs its code', async t => {
    const user = await confirmed()
    const { code } = await addTotp(app, user.token)
    clock.advance(STEP)
    const mailed = await resetTokenOf(user.email)
    errorsAt(t, await reset(app, mailed, NEW), 401, ['code'])
    const payload = { token: mailed, password: NEW, code: code() }
    t.equal((await call(app, 'POST', '/account/reset-password', payload)).statusCode, 200)
    t.same(await factorsOf(app, user.id), ['totp'])
    errorsAt(t, await signIn(app, user.email, NEW), 401, ['code'])
  })

  t.test(`${rounds.length} × a key that is created during the reset does not survive it`, async t => {
    const wrong: string[] = []
    for (const round of rounds) {
      const user = await signUp(app)
      const mailed = await resetTokenOf(user.email)
      const on = round % 4 < 2 ? app : other
      const [done, created] = await race(
        round,
        () => reset(app, mailed, NEW),
        () => call(on, 'POST', '/account/api-keys', { name: 'a script' }, bearer(user.token)),
      )
      if (done.statusCode !== 200) wrong.push(`${round}: ${done.statusCode}`)
      if (created.statusCode !== 201) continue
      const { token } = created.json()
      if ((await accountStatus(app, token)) !== 401) wrong.push(`${round}: the key works`)
    }
    t.same(wrong, [])
  })
})
