/**
 * A request whose session or API key is revoked between the gate and its transaction changes nothing (docs/design.md, "Account life
 * cycle"); and what a sign-in reveals when the password and the account change while it hashes.
 */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import t from 'tap'
import type { PasswordHasher } from '#core/passwords/hasher'
import { accountOf, call, changeEmail, remove, resend } from '../support/account-routes.ts'
import { allEvents } from '../support/admin-routes.ts'
import { createKey } from '../support/api-keys.ts'
import {
  accountStatus,
  asAdmin,
  bearer,
  freshEmail,
  PASSWORD,
  type SignedUp,
  signIn,
  signUp,
  updateUser,
} from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { globalErrorOf } from '../support/error-response.ts'
import { quickHashing } from '../support/fake-hashing.ts'

const OTHER_PASSWORD = 'another long pass phrase 8'

type Meanwhile = () => Promise<unknown>

await onEnginesOfRun(t, async (t, { build }) => {
  /** Runs once, after the next password was verified. */
  let afterHash: Meanwhile | null = null
  const hasher: PasswordHasher = {
    ...quickHashing,
    async verify(password, encoded) {
      const isRight = await quickHashing.verify(password, encoded)
      const meanwhile = afterHash
      afterHash = null
      await meanwhile?.()
      return isRight
    },
  }
  const app = await build(t, { hasher })
  const { users, emailAddresses } = app.services
  /** Runs a change between the gate and the transaction of a request without a password. */
  const afterGate = (meanwhile: Meanwhile): void => {
    const [update, mail] = [
      users.updateOwn.bind(users),
      emailAddresses.resendVerification.bind(emailAddresses),
    ]
    const restore = (): void => {
      Object.assign(users, { updateOwn: update })
      Object.assign(emailAddresses, { resendVerification: mail })
    }
    const later =
      <Args extends unknown[], Result>(run: (...args: Args) => Promise<Result>) =>
      async (...args: Args): Promise<Result> => {
        restore()
        await meanwhile()
        return run(...args)
      }
    Object.assign(users, { updateOwn: later(update) })
    Object.assign(emailAddresses, { resendVerification: later(mail) })
  }
  const endSessions = ({ id }: SignedUp) =>
    call(app, 'DELETE', `/admin/users/${id}/sessions`, undefined, asAdmin)
  const rename = (token: string) => call(app, 'PUT', '/account', { firstName: 'Late' }, bearer(token))
  const newPassword = (app: FastifyInstance, token: string) =>
    call(
      app,
      'PUT',
      '/account/password',
      { currentPassword: PASSWORD, newPassword: OTHER_PASSWORD },
      bearer(token),
    )

  const CHANGES: Record<string, (user: SignedUp, meanwhile: Meanwhile) => Promise<LightMyRequestResponse>> = {
    'PUT /account/password': ({ token }, meanwhile) => {
      afterHash = meanwhile
      return newPassword(app, token)
    },
    'PUT /account/email': ({ token }, meanwhile) => {
      afterHash = meanwhile
      return changeEmail(app, token, { email: freshEmail('wanted'), password: PASSWORD })
    },
    'DELETE /account': ({ token }, meanwhile) => {
      afterHash = meanwhile
      return remove(app, token, { password: PASSWORD })
    },
    'PUT /account': ({ token }, meanwhile) => {
      afterGate(meanwhile)
      return rename(token)
    },
    'POST /account/verify-email/resend': ({ token }, meanwhile) => {
      afterGate(meanwhile)
      return resend(app, token)
    },
  }

  for (const [name, run] of Object.entries(CHANGES)) {
    t.test(`${name} is 401 and changes nothing when its session has ended meanwhile`, async t => {
      const user = await signUp(app, { firstName: 'Early' })
      const events = await allEvents(app, { userId: user.id })
      const response = await run(user, () => endSessions(user))
      globalErrorOf(t, response, 401)
      t.equal(response.headers['set-cookie'], undefined)
      const types = (await allEvents(app, { userId: user.id })).map(({ type }) => type)
      t.same(types, ['sessions.ended', ...events.map(({ type }) => type)])
      const signedIn = await signIn(app, user.email)
      t.equal(signedIn.statusCode, 200, 'the password is the former one')
      t.match(await accountOf(app, signedIn.json().accessToken), { firstName: 'Early', email: user.email })
    })
  }

  t.test('PUT /account is 401 when its API key was revoked meanwhile', async t => {
    const user = await signUp(app, { firstName: 'Early' })
    const { token, apiKey } = await createKey(app, user.token)
    t.equal((await rename(token)).statusCode, 200)
    afterGate(() => call(app, 'DELETE', `/account/api-keys/${apiKey.id}`, undefined, bearer(user.token)))
    globalErrorOf(t, await call(app, 'PUT', '/account', { firstName: 'Later' }, bearer(token)), 401)
    t.match(await accountOf(app, user.token), { firstName: 'Late' })
  })

  t.test('a former password is 401, also for an account that is disabled meanwhile', async t => {
    const user = await signUp(app)
    afterHash = async () => {
      t.equal((await newPassword(app, user.token)).statusCode, 200)
      t.equal((await updateUser(app, user.id, { disabled: true })).statusCode, 200)
    }
    t.equal((await signIn(app, user.email)).statusCode, 401, 'it was right when its hash was read')
    t.equal((await signIn(app, user.email, OTHER_PASSWORD)).statusCode, 403)

    const other = await signUp(app)
    afterHash = () => updateUser(app, other.id, { disabled: true })
    t.equal((await signIn(app, other.email)).statusCode, 403, 'the current password')
    t.equal(await accountStatus(app, other.token), 401)
  })
})
