/** What ends an API key, and what does not (docs/design.md, "Machine callers"). */
import t from 'tap'
import { call, changeEmail, forgot, remove, reset, verify } from '../support/account-routes.ts'
import { deleteUser } from '../support/admin-routes.ts'
import { createKey, listKeys, postKey } from '../support/api-keys.ts'
import {
  accountStatus,
  asAdmin,
  bearer,
  freshEmail,
  manualClock,
  PASSWORD,
  signIn,
  signUp,
  updateUser,
} from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt } from '../support/error-response.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { mailbox } from '../support/mailbox.ts'

const DAY = 86_400_000
const OTHER_PASSWORD = 'another pass phrase of some length'

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  t.test('a key works until the millisecond before `expiresAt`, warm and cold', async t => {
    const clock = manualClock()
    const DATABASE_URL = await newDatabase(t)
    const options = { clock: clock.now, env: { DATABASE_URL }, hasher: quickHashing }
    const app = await build(t, options)
    const user = await signUp(app)
    const expiresAt = new Date(clock.now() + DAY).toISOString()
    const { token, apiKey } = await createKey(app, user.token, { expiresAt })
    t.equal(apiKey.expiresAt, expiresAt)
    const offset = await createKey(app, user.token, { expiresAt: expiresAt.replace('Z', '+00:00') })
    t.equal(offset.apiKey.expiresAt, expiresAt, 'times of any zone')
    t.equal((await createKey(app, user.token, { expiresAt: null })).apiKey.expiresAt, null)
    t.equal(await accountStatus(app, token), 200)
    clock.advance(DAY - 1)
    const other = await build(t, options)
    t.equal(await accountStatus(app, token), 200, 'cached, a millisecond before')
    t.equal(await accountStatus(other, token), 200, 'looked up')
    clock.advance(1)
    const cold = await build(t, options)
    for (const [title, instance] of Object.entries({ app, other, cold })) {
      t.equal(await accountStatus(instance, token), 401, `${title}: expired`)
      t.equal((await instance.inject({ url: '/health', headers: bearer(token) })).statusCode, 200)
    }
    const response = await app.inject({ url: '/account', headers: bearer(token) })
    t.equal(response.headers['www-authenticate'], 'Bearer error="invalid_token"')
    errorsAt(t, await postKey(app, (await signIn(app, user.email)).json().accessToken, { expiresAt }), 400, [
      'expiresAt',
    ])
  })

  t.test('a key without `expiresAt` outlives every session', async t => {
    const clock = manualClock()
    const app = await build(t, {
      clock: clock.now,
      env: { SESSION_IDLE: '1h', SESSION_LIFETIME: '1d' },
      hasher: quickHashing,
    })
    const user = await signUp(app)
    const { token } = await createKey(app, user.token)
    for (const days of [2, 400, 4_000]) {
      clock.advance(days * DAY)
      t.equal(await accountStatus(app, token), 200, `after ${days} more days`)
      t.equal(await accountStatus(app, user.token), 401)
    }
  })

  const app = await build(t, { hasher: quickHashing })
  const mails = mailbox(app)
  const withKey = async () => {
    const user = await signUp(app)
    return { ...user, key: (await createKey(app, user.token)).token }
  }

  t.test('a disabled user has no keys; enabling restores them', async t => {
    const { id, email, key } = await withKey()
    t.equal(await accountStatus(app, key), 200)
    t.equal((await updateUser(app, id, { disabled: true })).statusCode, 200)
    t.equal(await accountStatus(app, key), 401)
    t.equal((await updateUser(app, id, { disabled: false })).statusCode, 200)
    t.equal(await accountStatus(app, key), 200, 'unlike sessions, which have ended')
    t.equal((await listKeys(app, (await signIn(app, email)).json().accessToken)).length, 1)
  })

  t.test('a deleted user has no keys, also with the same e-mail or id again', async t => {
    const own = await withKey()
    t.equal((await remove(app, own.token, { password: PASSWORD })).statusCode, 204)
    t.equal(await accountStatus(app, own.key), 401)
    const heir = await signUp(app, { email: own.email })
    t.equal(await accountStatus(app, own.key), 401)
    t.strictSame(await listKeys(app, heir.token), [])

    const other = await withKey()
    const line = JSON.stringify({ id: other.id, email: other.email })
    t.equal((await deleteUser(app, other.id)).statusCode, 204)
    t.equal(await accountStatus(app, other.key), 401)
    const imported = await app.inject({
      method: 'POST',
      url: '/admin/users/import',
      headers: { ...asAdmin, 'content-type': 'application/x-ndjson' },
      payload: `${line}\n`,
    })
    t.match(imported.body, '"status":"created"')
    t.equal(await accountStatus(app, other.key), 401, 'imported again with the same id')
  })

  t.test('a new password, another e-mail and the end of sessions keep the keys', async t => {
    const { id, email, token, key } = await withKey()
    // A reset of an account whose e-mail was never verified removes its keys (docs/design.md, "Account life cycle").
    t.equal((await verify(app, await mails.token(email, 'verification'))).statusCode, 200)
    const changed = await call(
      app,
      'PUT',
      '/account/password',
      { currentPassword: PASSWORD, newPassword: OTHER_PASSWORD },
      bearer(token),
    )
    t.equal(changed.statusCode, 200)
    t.equal(await accountStatus(app, key), 200, 'password change')

    await forgot(app, email)
    const resetToken = await mails.token(email, 'passwordReset')
    t.equal((await reset(app, resetToken, PASSWORD)).statusCode, 200)
    t.equal(await accountStatus(app, key), 200, 'password reset')

    const session: string = (await signIn(app, email)).json().accessToken
    const address = freshEmail('moved')
    t.equal((await changeEmail(app, session, { password: PASSWORD, email: address })).statusCode, 202)
    t.equal((await verify(app, await mails.token(address, 'emailChange'))).statusCode, 200)
    t.match((await app.inject({ url: '/account', headers: bearer(key) })).json(), { id, email: address })

    const end = await call(app, 'DELETE', '/account/sessions?scope=all', undefined, bearer(session))
    t.equal(end.statusCode, 204)
    t.equal(await accountStatus(app, session), 401)
    t.equal(await accountStatus(app, key), 200, 'the end of all sessions')
    await app.inject({ method: 'DELETE', url: `/admin/users/${id}/sessions`, headers: asAdmin })
    t.equal(await accountStatus(app, key), 200, 'the end of all sessions by an administrator')
  })
})
