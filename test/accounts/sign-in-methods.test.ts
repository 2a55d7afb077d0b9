/** Ways to sign in: which an account has, users without a password, the last way in, and what sessions remember. */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { call, changeEmail, forgot, remove, reset } from '../support/account-routes.ts'
import { allEvents, createUser, impersonate, removeFactors } from '../support/admin-routes.ts'
import { addTotp, ENCRYPTION_KEY, STEP, signInWith } from '../support/authenticator-apps.ts'
import {
  accountStatus,
  asAdmin,
  bearer,
  cookie,
  freshEmail,
  manualClock,
  PASSWORD,
  signIn,
  signUp,
  updateUser,
} from '../support/build.ts'
import { codesOf, EMAIL_CODES, signInByCode } from '../support/email-codes.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { mailbox } from '../support/mailbox.ts'
import {
  ENV as PASSKEYS,
  register,
  removePasskey,
  signInWith as signInByPasskey,
} from '../support/passkeys.ts'
import { routesTree } from '../support/project-copy.ts'
import { execute } from '../support/stored-rows.ts'

const NEW = 'six ducks left the pond'
const ELEVEN_MINUTES = 660_000

const methodsOf = async (app: FastifyInstance, token: string) => {
  const response = await call(app, 'GET', '/account/methods', undefined, bearer(token))
  return response.json().results as Record<string, unknown>[]
}

const names = (methods: readonly Record<string, unknown>[]) => methods.map(({ method }) => method)

const setPassword = (app: FastifyInstance, token: string, payload: object) =>
  call(app, 'PUT', '/account/password', payload, bearer(token))

const removePassword = (app: FastifyInstance, token: string, payload?: object) =>
  call(app, 'DELETE', '/account/password', payload, bearer(token))

const sessionsOf = async (app: FastifyInstance, token: string) =>
  (await call(app, 'GET', '/account/sessions', undefined, bearer(token))).json().results as Record<
    string,
    unknown
  >[]

const introspect = async (app: FastifyInstance, token: string) =>
  (await call(app, 'POST', '/admin/introspect', { token }, asAdmin)).json()

const adminView = async (app: FastifyInstance, id: string) =>
  (await call(app, 'GET', `/admin/users/${id}`, undefined, asAdmin)).json()

const vault = `
export default async app => {
  app.get('', { config: { factors: 2 } }, async () => ({ open: true }))
}
`
const tree = routesTree(t, { 'routes/private/vault/routes.ts': vault })

