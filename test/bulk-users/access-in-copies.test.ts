/**
 * Repeated `npm run cli -- copy` while both services run: of each kind of access the later change wins, in both directions
 * (docs/design.md, "Storage").
 */
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { accountOf, call, changeEmail, forgot, reset } from '../support/account-routes.ts'
import { createKey, listKeys } from '../support/api-keys.ts'
import {
  addTotp,
  beginTotp,
  confirmTotp,
  ENCRYPTION_KEY,
  STEP,
  signInWith,
} from '../support/authenticator-apps.ts'
import {
  accountStatus,
  asAdmin,
  bearer,
  build,
  freshEmail,
  manualClock,
  PASSWORD,
  type SignedUp,
  signIn,
  signUp,
  temporaryFolder,
  updateUser,
} from '../support/build.ts'
import { copyHere } from '../support/copy-runs.ts'
import { codesOf, EMAIL_CODES, signInByCode } from '../support/email-codes.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { mailbox } from '../support/mailbox.ts'
import { ENV, listPasskeys, register, signInWith as signInWithPasskey } from '../support/passkeys.ts'
import { newDatabase } from '../support/postgres.ts'
import { execute } from '../support/stored-rows.ts'
import { until } from '../support/until.ts'

const NEW = 'another long pass phrase 8'
const THIRD = 'a third long pass phrase 9'
const MINUTE = 60_000

const services = async (t: Test) => {
  const clock = manualClock()
  const file = join(temporaryFolder(t), 'test.db')
  const url = await newDatabase(t)
  const start = (DATABASE_URL: string) =>
    build(t, {
      clock: clock.now,
      hasher: quickHashing,
      env: { ...ENV, ...EMAIL_CODES, ENCRYPTION_KEY, DATABASE_URL },
    })
  const source = await start(`sqlite:${file}`)
  const target = await start(url)
  /** Copies a minute after what happened before. */
  const copy = () => {
    clock.advance(MINUTE)
    return copyHere(file, url)
  }
  return { clock, source, target, copy, file: `sqlite:${file}`, url }
}

const adminUser = async (app: FastifyInstance, { id }: Pick<SignedUp, 'id'>) =>
  (await call(app, 'GET', `/admin/users/${id}`, undefined, asAdmin)).json()

const etagOf = async (app: FastifyInstance, { id }: Pick<SignedUp, 'id'>) =>
  (await call(app, 'GET', `/admin/users/${id}`, undefined, asAdmin)).headers.etag

const rename = async (app: FastifyInstance, { id }: Pick<SignedUp, 'id'>, firstName: string) => {
  const { statusCode, body } = await updateUser(app, id, { firstName })
  if (statusCode !== 200) throw new Error(body)
}

const changePassword = async (app: FastifyInstance, token: string, from: string, to: string) => {
  const body = { currentPassword: from, newPassword: to }
  const response = await call(app, 'PUT', '/account/password', body, bearer(token))
  if (response.statusCode !== 200) throw new Error(response.body)
  return response.json().accessToken as string
}

const resetPassword = async (app: FastifyInstance, email: string, password: string): Promise<string> => {
  await forgot(app, email)
  const response = await reset(app, await mailbox(app).token(email, 'passwordReset'), password)
  if (response.statusCode !== 200) throw new Error(response.body)
  return response.json().accessToken
}

const confirm = async (app: FastifyInstance, { email, token }: SignedUp): Promise<void> => {
  const body = { token: await mailbox(app).token(email, 'verification') }
  const response = await call(app, 'POST', '/account/verify-email', body, bearer(token))
  if (response.statusCode !== 200) throw new Error(response.body)
}

const signInStatus = async (app: FastifyInstance, { email }: Pick<SignedUp, 'email'>, password = PASSWORD) =>
  (await signIn(app, email, password)).statusCode

/** The target is notified: its caches follow. */
const isEnded = async (t: Test, app: FastifyInstance, token: string, what: string) =>
  t.equal(
    await until(
      () => accountStatus(app, token),
      status => status === 401,
      5_000,
    ),
    401,
    what,
  )

