/** A proof of identity counts for the factors that it was judged by (docs/design.md, "Proof of identity"). */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { call, changeEmail } from '../support/account-routes.ts'
import { removeFactors } from '../support/admin-routes.ts'
import {
  addTotp,
  beginTotp,
  confirmTotp,
  ENCRYPTION_KEY,
  STEP,
  signInWith,
} from '../support/authenticator-apps.ts'
import {
  asAdmin,
  bearer,
  build as buildApp,
  freshEmail,
  manualClock,
  PASSWORD,
  signIn,
  signUp,
} from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { mailbox } from '../support/mailbox.ts'
import { register } from '../support/passkeys.ts'

await onEnginesOfRun(t, async (t, { newDatabase }) => {
  const clock = manualClock()
  const env = { PUBLIC_URL: 'http://localhost:3000', ENCRYPTION_KEY, DATABASE_URL: await newDatabase(t) }
  /** What happens on the other instance while a password is compared on the first. */
  let meanwhile: (() => Promise<unknown>) | null = null
  const hasher = {
    ...quickHashing,
    async verify(password: string, encoded: string) {
      const isRight = await quickHashing.verify(password, encoded, undefined)
      const work = meanwhile
      meanwhile = null
      await work?.()
      return isRight
    },
  }
  const app: FastifyInstance = await buildApp(t, { clock: clock.now, hasher, env })
  const other: FastifyInstance = await buildApp(t, { clock: clock.now, hasher: quickHashing, env })
  const amrOf = async (token: string) =>
    (await call(other, 'POST', '/admin/introspect', { token }, asAdmin)).json().amr
  const tokenOf = (response: { json(): { accessToken: string } }): string => response.json().accessToken

  /** Somebody with a second session, whose owner confirms an app in the first while the second sends the password. */
  const withApp = async () => {
    const { token, email } = await signUp(other)
    const { code } = await beginTotp(other, token)
    const stolen = tokenOf(await signIn(other, email))
    meanwhile = async () => t.equal((await confirmTotp(other, token, code())).statusCode, 200)
    return { token, stolen }
  }

  for (const [method, url, body] of [
    ['DELETE', '/account/totp', { password: PASSWORD }],
    ['POST', '/account/reauthenticate', { password: PASSWORD }],
    ['POST', '/account/api-keys', { name: 'k', password: PASSWORD }],
    ['PUT', '/account/email', { email: freshEmail(), password: PASSWORD }],
    ['DELETE', '/account', { password: PASSWORD }],
    ['PUT', '/account/password', { currentPassword: PASSWORD, newPassword: `${PASSWORD} 2` }],
  ] as const)
    t.test(
      `a password that was sent before an app was added does not suffice for ${method} ${url}`,
      async t => {
        const { token, stolen } = await withApp()
        const response = await call(app, method, url, body, bearer(stolen))
        t.ok([401, 403].includes(response.statusCode), `${response.statusCode}`)
        t.equal((await call(other, 'GET', '/account', undefined, bearer(token))).statusCode, 200)
        const again = await call(other, 'DELETE', '/account/totp', undefined, bearer(stolen))
        t.ok([401, 403].includes(again.statusCode), 'nor later')
        meanwhile = null
      },
    )

  t.test('a factor that is removed while the password changes gives the new session nothing', async t => {
    const { id, token, email } = await signUp(other)
    const { code } = await addTotp(other, token)
    clock.advance(STEP)
    const session = tokenOf(await signInWith(other, email, code()))
    t.same(await amrOf(session), ['pwd', 'otp', 'mfa'])
    meanwhile = async () => t.equal((await removeFactors(other, id)).statusCode, 204)
    const change = { currentPassword: PASSWORD, newPassword: `${PASSWORD} 2` }
    const changed = await call(app, 'PUT', '/account/password', change, bearer(session))
    if (changed.statusCode === 200) t.notOk((await amrOf(tokenOf(changed))).includes('mfa'))
    else t.equal(changed.statusCode, 401)
  })

  t.test('a removed way to sign in is no first factor of the sessions that it has opened', async t => {
    const { token, email } = await signUp(other)
    const { code } = await addTotp(other, token)
    clock.advance(STEP)
    const session = tokenOf(await signInWith(other, email, code()))
    await register(other, session)
    t.equal((await call(other, 'DELETE', '/account/password', undefined, bearer(session))).statusCode, 204)
    t.notOk((await amrOf(session))?.length)
    clock.advance(STEP)
    const proof = { code: code() }
    t.equal((await call(other, 'POST', '/account/reauthenticate', proof, bearer(session))).statusCode, 204)
    t.notOk((await amrOf(session))?.includes('mfa'), 'one app is one factor')
  })

  t.test(
    'removing the password ends a pending change of the e-mail, and other sessions on request',
    async t => {
      const { token, email } = await signUp(other)
      await register(other, token)
      const stolen = tokenOf(await signIn(other, email))
      const target = freshEmail()
      t.equal((await changeEmail(other, stolen, { email: target })).statusCode, 202)
      const link = await mailbox(other).token(target, 'emailChange')
      const removed = await call(
        other,
        'DELETE',
        '/account/password?endOthers=true',
        undefined,
        bearer(token),
      )
      t.equal(removed.statusCode, 204)
      t.equal((await call(other, 'GET', '/account', undefined, bearer(stolen))).statusCode, 401)
      t.equal(
        (await call(other, 'POST', '/account/verify-email', { token: link }, bearer(token))).statusCode,
        400,
      )
    },
  )
})
