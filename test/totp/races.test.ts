/** A code works once, and no sign-in passes a change of the factors (docs/design.md, "Second factors"). */
import { setImmediate } from 'node:timers/promises'
import type { LightMyRequestResponse } from 'fastify'
import t from 'tap'
import type { PasswordHasher } from '#core/passwords/hasher'
import { call } from '../support/account-routes.ts'
import { allEvents } from '../support/admin-routes.ts'
import {
  addTotp,
  beginTotp,
  confirmTotp,
  ENCRYPTION_KEY,
  STEP,
  signInWith,
} from '../support/authenticator-apps.ts'
import { accountStatus, bearer, confirmedUser, manualClock, signUp } from '../support/build.ts'
import { onEveryEngine } from '../support/engines.ts'
import { errorsAt } from '../support/error-response.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { mailbox } from '../support/mailbox.ts'

const SIGN_INS = 50
const NEW = 'another long pass phrase 8'

const digestOf = (hash: string): string | undefined => hash.split('$').at(-1)

/** What a hash is after the same password was hashed again. */
const withOtherSalt = (hash: string): string =>
  hash.replace(/[^$](?=[^$]*\$[^$]*$)/, first => (first === 'A' ? 'B' : 'A'))

/** Holds comparisons and hashes while the test asks for it, or runs something after a comparison. */
const heldHashing = () => {
  let gate = Promise.withResolvers<void>()
  gate.resolve()
  let begun = 0
  let afterVerify: (() => Promise<unknown>) | null = null
  const wait = async (): Promise<void> => {
    begun += 1
    await gate.promise
  }
  const hasher: PasswordHasher = {
    ...quickHashing,
    async hash(password) {
      await wait()
      return quickHashing.hash(password)
    },
    async verify(password, encoded) {
      await wait()
      const isRight = digestOf(await quickHashing.hash(password)) === digestOf(encoded ?? '')
      const run = afterVerify
      afterVerify = null
      await run?.()
      return isRight
    },
  }
  return {
    hasher,
    /** Starts a request, waits until it hashes, and meanwhile runs `change`. @returns the response of the request. */
    async during(
      start: () => Promise<LightMyRequestResponse>,
      change: () => Promise<LightMyRequestResponse>,
    ): Promise<LightMyRequestResponse> {
      gate = Promise.withResolvers()
      const before = begun
      const response = start()
      while (begun === before) await setImmediate()
      const changed = await change()
      if (changed.statusCode >= 300) throw new Error(`${changed.statusCode}: ${changed.body}`)
      gate.resolve()
      return response
    },
    /** Runs `work` once, between the next comparison and what follows it. */
    afterNextVerify(work: () => Promise<unknown>): void {
      afterVerify = work
    },
  }
}

await onEveryEngine(t, async (t, { name, build, newDatabase }) => {
  const clock = manualClock()
  const { hasher, during, afterNextVerify } = heldHashing()
  const options = { clock: clock.now, hasher, env: { DATABASE_URL: await newDatabase(t), ENCRYPTION_KEY } }
  const app = await build(t, options)
  const apps = name === 'postgres' ? [app, await build(t, options)] : [app]
  const mails = mailbox(app)

  const sessionsOf = async (token: string): Promise<unknown[]> =>
    (await call(app, 'GET', '/account/sessions', undefined, bearer(token))).json().results

  t.test(`of ${SIGN_INS} simultaneous sign-ins with one code one succeeds`, async t => {
    const { id, email, token } = await signUp(app)
    const { code, recoveryCodes } = await addTotp(app, token)
    clock.advance(STEP)
    for (const [round, sent] of [code(), recoveryCodes[0] ?? ''].entries()) {
      const responses = await Promise.all(
        Array.from({ length: SIGN_INS }, (_, index) =>
          signInWith(apps[index % apps.length] ?? app, email, sent),
        ),
      )
      const opened = responses.filter(({ statusCode }) => statusCode === 200)
      t.equal(opened.length, 1)
      for (const refused of responses.filter(response => !opened.includes(response)))
        t.strictSame([refused.statusCode, refused.body], [401, '{"errors":{"code":["is wrong"]}}'])
      t.equal((await sessionsOf(token)).length, 2 + round)
    }
    t.equal((await allEvents(app, { userId: id, type: 'recovery-code.used' })).length, 1)
  })

  t.test('a sign-in that is under way while an app is confirmed needs a code', async t => {
    const { email, token } = await signUp(app)
    const begun = await beginTotp(app, token)
    const confirm = () => confirmTotp(app, token, begun.code(), '?endOthers=true')
    errorsAt(t, await during(() => signInWith(app, email), confirm), 401, ['code'])
    t.equal((await sessionsOf(token)).length, 1)
  })

  t.test('and succeeds with one', async t => {
    const { email, token } = await signUp(app)
    const begun = await beginTotp(app, token)
    const signIn = () => signInWith(app, email, begun.code(1))
    t.equal((await during(signIn, () => confirmTotp(app, token, begun.code()))).statusCode, 200)
    errorsAt(t, await signIn(), 401, ['code'], 'the code is used up')
  })

  t.test('a password reset that is under way while an app is confirmed opens no session', async t => {
    const { email, token } = await confirmedUser(app)
    const begun = await beginTotp(app, token)
    await call(app, 'POST', '/account/forgot-password', { email })
    const mailed = await mails.token(email, 'passwordReset')
    const reset = (code?: string) =>
      call(app, 'POST', '/account/reset-password', { token: mailed, password: NEW, ...(code && { code }) })
    const confirm = () => confirmTotp(app, token, begun.code())
    errorsAt(t, await during(reset, confirm), 401, ['code'])
    t.equal(await accountStatus(app, token), 200, 'nothing has changed')
    errorsAt(t, await reset(), 401, ['code'])
    t.equal((await reset(begun.code(1))).statusCode, 200, 'the token is not used up')
  })

  t.test('a code stays accepted when the hash is replaced while the sign-in is under way', async t => {
    const { id, email, token } = await signUp(app)
    const { code } = await addTotp(app, token)
    clock.advance(STEP)
    const { accounts, users } = app.services.storage
    afterNextVerify(async () => {
      const former = (await users.findByEmail(email))?.passwordHash ?? ''
      await accounts.rehash(id, former, withOtherSalt(former))
    })
    t.equal((await signInWith(app, email, code())).statusCode, 200)
  })
})