const WAYS = {
  'a reset': (app: FastifyInstance, email: string) => resetPassword(app, email, NEW),
  'a mailed code': async (app: FastifyInstance, email: string): Promise<string> =>
    (await signInByCode(app, email, await codesOf(app).request(email))).json().accessToken,
}

for (const [way, empty] of Object.entries(WAYS))
  t.test(`an account that ${way} emptied in the target stays empty of what a stranger has`, async t => {
    const { clock, source, target, copy } = await services(t)
    const stranger = await signUp(source, { firstName: 'Eve' })
    const copiedKey = await createKey(source, stranger.token)
    await copy()
    t.equal(await accountStatus(target, copiedKey.token), 200)
    // Not copied yet: the emptying does not find it.
    const keys = [copiedKey, await createKey(source, stranger.token)]
    const passkey = await register(source, stranger.token)
    clock.advance(MINUTE)
    const owner = await empty(target, stranger.email)
    const before = await adminUser(target, stranger)

    for (const round of [1, 2]) {
      clock.advance(MINUTE)
      await rename(source, stranger, `Eve ${round}`)
      keys.push(await createKey(source, stranger.token))
      const second = (await signIn(source, stranger.email)).json().accessToken
      t.match(await copy(), { changed: 1, conflicts: 0 })
      for (const token of [stranger.token, second, ...keys.map(({ token }) => token)])
        await isEnded(t, target, token, 'a session or key')
      t.equal((await signInWithPasskey(target, passkey.authenticator)).statusCode, 401, 'a passkey')
      t.equal(await signInStatus(target, stranger), 401, 'the password')
    }
    await addTotp(source, await changePassword(source, stranger.token, PASSWORD, THIRD))
    await copy()

    const { emailVerified, methods } = before
    t.match(await adminUser(target, stranger), { firstName: 'Eve 2', emailVerified, methods, factors: [] })
    t.equal(emailVerified, true)
    t.equal(await signInStatus(target, stranger, THIRD), 401, 'a password that the stranger set later')
    t.equal(await accountStatus(target, owner), 200, 'the owner stays in')
    t.same([await listPasskeys(target, owner), await listKeys(target, owner)], [[], []])
    if (way === 'a reset') t.equal(await signInStatus(target, stranger, NEW), 200)
  })

t.test('an account that is emptied in the source is emptied in the target', async t => {
  const { clock, source, target, copy } = await services(t)
  const stranger = await signUp(source)
  await copy()
  const key = await createKey(target, stranger.token)
  const passkey = await register(target, stranger.token)
  clock.advance(MINUTE)
  const owner = await resetPassword(source, stranger.email, NEW)
  const own = await createKey(source, owner)
  clock.advance(MINUTE)
  const changed = await changePassword(target, stranger.token, PASSWORD, THIRD)
  await addTotp(target, changed)
  await rename(target, stranger, 'Later')
  await copy()

  for (const token of [stranger.token, changed, key.token])
    await isEnded(t, target, token, 'a session or key')
  t.equal((await signInWithPasskey(target, passkey.authenticator)).statusCode, 401)
  for (const password of [PASSWORD, THIRD]) t.equal(await signInStatus(target, stranger, password), 401)
  t.match(await adminUser(target, stranger), { emailVerified: true, firstName: 'Later', factors: [] })
  t.equal(await accountStatus(target, own.token), 200, 'a key that the owner has added since')
  t.equal(await signInStatus(target, stranger, NEW), 200)
})

t.test('what owners add in a source that has confirmed their e-mail is copied', async t => {
  const { clock, source, target, copy, file } = await services(t)
  const user = await signUp(source)
  const owner = await resetPassword(source, user.email, NEW)
  await copy()
  // The target keeps the events that the source no longer has.
  await execute(file, 'DELETE FROM events')
  clock.advance(MINUTE)
  const later = await changePassword(source, owner, NEW, THIRD)
  const key = await createKey(source, later)
  await copy()
  t.equal(await signInStatus(target, user, THIRD), 200)
  t.equal(await signInStatus(target, user, NEW), 401)
  t.equal(await accountStatus(target, key.token), 200)
})

