/** DELETE /account (docs/design.md, "Account life cycle"): access ends and personal data is erased. */
import t from 'tap'
import { accountOf, call, changeEmail, forgot, remove, reset, verify } from '../support/account-routes.ts'
import { allEvents, deleteUser, factorsOf, impersonate } from '../support/admin-routes.ts'
import { createKey } from '../support/api-keys.ts'
import { addTotp } from '../support/authenticator-apps.ts'
import {
  accountStatus,
  asAdmin,
  bearer,
  cookie,
  freshEmail,
  logCapture,
  PASSWORD,
  type SignedUp,
  signIn,
  signUp,
  updateUser,
} from '../support/build.ts'
import { importAll } from '../support/bulk-users.ts'
import { codesOf, EMAIL_CODES, signInByCode } from '../support/email-codes.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { hasToken, mailbox } from '../support/mailbox.ts'
import {
  creationOptions,
  ENV as PASSKEYS,
  postPasskey,
  register,
  signInWith as signInByPasskey,
} from '../support/passkeys.ts'
import { SoftwareAuthenticator } from '../support/software-authenticator.ts'
import { storedRows } from '../support/stored-rows.ts'
import { until } from '../support/until.ts'

const NEW = 'another long pass phrase 8'
const SECOND = 1_000

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const app = await build(t, { hasher: quickHashing })
  const mails = mailbox(app)

  const search = (email: string) =>
    call(app, 'GET', `/admin/users?count=true&email=${encodeURIComponent(email)}`, undefined, asAdmin)

  t.test('deletion ends all access and frees the e-mail', async t => {
    const user = await signUp(app)
    const second = (await signIn(app, user.email)).json().accessToken
    for (const token of [user.token, second]) t.equal(await accountStatus(app, token), 200)
    const response = await remove(app, user.token, { password: PASSWORD })
    t.strictSame([response.statusCode, response.body], [204, ''])
    for (const token of [user.token, second, user.token]) t.equal(await accountStatus(app, token), 401)
    t.equal((await remove(app, user.token, { password: PASSWORD })).statusCode, 401)
    t.equal((await signIn(app, user.email)).statusCode, 401)
    t.match((await search(user.email)).json(), { results: [], total: 0 })
    const listed = (await call(app, 'GET', '/admin/users?limit=100', undefined, asAdmin)).json().results
    t.notOk(listed.some(({ id }: { id: string }) => id === user.id))
    globalErrorOf(t, await call(app, 'GET', `/admin/users/${user.id}`, undefined, asAdmin), 404)
    globalErrorOf(t, await updateUser(app, user.id, { firstName: 'Ann' }), 404)
    const [notice] = await mails.to(user.email, 'accountDeleted')
    t.notOk(notice && hasToken(notice))

    const anew = await signUp(app, { email: user.email, password: NEW })
    t.not(anew.id, user.id, 'a new account is another one')
    t.equal(await accountStatus(app, user.token), 401, 'to which old tokens are nothing')
    t.equal((await signIn(app, user.email)).statusCode, 401, 'nor the old password')
    t.match(await accountOf(app, anew.token), { emailVerified: false, firstName: null })
    t.equal((await search(user.email)).json().total, 1)
  })

  t.test('other users do not see a deleted user', async t => {
    const [user, other] = [await signUp(app, { firstName: 'Xanthippe' }), await signUp(app)]
    const found = () => call(app, 'GET', '/users?search=xanthippe', undefined, bearer(other.token))
    t.equal((await found()).json().results.length, 1)
    await remove(app, user.token, { password: PASSWORD })
    t.equal((await found()).json().results.length, 0)
    t.equal(await accountStatus(app, other.token), 200)
  })

  t.test('the cookie is cleared with its own attributes', async t => {
    for (const NODE_ENV of ['development', 'production']) {
      const app = await build(t, { hasher: quickHashing, env: { NODE_ENV } })
      const [user, other] = [await signUp(app), await signUp(app)]
      const removed = await call(app, 'DELETE', '/account', { password: PASSWORD }, cookie(user.token))
      const signedOut = await call(app, 'POST', '/account/sign-out', undefined, cookie(other.token))
      t.equal(removed.statusCode, 204)
      t.match(removed.headers['set-cookie'], /^ACCESS_TOKEN=;/)
      t.strictSame(removed.headers['set-cookie'], signedOut.headers['set-cookie'], NODE_ENV)
    }
  })

  t.test('a wrong password or invalid input is rejected and changes nothing', async t => {
    const user = await signUp(app)
    const rejections: [object, string[]][] = [
      [{ password: 'not the pass phrase' }, ['password']],
      [{ password: '' }, ['password']],
      [{ password: 7 }, ['password']],
      [{ password: PASSWORD, sure: true }, ['sure']],
    ]
    for (const [payload, fields] of rejections)
      errorsAt(t, await remove(app, user.token, payload), 400, fields)
    globalErrorOf(t, await call(app, 'DELETE', '/account', { password: PASSWORD }), 401)
    const headers = { ...cookie(user.token), 'sec-fetch-site': 'cross-site' }
    globalErrorOf(t, await call(app, 'DELETE', '/account', { password: PASSWORD }, headers), 403)
    t.equal(await accountStatus(app, user.token), 200)
    t.equal((await search(user.email)).json().total, 1)
  })

  t.test('mailed tokens work neither for the deleted account nor for a new one', async t => {
    const user = await signUp(app)
    const newEmail = freshEmail('new')
    await changeEmail(app, user.token, { email: newEmail, password: PASSWORD })
    await forgot(app, user.email)
    const verification = await mails.token(user.email, 'verification')
    const change = await mails.token(newEmail, 'emailChange')
    const forReset = await mails.token(user.email, 'passwordReset')
    await remove(app, user.token, { password: PASSWORD })
    const anew = await signUp(app, { email: user.email })
    for (const token of [verification, change]) errorsAt(t, await verify(app, token), 400, ['token'])
    errorsAt(t, await reset(app, forReset, NEW), 400, ['token'])
    t.match(await accountOf(app, anew.token), { email: user.email, emailVerified: false })
  })

  t.test('L18: nothing of a deleted user attaches to the next with the same address or id', async t => {
    const DATABASE_URL = await newDatabase(t)
    const app = await build(t, { hasher: quickHashing, env: { ...PASSKEYS, ...EMAIL_CODES, DATABASE_URL } })
    const mails = mailbox(app)
    const codes = codesOf(app)
    const heirs: Record<string, (former: SignedUp) => Promise<void>> = {
      'the address': async ({ email }) => {
        await signUp(app, { email, password: NEW })
      },
      'the address and the id': async ({ email, id }) => {
        const passwordHash = await quickHashing.hash(NEW)
        t.match(await importAll(app, [{ id, email, passwordHash }]), [{ status: 'created', id }])
      },
    }
    for (const [again, create] of Object.entries(heirs)) {
      const former = await signUp(app)
      const { email, id } = former
      const totp = await addTotp(app, former.token)
      const { authenticator } = await register(app, former.token)
      const key = await createKey(app, former.token)
      const impersonated = (await impersonate(app, id)).json().accessToken
      const newEmail = freshEmail('new')
      await changeEmail(app, former.token, { email: newEmail, password: PASSWORD })
      await forgot(app, email)
      const tokens = [
        await mails.token(email, 'verification'),
        await mails.token(newEmail, 'emailChange'),
        await mails.token(email, 'passwordReset'),
      ]
      const code = await codes.request(email)
      const pending = (await creationOptions(app, former.token)).json()
      const known = (await allEvents(app, { userId: id })).map(event => event.id)
      for (const token of [former.token, key.token, impersonated])
        t.equal(await accountStatus(app, token), 200)
      t.equal((await deleteUser(app, id)).statusCode, 204)

      await create(former)
      for (const token of [former.token, key.token, impersonated])
        t.equal(await accountStatus(app, token), 401)
      t.equal((await signInByPasskey(app, authenticator)).statusCode, 401, `${again}: passkey`)
      t.equal((await signIn(app, email)).statusCode, 401, `${again}: password`)
      errorsAt(t, await signInByCode(app, email, code), 401, ['emailCode'])
      for (const token of tokens) {
        errorsAt(t, await verify(app, token), 400, ['token'])
        errorsAt(t, await reset(app, token, NEW), 400, ['token'])
      }
      const signedIn = await signIn(app, email, NEW)
      t.equal(signedIn.statusCode, 200, `${again}: no code of the former app is asked for`)
      const { accessToken, user } = signedIn.json()
      t.match(user, { email, firstName: null, emailVerified: false })
      t.same(await factorsOf(app, user.id), [])
      const proof = await call(
        app,
        'POST',
        '/account/reauthenticate',
        { code: totp.recoveryCodes[0] },
        bearer(accessToken),
      )
      errorsAt(t, proof, 400, ['code'])
      const credential = new SoftwareAuthenticator().create(pending)
      errorsAt(t, await postPasskey(app, accessToken, { credential }), 400, ['credential'])
      for (const list of ['sessions', 'api-keys', 'passkeys']) {
        const { results } = (
          await call(app, 'GET', `/account/${list}`, undefined, bearer(accessToken))
        ).json()
        t.same(
          results.filter(({ createdAt }: { createdAt: string }) => createdAt < user.createdAt),
          [],
          `${again}: ${list}`,
        )
      }
      const events = await allEvents(app, { userId: user.id })
      const inherited = events.filter(({ id }) => known.includes(id))
      t.equal(inherited.length, user.id === id ? known.length : 0, `${again}: events belong to the id`)
      const addresses = inherited.filter(({ ip, actor }) => ip !== null && actor.type !== 'adminKey')
      t.same(addresses, [])
    }
  })

  t.test('personal data is erased from every table, and no table contains a token or a password', async t => {
    const DATABASE_URL = await newDatabase(t)
    const app = await build(t, { hasher: quickHashing, env: { DATABASE_URL } })
    const mails = mailbox(app)
    const names = { firstName: 'Wilhelmina', lastName: 'Featherstonehaugh' }
    const user = await signUp(app, { email: freshEmail('quetzalcoatl'), ...names })
    const headers = { ...bearer(user.token), 'user-agent': 'Canary/7.1' }
    await call(app, 'POST', '/account/sign-in', { email: user.email, password: PASSWORD }, headers)
    const newEmail = freshEmail('tezcatlipoca')
    await changeEmail(app, user.token, { email: newEmail, password: PASSWORD })
    await forgot(app, user.email)
    const secrets = [
      await mails.token(user.email, 'verification'),
      await mails.token(newEmail, 'emailChange'),
      await mails.token(user.email, 'passwordReset'),
      user.token,
      PASSWORD,
    ]
    const before = await storedRows(DATABASE_URL)
    t.match(before, /quetzalcoatl/)
    for (const secret of secrets) t.notOk(before.includes(secret), 'a secret as it is')
    t.equal((await remove(app, user.token, { password: PASSWORD })).statusCode, 204)
    await app.close()
    const after = await storedRows(DATABASE_URL)
    t.notMatch(after, /quetzalcoatl|tezcatlipoca|wilhelmina|featherstonehaugh|canary/i)
  })

  t.test('another instance rejects the deleted user within a second', async t => {
    const DATABASE_URL = await newDatabase(t)
    const options = { hasher: quickHashing, env: { DATABASE_URL } }
    const [one, two] = [await build(t, options), await build(t, options)]
    for (let round = 0; round < 5; round += 1) {
      const user = await signUp(one)
      t.equal(await accountStatus(two, user.token), 200)
      t.equal((await remove(one, user.token, { password: PASSWORD })).statusCode, 204)
      t.equal(await accountStatus(one, user.token), 401, 'here at once')
      const there = await until(
        () => accountStatus(two, user.token),
        status => status === 401,
        SECOND,
      )
      t.equal(there, 401, 'there for requests that begin a second later')
      t.equal((await signIn(two, user.email)).statusCode, 401)
    }
  })

  t.test('no log line contains a password, a token or an address', async t => {
    const log = logCapture()
    const env = { LOG_LEVEL: 'trace', LOG_REQUESTS: 'on' }
    const app = await build(t, { hasher: quickHashing, env, logStream: log.stream })
    const user = await signUp(app)
    const email = freshEmail('canary')
    for (const password of [NEW, PASSWORD]) await changeEmail(app, user.token, { email, password })
    const change = await mailbox(app).token(email, 'emailChange')
    for (const password of [NEW, PASSWORD]) await remove(app, user.token, { password })
    await app.close()
    t.ok(log.records().length > 5)
    for (const secret of [NEW, PASSWORD, user.token, change, email]) t.notOk(log.text().includes(secret))
  })
})