await onEnginesOfRun(t, async (t, { newDatabase }) => {
  const clock = manualClock()
  const DATABASE_URL = await newDatabase(t)
  const env = { ...PASSKEYS, ENCRYPTION_KEY, DATABASE_URL }
  const app = await tree.build(t, { clock: clock.now, hasher: quickHashing, env })
  const other = await tree.build(t, { clock: clock.now, hasher: quickHashing, env })
  const withCodes = await tree.build(t, {
    clock: clock.now,
    hasher: quickHashing,
    env: { ...env, ...EMAIL_CODES },
  })
  const mails = mailbox(app)
  const tokenOf = (response: { json(): { accessToken: string } }): string => response.json().accessToken

  /** Somebody who signs in with a passkey alone. */
  const passkeyUser = async () => {
    const user = await signUp(app)
    const passkey = await register(app, user.token)
    const removed = await removePassword(app, user.token)
    if (removed.statusCode !== 204) throw new Error(removed.body)
    return { ...user, ...passkey }
  }

  t.test('a user lists the ways to sign in and the factors; administrators see their names', async t => {
    const { id, token, email } = await signUp(app)
    const [password, ...none] = await methodsOf(app, token)
    t.match(password, { method: 'password', id: null, label: null, addedAt: null, isFactor: false })
    t.type(password?.lastUsedAt, 'string')
    t.same(none, [])
    const passkey = await register(app, token, { name: 'Laptop' })
    await addTotp(app, token)
    const listed = await methodsOf(app, token)
    t.same(names(listed), ['password', 'totp', 'recoveryCodes', 'passkey'])
    t.match(listed[1], { id: null, isFactor: true, addedAt: String })
    t.match(listed[2], { label: '10', isFactor: true })
    t.match(listed[3], { id: passkey.id, label: 'Laptop', isFactor: true, lastUsedAt: null })
    t.same((await adminView(app, id)).methods, ['password', 'passkey', 'totp'])
    t.same(names(await methodsOf(withCodes, token)).includes('emailCode'), true)
    const listOfCodes = (await methodsOf(withCodes, token)).find(({ method }) => method === 'emailCode')
    t.match(listOfCodes, { id: null, label: email, isFactor: false })
    t.equal((await call(app, 'GET', '/account/methods')).statusCode, 401)
  })

  t.test('sessions remember the method and how the user was authenticated', async t => {
    const user = await signUp(app)
    const introspected = async (token: string) => {
      const { amr, auth_time } = await introspect(app, token)
      t.equal(auth_time, Math.floor(clock.now() / 1_000))
      return amr
    }
    t.same(await introspected(user.token), ['pwd'], 'after sign-up')
    const { code } = await addTotp(app, user.token)
    clock.advance(STEP)
    const byCode = tokenOf(await signInWith(app, user.email, code()))
    t.same(await introspected(byCode), ['pwd', 'otp', 'mfa'])
    const { authenticator } = await register(app, byCode)
    const byPasskey = tokenOf(await signInByPasskey(app, authenticator))
    t.same(await introspected(byPasskey), ['pop', 'user', 'mfa'])
    t.match(await sessionsOf(app, byPasskey), [
      { method: 'passkey', amr: ['pop', 'user', 'mfa'] },
      { method: 'password', amr: ['pwd', 'otp', 'mfa'] },
      { method: 'password', amr: ['pwd'] },
    ])
    const impersonated = tokenOf(await impersonate(app, user.id))
    t.notOk('amr' in (await introspect(app, impersonated)))
    const details = (await allEvents(app, { userId: user.id, type: 'user.signed-in' })).map(
      event => event.details?.method,
    )
    t.same(details.sort(), ['passkey', 'password'])
  })

  t.test('a mailed code and a reset are methods too', async t => {
    const user = await signUp(withCodes)
    const codes = codesOf(withCodes)
    const signedIn = tokenOf(await signInByCode(withCodes, user.email, await codes.request(user.email)))
    t.match((await sessionsOf(withCodes, signedIn))[0], { method: 'emailCode', amr: ['otp'] })
    await forgot(withCodes, user.email)
    const done = await reset(withCodes, await mailbox(withCodes).token(user.email, 'passwordReset'), NEW)
    t.match(await sessionsOf(withCodes, tokenOf(done)), [{ method: 'passwordReset', amr: ['otp'] }])
  })

  t.test('the password is removed if there is another way to sign in', async t => {
    const user = await signUp(app)
    const last = globalErrorOf(t, await removePassword(app, user.token), 409)
    t.match(last, 'last way to sign in')
    t.equal((await signIn(app, user.email)).statusCode, 200, 'nothing has changed')
    const { authenticator } = await register(app, user.token)
    t.equal((await removePassword(app, user.token)).statusCode, 204)
    errorsAt(t, await signIn(app, user.email), 401, ['credentials'])
    t.ok(await mails.to(user.email, 'passwordRemoved'))
    const types = (await allEvents(app, { userId: user.id })).map(({ type }) => type)
    t.ok(types.includes('password.removed'))
    t.same((await adminView(app, user.id)).methods, ['passkey'])
    globalErrorOf(t, await removePassword(app, user.token), 404)
    t.equal((await signInByPasskey(app, authenticator)).statusCode, 200)
    for (const instance of [app, other]) t.equal(await accountStatus(instance, user.token), 200)
  })

  t.test('with mailed codes no other way is the last one', async t => {
    const user = await signUp(withCodes)
    // A code would sign in, and empty an account whose e-mail was never confirmed.
    globalErrorOf(t, await removePassword(withCodes, user.token), 409)
    await updateUser(withCodes, user.id, { emailVerified: true })
    t.equal((await removePassword(withCodes, user.token)).statusCode, 204)
    const codes = codesOf(withCodes)
    t.equal((await signInByCode(withCodes, user.email, await codes.request(user.email))).statusCode, 200)
  })

  t.test('L15: the last way to sign in stays, also of simultaneous removals on two instances', async t => {
    for (let round = 0; round < 10; round += 1) {
      const user = await signUp(app)
      const { id, authenticator } = await register(app, user.token)
      const outcomes = await Promise.all([
        removePassword(app, user.token),
        removePasskey(other, user.token, id),
      ])
      t.same(outcomes.map(({ statusCode }) => statusCode).sort(), [204, 409])
      const [password, passkey] = [await signIn(app, user.email), await signInByPasskey(app, authenticator)]
      t.same([password.statusCode, passkey.statusCode].sort(), [200, 401], 'one of them signs in')
    }
  })

  t.test('the last of two passkeys stays', async t => {
    const { token, id } = await passkeyUser()
    const second = await register(app, token)
    const outcomes = await Promise.all([
      removePasskey(app, token, id),
      removePasskey(other, token, second.id),
    ])
    t.same(outcomes.map(({ statusCode }) => statusCode).sort(), [204, 409])
  })

  t.test('a user without a password changes the account with a recent sign-in', async t => {
    const { token, email, authenticator } = await passkeyUser()
    const newEmail = freshEmail('new')
    t.equal((await changeEmail(app, token, { email: newEmail })).statusCode, 202)
    clock.advance(ELEVEN_MINUTES)
    const stale = await changeEmail(app, token, { email: newEmail })
    globalErrorOf(t, stale, 403)
    t.match(stale.headers['www-authenticate'], 'insufficient_user_authentication')
    errorsAt(t, await remove(app, token, { password: PASSWORD }), 400, ['password'])
    globalErrorOf(t, await call(app, 'POST', '/account/reauthenticate', {}, bearer(token)), 403)
    globalErrorOf(t, await setPassword(app, token, { newPassword: NEW }), 403)
    const fresh = tokenOf(await signInByPasskey(app, authenticator))
    t.equal((await setPassword(app, fresh, { newPassword: NEW })).statusCode, 200, 'a first password')
    t.equal((await signIn(app, email, NEW)).statusCode, 200)
    const again = await signIn(app, email, NEW)
    t.equal((await remove(app, tokenOf(again), {})).statusCode, 204)
  })

  t.test('a first password is wrong nowhere, and needs none before', async t => {
    const { token } = await passkeyUser()
    errorsAt(t, await setPassword(app, token, {}), 400, ['newPassword'])
    errorsAt(t, await setPassword(app, token, { newPassword: 'short' }), 400, ['newPassword'])
    const guessed = { currentPassword: PASSWORD, newPassword: NEW }
    errorsAt(t, await setPassword(app, token, guessed), 400, ['currentPassword'])
    t.equal((await setPassword(app, token, { newPassword: NEW })).statusCode, 200)
    t.equal(await accountStatus(app, token), 401, 'it ends the sessions from before')
  })

  t.test('of simultaneous first passwords one is set', async t => {
    const { token, email } = await passkeyUser()
    const outcomes = await Promise.all(
      ['the first pass phrase', 'the second pass phrase'].map(async (newPassword, index) => ({
        newPassword,
        response: await setPassword(index === 0 ? app : other, token, { newPassword }),
      })),
    )
    const set = outcomes.filter(({ response }) => response.statusCode === 200)
    t.equal(set.length, 1)
    for (const { newPassword, response } of outcomes)
      t.equal((await signIn(app, email, newPassword)).statusCode, response.statusCode === 200 ? 200 : 401)
  })

  t.test('a password change needs the current password, and of users with an app a recent proof', async t => {
    const user = await signUp(app)
    errorsAt(t, await setPassword(app, user.token, { newPassword: NEW }), 400, ['currentPassword'])
    const { code } = await addTotp(app, user.token)
    clock.advance(ELEVEN_MINUTES)
    globalErrorOf(t, await setPassword(app, user.token, { currentPassword: PASSWORD, newPassword: NEW }), 403)
    const change = { currentPassword: PASSWORD, newPassword: NEW, code: code() }
    const changed = await setPassword(app, user.token, change)
    t.equal(changed.statusCode, 200)
  })

  t.test('users whom an administrator creates or imports without a password have none', async t => {
    const { id, email } = await createUser(app, {})
    t.same((await adminView(app, id)).methods, [])
    t.equal((await signIn(app, email)).statusCode, 401)
    await forgot(app, email)
    const done = await reset(app, await mails.token(email, 'passwordReset'), NEW)
    t.equal(done.statusCode, 200, 'a reset sets the first one')
    t.same((await adminView(app, id)).methods, ['password'])
  })

  t.test('a route with factors: 2 needs two factors, which re-authentication can add', async t => {
    const user = await signUp(app)
    const open = (token: string) => call(app, 'GET', '/vault', undefined, bearer(token))
    const refused = await open(user.token)
    globalErrorOf(t, refused, 403)
    t.match(
      refused.headers['www-authenticate'],
      /^Bearer error="insufficient_user_authentication", acr_values="[^"]+"$/,
    )
    t.equal((await app.inject('/vault')).statusCode, 401)
    const { code } = await addTotp(app, user.token)
    t.equal((await open(user.token)).statusCode, 403, 'the session has not shown the factor')
    clock.advance(STEP)
    const proof = await call(app, 'POST', '/account/reauthenticate', { code: code() }, bearer(user.token))
    t.equal(proof.statusCode, 204)
    t.equal((await open(user.token)).statusCode, 200)
    t.equal((await app.inject({ url: '/vault', headers: cookie(user.token) })).statusCode, 200)
    t.equal((await other.inject({ url: '/vault', headers: cookie(user.token) })).statusCode, 200)
    const { authenticator } = await register(app, user.token)
    t.equal((await open(tokenOf(await signInByPasskey(app, authenticator)))).statusCode, 200)
  })

  t.test(
    'sessions of a 0.2.0 instance, beside which this one runs, have no method and one factor',
    async t => {
      const user = await signUp(app)
      const { code } = await addTotp(app, user.token)
      await execute(DATABASE_URL, 'UPDATE sessions SET method = NULL, amr = NULL')
      t.match((await sessionsOf(other, user.token))[0], { method: null, amr: [] })
      t.notOk('amr' in (await introspect(other, user.token)))
      const open = () => call(other, 'GET', '/vault', undefined, bearer(user.token))
      globalErrorOf(t, await open(), 403)
      const prove = async (proof: object) => {
        clock.advance(STEP)
        const body = { ...proof, code: code() }
        const response = await call(other, 'POST', '/account/reauthenticate', body, bearer(user.token))
        t.equal(response.statusCode, 204)
      }
      for (const again of ['a code', 'another code of the same app']) {
        await prove({})
        t.equal((await open()).statusCode, 403, again)
      }
      await prove({ password: PASSWORD })
      t.equal((await open()).statusCode, 200, 'with the password too')
    },
  )

  t.test('a mailed code to an account without a password removes none', async t => {
    const { id, email } = await createUser(withCodes, {})
    const codes = codesOf(withCodes)
    t.equal((await signInByCode(withCodes, email, await codes.request(email))).statusCode, 200)
    const types = (await allEvents(withCodes, { userId: id })).map(({ type }) => type)
    t.ok(types.includes('email.verified'))
    t.notOk(types.includes('password.removed'))
  })

  t.test('S11: sessions lose the second factor when it is removed', async t => {
    const user = await signUp(app)
    const { code } = await addTotp(app, user.token)
    clock.advance(STEP)
    const session = tokenOf(await signInWith(app, user.email, code()))
    const { authenticator } = await register(app, session)
    const byPasskey = tokenOf(await signInByPasskey(app, authenticator))
    const open = (token: string) => call(app, 'GET', '/vault', undefined, bearer(token))
    clock.advance(STEP)
    const removed = await call(app, 'DELETE', '/account/totp', { code: code() }, bearer(session))
    t.equal(removed.statusCode, 204)
    t.equal((await open(session)).statusCode, 403)
    t.same((await introspect(app, session)).amr, ['pwd'])
    t.equal((await open(byPasskey)).statusCode, 200, 'its own proof is still there')
    t.equal((await removeFactors(app, user.id)).statusCode, 204)
    t.equal((await open(byPasskey)).statusCode, 403)
  })

  t.test('S11: what a removed factor or method has proved leaves the sessions of other methods', async t => {
    const both = async (instance: FastifyInstance, token: string) => {
      const { amr = [] } = await introspect(instance, token)
      const own = (await sessionsOf(instance, token)).find(({ current }) => current)
      t.same(own?.amr, amr, 'the session says the same as the introspection')
      return amr
    }
    const prove = async (token: string, proof: object) => {
      const response = await call(withCodes, 'POST', '/account/reauthenticate', proof, bearer(token))
      t.equal(response.statusCode, 204)
    }
    /** A session of each method, all with a code; that of the passkey with the password too. */
    const open = async () => {
      const user = await signUp(withCodes)
      await updateUser(withCodes, user.id, { emailVerified: true })
      const { authenticator, id } = await register(withCodes, user.token)
      const { code, recoveryCodes } = await addTotp(withCodes, user.token)
      const [one, two, three] = recoveryCodes as [string, string, string]
      clock.advance(STEP)
      const byCode = await codesOf(withCodes).request(user.email)
      const sessions = {
        password: tokenOf(await signInWith(withCodes, user.email, one)),
        emailCode: tokenOf(await signInByCode(withCodes, user.email, byCode, two)),
        passkey: tokenOf(await signInByPasskey(withCodes, authenticator)),
      }
      await prove(sessions.passkey, { password: PASSWORD, code: three })
      t.same(await both(withCodes, sessions.password), ['pwd', 'otp', 'mfa'])
      t.same(await both(withCodes, sessions.emailCode), ['otp', 'mfa'])
      t.same(await both(withCodes, sessions.passkey), ['pop', 'user', 'pwd', 'otp', 'mfa'])
      return { ...user, ...sessions, passkeyId: id, code }
    }
    for (const [what, remove, left] of [
      [
        'the app',
        ({ token, code }) => call(withCodes, 'DELETE', '/account/totp', { code: code() }, bearer(token)),
        { password: ['pwd'], emailCode: ['otp'], passkey: ['pop', 'user', 'pwd', 'mfa'] },
      ],
      [
        'the passkey',
        ({ token, passkeyId }) => removePasskey(withCodes, token, passkeyId),
        { password: ['pwd', 'otp', 'mfa'], emailCode: ['otp', 'mfa'], passkey: [] },
      ],
      [
        'the password',
        ({ token }) => removePassword(withCodes, token),
        { password: [], emailCode: ['otp', 'mfa'], passkey: ['pop', 'user', 'otp', 'mfa'] },
      ],
      [
        'everything, by an administrator',
        ({ id }) => removeFactors(withCodes, id),
        { password: ['pwd'], emailCode: ['otp'], passkey: [] },
      ],
    ] as readonly [
      string,
      (user: Awaited<ReturnType<typeof open>>) => Promise<{ readonly statusCode: number }>,
      Record<'password' | 'emailCode' | 'passkey', string[]>,
    ][]) {
      const user = await open()
      t.equal((await remove(user)).statusCode, 204, what)
      for (const method of ['password', 'emailCode', 'passkey'] as const)
        t.same(await both(withCodes, user[method]), left[method], `${what}: a session by ${method}`)
    }
  })

  t.test('a route cannot declare factors where no session is known', async t => {
    const declared = (config: string) =>
      `export default async app => { app.get('', { config: ${config} }, async () => ({})) }`
    for (const [path, config, message] of [
      ['routes/public/vault/routes.ts', '{ factors: 2 }', /only private routes/],
      ['routes/private/vault/routes.ts', "{ factors: 2, scope: 'account:read' }", /API keys/],
      ['routes/private/vault/routes.ts', '{ factors: 3 }', /is not 2/],
    ] as const)
      await t.rejects(
        routesTree(t, { [path]: declared(config) }).build(t, { hasher: quickHashing, env }),
        message,
      )
  })
})
