/** Codes prove the identity in a session (RFC 9470; docs/design.md, "Proof of identity" and "Second factors"). */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { call } from '../support/account-routes.ts'
import { postKey } from '../support/api-keys.ts'
import { addTotp, ENCRYPTION_KEY, STEP, totpOf } from '../support/authenticator-apps.ts'
import { bearer, manualClock, PASSWORD, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt } from '../support/error-response.ts'

const TEN_MINUTES = 600_000
const WRONG = 'not the pass phrase'

const renew = (app: FastifyInstance, token: string, proof: object) =>
  call(app, 'POST', '/account/reauthenticate', proof, bearer(token))

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const clock = manualClock()
  const app = await build(t, {
    clock: clock.now,
    env: { DATABASE_URL: await newDatabase(t), ENCRYPTION_KEY },
  })

  /** A user whose sign-in is no recent one any more. */
  const withApp = async () => {
    const user = await signUp(app)
    const added = await addTotp(app, user.token)
    clock.advance(TEN_MINUTES + STEP)
    return { ...user, ...added }
  }

  t.test('a code or a recovery code proves it for ten minutes, with the password or without', async t => {
    const { token, code, recoveryCodes } = await withApp()
    const proofs = [
      () => ({ code: code() }),
      () => ({ code: recoveryCodes[0] }),
      () => ({ password: PASSWORD, code: code() }),
    ]
    for (const proof of proofs) {
      t.equal((await postKey(app, token)).statusCode, 403)
      t.equal((await renew(app, token, proof())).statusCode, 204)
      t.equal((await postKey(app, token)).statusCode, 201)
      clock.advance(TEN_MINUTES + 1)
    }
    t.match(await totpOf(app, token), { recoveryCodes: 9 })
  })

  t.test('without a code it is 400, and of both each must be right', async t => {
    const { token, code } = await withApp()
    for (const proof of [{}, { password: PASSWORD }])
      t.strictSame(errorsAt(t, await renew(app, token, proof), 400, ['code']), { code: ['is required'] })
    errorsAt(t, await renew(app, token, { password: WRONG }), 400, ['password'])
    t.strictSame(errorsAt(t, await renew(app, token, { code: code(2) }), 400, ['code']), {
      code: ['is wrong'],
    })
    errorsAt(t, await renew(app, token, { password: PASSWORD, code: code(2) }), 400, ['code'])
    errorsAt(t, await renew(app, token, { password: WRONG, code: code() }), 400, ['password'])
    t.equal((await postKey(app, token)).statusCode, 403)
    t.equal((await renew(app, token, { code: code() })).statusCode, 204, 'the wrong password used no code up')
    errorsAt(t, await renew(app, token, { code: code() }), 400, ['code'], 'once')
  })

  t.test('a code in the body proves it for one request, and no handler sees it', async t => {
    const { token, code, recoveryCodes } = await withApp()
    errorsAt(t, await postKey(app, token, { code: code(2) }), 400, ['code'])
    t.equal((await postKey(app, token, { code: code() })).statusCode, 201)
    t.equal((await postKey(app, token)).statusCode, 403)
    errorsAt(t, await postKey(app, token, { password: PASSWORD }), 400, ['code'])
    t.equal((await postKey(app, token, { code: recoveryCodes[0], password: PASSWORD })).statusCode, 201)
    const [, two, three] = recoveryCodes
    const replaced = await call(app, 'POST', '/account/recovery-codes', { code: two }, bearer(token))
    t.equal(replaced.statusCode, 200)
    errorsAt(
      t,
      await call(app, 'DELETE', '/account/totp', { code: three }, bearer(token)),
      400,
      ['code'],
      'a former one',
    )
    const { recoveryCodes: next } = replaced.json()
    t.equal((await call(app, 'DELETE', '/account/totp', { code: next[0] }, bearer(token))).statusCode, 204)
  })

  t.test('users without an app prove nothing with a code', async t => {
    const { token } = await signUp(app)
    errorsAt(t, await renew(app, token, { code: '123456' }), 400, ['code'])
    errorsAt(t, await postKey(app, token, { code: '123456' }), 400, ['code'])
  })
})