t.test('a password that was removed in the target stays removed', async t => {
  const { clock, source, target, copy } = await services(t)
  const user = await signUp(source)
  await confirm(source, user)
  await register(source, user.token)
  await copy()
  const { statusCode } = await call(target, 'DELETE', '/account/password', {}, bearer(user.token))
  t.equal(statusCode, 204)
  clock.advance(MINUTE)
  await rename(source, user, 'Later')
  await copy()
  t.match(await adminUser(target, user), { firstName: 'Later', methods: ['passkey'] })
  t.equal(await signInStatus(target, user), 401)
  clock.advance(MINUTE)
  await changePassword(source, user.token, PASSWORD, NEW)
  await copy()
  t.equal(await signInStatus(target, user, NEW), 200)
  t.match(await adminUser(target, user), { methods: ['password', 'passkey'] }, 'set later in the source')
})

t.test('a password that was reset in the source replaces that of a target that changed later', async t => {
  const { clock, source, target, copy } = await services(t)
  const user = await signUp(source)
  await confirm(source, user)
  await copy()
  const thief = (await signIn(target, user.email)).json().accessToken
  await resetPassword(source, user.email, NEW)
  clock.advance(MINUTE)
  await rename(target, user, 'Later')
  const late = (await signIn(target, user.email)).json().accessToken
  const etag = await etagOf(target, user)
  t.match(await copy(), { changed: 1, newerInTarget: 0 })

  t.equal(await signInStatus(target, user), 401, 'the old password')
  for (const token of [user.token, thief, late])
    await isEnded(t, target, token, 'a session of the old password')
  t.equal(await signInStatus(target, user, NEW), 200)
  t.match(await adminUser(target, user), { firstName: 'Later' })
  t.not(await etagOf(target, user), etag, 'another version')
  t.match(await copy(), { changed: 0, newerInTarget: 1 })
  t.equal(await signInStatus(target, user, NEW), 200)
})

t.test('a disabling in the source disables in a target that changed later', async t => {
  const { clock, source, target, copy } = await services(t)
  const user = await signUp(source)
  await copy()
  const session = (await signIn(target, user.email)).json().accessToken
  await updateUser(source, user.id, { disabled: true })
  clock.advance(MINUTE)
  await rename(target, user, 'Later')
  await copy()
  await isEnded(t, target, session, 'a session of the target')
  t.match(await adminUser(target, user), { disabled: true, firstName: 'Later' })
})

t.test('sessions that another factor ended in the source end in a target that changed later', async t => {
  const { clock, source, target, copy } = await services(t)
  const user = await signUp(source)
  const other = (await signIn(source, user.email)).json().accessToken
  await copy()
  t.equal(await accountStatus(target, other), 200)
  const begun = await beginTotp(source, user.token)
  t.equal((await confirmTotp(source, user.token, begun.code(), '?endOthers=true')).statusCode, 200)
  clock.advance(MINUTE)
  await rename(target, user, 'Later')
  await copy()
  await isEnded(t, target, other, 'a session that ended')
  t.equal(await accountStatus(target, user.token), 200)
})

t.test('an e-mail and its confirmation follow the store that changed them later', async t => {
  const { clock, source, target, copy } = await services(t)
  const [confirmed, moved, byAdmin, here, back] = [
    await signUp(source),
    await signUp(source),
    await signUp(source),
    await signUp(source),
    await signUp(source),
  ]
  await copy()
  const [next, given, later] = [freshEmail('next'), freshEmail('given'), freshEmail('later')]
  t.equal((await updateUser(target, confirmed.id, { emailVerified: true })).statusCode, 200)
  await changeEmail(target, moved.token, { email: next, password: PASSWORD })
  const token = await mailbox(target).token(next, 'emailChange')
  t.equal(
    (await call(target, 'POST', '/account/verify-email', { token }, bearer(moved.token))).statusCode,
    200,
  )
  t.equal((await updateUser(target, byAdmin.id, { email: given, emailVerified: true })).statusCode, 200)
  await confirm(source, here)
  await updateUser(target, back.id, { email: freshEmail('former'), emailVerified: true })
  clock.advance(MINUTE)
  await updateUser(source, back.id, { email: later })
  for (const user of [confirmed, moved, byAdmin]) await rename(source, user, 'Later')
  clock.advance(MINUTE)
  for (const user of [here, back]) await rename(target, user, 'Later')
  t.match(await copy(), { changed: 5, conflicts: 0 })

  const expected = [
    [confirmed, confirmed.email, true],
    [moved, next, true],
    [byAdmin, given, true],
    [here, here.email, true],
    [back, later, false],
  ] as const
  for (const [user, email, emailVerified] of expected)
    t.match(await adminUser(target, user), { email, emailVerified, firstName: 'Later' })
  t.match(await accountOf(target, moved.token), { email: next })
})

t.test('sessions of the target are never stronger than in the source, nor are raised', async t => {
  const { clock, source, target, copy } = await services(t)
  const introspect = async (app: FastifyInstance, token: string) => {
    const { amr = [], auth_time } = (await call(app, 'POST', '/admin/introspect', { token }, asAdmin)).json()
    return { amr, auth_time }
  }
  const reauthenticate = (app: FastifyInstance, token: string, body: object) =>
    call(app, 'POST', '/account/reauthenticate', body, bearer(token))
  const withApp = async () => {
    const user = await signUp(source)
    const totp = await addTotp(source, user.token)
    clock.advance(STEP)
    const { accessToken } = (await signInWith(source, user.email, totp.code())).json()
    clock.advance(STEP)
    return { ...user, totp, token: accessToken as string }
  }
  const [lowered, renamed, loweredThere, again] = [
    await withApp(),
    await withApp(),
    await withApp(),
    await withApp(),
  ]
  const without = async (app: FastifyInstance, { token, totp }: typeof lowered) =>
    call(app, 'DELETE', '/account/totp', { code: totp.recoveryCodes[0] }, bearer(token))
  await copy()
  for (const { token } of [lowered, renamed, loweredThere, again])
    t.same((await introspect(target, token)).amr, ['pwd', 'otp', 'mfa'])
  const first = (await introspect(source, again.token)).auth_time

  t.equal((await without(source, lowered)).statusCode, 204)
  t.equal((await without(source, renamed)).statusCode, 204)
  t.equal((await without(target, loweredThere)).statusCode, 204)
  clock.advance(MINUTE)
  await rename(target, renamed, 'Later')
  const proof = { password: PASSWORD, code: again.totp.code() }
  t.equal((await reauthenticate(target, again.token, proof)).statusCode, 204)
  t.not((await introspect(target, again.token)).auth_time, first)
  await copy()
  for (const { token } of [lowered, renamed, loweredThere])
    await until(
      () => introspect(target, token),
      ({ amr }) => !amr.includes('mfa'),
      5_000,
    )
  for (const { token } of [lowered, renamed]) {
    t.same(await introspect(target, token), await introspect(source, token), 'lowered in the source')
    t.notOk((await introspect(target, token)).amr.includes('mfa'))
  }
  t.notOk((await introspect(target, loweredThere.token)).amr.includes('mfa'), 'lowered in the target')
  t.same(
    await until(
      () => introspect(target, again.token),
      ({ auth_time }) => auth_time === first,
      5_000,
    ),
    { amr: ['pwd', 'otp', 'mfa'], auth_time: first },
    'the earlier proof counts',
  )
  // Last requests of the source, which are written once a second, are copied too.
  t.match(await until(copy, ({ sessions }) => sessions === 0, 5_000), { sessions: 0 })
})
