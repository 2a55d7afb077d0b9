/**
 * Who proves a mailbox (docs/design.md, "Account life cycle"): strangers who had to do with an address do not share the account of its
 * owner.
 */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import { RATE_LIMITS } from '#core/rate-limits/limits'
import { notes } from '../../examples/notes/notes.ts'
import { accountOf, call, changeEmail, forgot, resend, reset, verify } from '../support/account-routes.ts'
import { allEvents, createUser, deleteUser, factorsOf, impersonate } from '../support/admin-routes.ts'
import { createKey, listKeys } from '../support/api-keys.ts'
import { addTotp, beginTotp, confirmTotp, STEP, totpOf } from '../support/authenticator-apps.ts'
import {
  accountStatus,
  asAdmin,
  bearer,
  cookie,
  freshEmail,
  manualClock,
  PASSWORD,
  type SignedUp,
  signIn,
  signUp,
  updateUser,
} from '../support/build.ts'
import { importAll } from '../support/bulk-users.ts'
import { codesOf, EMAIL_CODES, requestCode, signInByCode } from '../support/email-codes.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { FormClient } from '../support/form-client.ts'
import { perAddress } from '../support/limits.ts'
import { mailbox } from '../support/mailbox.ts'
import { creationOptions, ENV, listPasskeys, postPasskey, register, signInWith } from '../support/passkeys.ts'
import { SoftwareAuthenticator } from '../support/software-authenticator.ts'
import { execute } from '../support/stored-rows.ts'

const NEW = 'another long pass phrase 8'
const WRONG = 'not the pass phrase'
const DAY = 86_400_000

/** Waits whose end no test sees, and no limit for addresses. */
const RATE_LIMITS_OF_ACCOUNTS = {
  ...RATE_LIMITS,
  perAddress: perAddress(),
  loginThrottle: { freeAttempts: 5, window: 900, initialDelay: 600, maxDelay: 900 },
}

/** Confirms with nothing but the mailbox, unless `headers` or `proof` say otherwise. */
const confirm = (app: FastifyInstance, token: string, proof: object = {}, headers = {}) =>
  call(app, 'POST', '/account/verify-email', { token, ...proof }, headers)

const reject = (app: FastifyInstance, token: string) =>
  call(app, 'POST', '/account/verify-email/reject', { token })

const ask = (app: FastifyInstance, email: string, password = PASSWORD, fields: object = {}) =>
  call(app, 'POST', '/account/sign-up', { email, password, ...fields })

/** Asserts the 403 that asks for a proof of the account (RFC 9470). */
const needsAccount = (t: Test, response: LightMyRequestResponse, title: string): void => {
  globalErrorOf(t, response, 403, title)
  t.match(response.headers['www-authenticate'], /^Bearer error="insufficient_user_authentication"/, title)
  t.equal(response.headers['set-cookie'], undefined, title)
}

const adminStatus = async (app: FastifyInstance, id: string): Promise<number> =>
  (await call(app, 'GET', `/admin/users/${id}`, undefined, asAdmin)).statusCode

const adminUser = async (app: FastifyInstance, id: string) =>
  (await call(app, 'GET', `/admin/users/${id}`, undefined, asAdmin)).json()

const typesOf = async (app: FastifyInstance, userId: string): Promise<string[]> =>
  (await allEvents(app, { userId })).map(({ type }) => type)

const count = (types: readonly string[]): Record<string, number> => {
  const counts: Record<string, number> = {}
  for (const type of types) counts[type] = (counts[type] ?? 0) + 1
  return counts
}

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const clock = manualClock()
  const DATABASE_URL = await newDatabase(t)
  const env = { ...ENV, ...EMAIL_CODES }
  const LIMITED = { env: { ...env, RATE_LIMIT: 'on' }, clock: clock.now, rateLimits: RATE_LIMITS_OF_ACCOUNTS }
  const app = await build(t, { env: { ...env, DATABASE_URL }, clock: clock.now, features: [notes] })
  const codes = codesOf(app)
  const { mails } = codes

  const confirmed = async (fields: Record<string, unknown> = {}): Promise<SignedUp> => {
    const user = await signUp(app, fields)
    const verified = await confirm(app, await mails.token(user.email, 'verification'), {}, bearer(user.token))
    if (verified.statusCode !== 200) throw new Error(verified.body)
    return user
  }

  /** An account that a stranger opened with the address of somebody else, and everything that could give access to it. */
  const occupied = async () => {
    const user = await signUp(app, { firstName: 'Eve', lastName: 'Mallory' })
    const { email, token } = user
    const verification = await mails.token(email, 'verification')
    await call(app, 'PUT', '/account', { userMetadata: { theme: 'dark' } }, bearer(token))
    await updateUser(app, user.id, { roles: ['editor'], appMetadata: { plan: 'small' } })
    const note = await call(app, 'POST', '/notes', { text: 'kept' }, bearer(token))
    t.equal(note.statusCode, 201)
    const second = (await signIn(app, email)).json().accessToken
    const acting = (await impersonate(app, user.id)).json().accessToken
    const keys = [await createKey(app, token), await createKey(app, token)]
    const passkeys = [await register(app, token), await register(app, token)]
    const other = freshEmail('elsewhere')
    t.equal((await changeEmail(app, token, { email: other, password: PASSWORD })).statusCode, 202)
    const emailChange = await mails.token(other, 'emailChange')
    const totp = await addTotp(app, token)
    clock.advance(STEP)
    await forgot(app, email)
    const passwordReset = await mails.token(email, 'passwordReset')
    return {
      ...user,
      sessions: [token, second, acting],
      keys,
      passkeys,
      totp,
      links: { verification, emailChange, passwordReset },
      emailChangeTo: other,
    }
  }

  type Occupied = Awaited<ReturnType<typeof occupied>>

  /** Tries every way in that the stranger had. */
  const strangerIsOut = async (t: Test, { email, sessions, keys, passkeys, totp, links }: Occupied) => {
    for (const token of sessions) t.equal(await accountStatus(app, token), 401, 'a session')
    for (const { token } of keys) t.equal(await accountStatus(app, token), 401, 'an API key')
    for (const { authenticator } of passkeys)
      t.equal((await signInWith(app, authenticator)).statusCode, 401, 'a passkey')
    const [recoveryCode] = totp.recoveryCodes
    for (const code of [undefined, totp.code(), recoveryCode]) {
      const signedIn = await call(app, 'POST', '/account/sign-in', { email, password: PASSWORD, code })
      t.equal(signedIn.statusCode, 401, 'the password')
    }
    for (const token of [links.verification, links.emailChange])
      errorsAt(t, await verify(app, token), 400, ['token'], 'a link')
    errorsAt(t, await reset(app, links.passwordReset, `${NEW} of Eve`), 400, ['token'], 'a reset')
  }

  /** What is no access stays as it was. */
  const contentIsKept = async (t: Test, { id, email }: Occupied, accessToken: string) => {
    t.match(await adminUser(app, id), {
      email,
      emailVerified: true,
      firstName: 'Eve',
      lastName: 'Mallory',
      roles: ['editor'],
      userMetadata: { theme: 'dark' },
      appMetadata: { plan: 'small' },
      factors: [],
    })
    t.match((await call(app, 'GET', '/notes', undefined, bearer(accessToken))).json(), {
      results: [{ text: 'kept' }],
    })
    t.same([await listPasskeys(app, accessToken), await listKeys(app, accessToken)], [[], []])
    t.match(await totpOf(app, accessToken), { confirmedAt: null, recoveryCodes: 0 })
    const sessions = await call(app, 'GET', '/account/sessions', undefined, bearer(accessToken))
    t.match(sessions.json().results, [{ current: true }])
    t.equal(sessions.json().results.length, 1)
  }

  t.test('L2: a mailed code lets the owner in, and ends every access of the stranger', async t => {
    const account = await occupied()
    const code = await codes.request(account.email)
    const before = (await allEvents(app, { userId: account.id })).length
    const signedIn = await signInByCode(app, account.email, code)
    t.equal(signedIn.statusCode, 200, "without the stranger's app")
    const { accessToken } = signedIn.json()
    await strangerIsOut(t, account)
    await contentIsKept(t, account, accessToken)
    t.equal(await accountStatus(app, accessToken), 200, 'the owner stays in')

    const events = (await allEvents(app, { userId: account.id })).slice(0, -before)
    t.strictSame(count(events.map(({ type }) => type)), {
      'email.verified': 1,
      'password.removed': 1,
      'sessions.ended': 1,
      'totp.removed': 1,
      'api-key.revoked': 2,
      'passkey.removed': 2,
      'user.signed-in': 1,
    })
    for (const { actor } of events) t.match(actor, { type: 'user', id: account.id })
    const keyIds = account.keys.map(({ apiKey }) => apiKey.id).sort()
    const revoked = events.filter(({ type }) => type === 'api-key.revoked')
    t.same(revoked.map(({ details }) => details?.apiKey).sort(), keyIds, 'each key by its id')

    const [mail] = await mails.to(account.email, 'accessRemoved')
    for (const removed of [
      /The password/,
      /sessions: 3/i,
      /API keys: 2/,
      /passkeys: 2/i,
      /authenticator app/,
    ])
      t.match(mail?.text, removed)
  })

  t.test('L2: the owner then chooses a password, and a second code empties nothing', async t => {
    const account = await occupied()
    const { accessToken } = (
      await signInByCode(app, account.email, await codes.request(account.email))
    ).json()
    const key = await createKey(app, accessToken)
    const again = await signInByCode(app, account.email, await codes.request(account.email, 2))
    t.equal(again.statusCode, 200)
    for (const token of [accessToken, again.json().accessToken, key.token])
      t.equal(await accountStatus(app, token), 200)
    await forgot(app, account.email)
    const chosen = await reset(app, await mails.token(account.email, 'passwordReset', 2), NEW)
    t.equal(chosen.statusCode, 200)
    t.equal(await accountStatus(app, key.token), 200, 'nor does the reset')
    t.equal((await signIn(app, account.email, NEW)).statusCode, 200, 'without a code')
  })

  t.test('L2: what the stranger has begun is not finished', async t => {
    const user = await signUp(app)
    const pendingApp = await beginTotp(app, user.token)
    const authenticator = new SoftwareAuthenticator()
    const begun = (await creationOptions(app, user.token)).json()
    const credential = authenticator.create(begun)
    const { accessToken } = (await signInByCode(app, user.email, await codes.request(user.email))).json()
    t.not((await confirmTotp(app, accessToken, pendingApp.code())).statusCode, 200, 'the secret is gone')
    for (const [token, status] of [
      [user.token, 401],
      [accessToken, 400],
    ] as const)
      t.equal((await postPasskey(app, token, { credential })).statusCode, status, 'the challenge is gone')
    t.same(await factorsOf(app, user.id), [])
    t.equal((await signInWith(app, authenticator)).statusCode, 401)
  })

  t.test('L2: a wrong code empties nothing', async t => {
    const user = await signUp(app)
    const code = await codes.request(user.email)
    const wrong = String((Number(code) + 1) % 10 ** 8).padStart(8, '0')
    errorsAt(t, await signInByCode(app, user.email, wrong), 401, ['emailCode'])
    t.equal(await accountStatus(app, user.token), 200)
    t.equal((await signIn(app, user.email)).statusCode, 200)
  })

  t.test('L2: a confirmed account keeps everything, and its app is asked for', async t => {
    const user = await confirmed()
    const key = await createKey(app, user.token)
    const totp = await addTotp(app, user.token)
    clock.advance(STEP)
    const code = await codes.request(user.email)
    errorsAt(t, await signInByCode(app, user.email, code), 401, ['code'])
    t.equal((await signInByCode(app, user.email, code, totp.code())).statusCode, 200)
    for (const token of [user.token, key.token]) t.equal(await accountStatus(app, token), 200)
    t.same(await factorsOf(app, user.id), ['totp'])
    errorsAt(t, await signIn(app, user.email), 401, ['code'], 'the password stays')
  })

  t.test(
    "L3: a reset needs no code of the stranger's app, and ends every access of the stranger",
    async t => {
      const account = await occupied()
      const pending = await codes.request(account.email)
      await forgot(app, account.email)
      const token = await mails.token(account.email, 'passwordReset', 2)
      const done = await reset(app, token, NEW)
      t.equal(done.statusCode, 200, done.body)
      await strangerIsOut(t, account)
      errorsAt(t, await signInByCode(app, account.email, pending), 401, ['emailCode'], 'a code of before')
      await contentIsKept(t, account, done.json().accessToken)
      t.equal((await signIn(app, account.email, NEW)).statusCode, 200, 'no app, no recovery code')
      const types = count(await typesOf(app, account.id))
      t.match(types, { 'password.reset': 1, 'totp.removed': 1, 'api-key.revoked': 2, 'passkey.removed': 2 })
      t.notOk(types['password.removed'], 'the password was replaced')
      const [mail] = await mails.to(account.email, 'accessRemoved')
      for (const removed of [/API keys: 2/, /passkeys: 2/i, /authenticator app/]) t.match(mail?.text, removed)
    },
  )

  t.test("L3: the link that the stranger has requested lets the owner in as the owner's would", async t => {
    const account = await occupied()
    const done = await reset(app, account.links.passwordReset, NEW)
    t.equal(done.statusCode, 200)
    await strangerIsOut(t, account)
    await contentIsKept(t, account, done.json().accessToken)
  })

  t.test('L3: with a confirmed e-mail the reset still asks for a code, and removes no factor', async t => {
    const user = await confirmed()
    const totp = await addTotp(app, user.token)
    clock.advance(STEP)
    await forgot(app, user.email)
    const token = await mails.token(user.email, 'passwordReset')
    errorsAt(t, await reset(app, token, NEW), 401, ['code'])
    const payload = { token, password: NEW, code: totp.code() }
    t.equal((await call(app, 'POST', '/account/reset-password', payload)).statusCode, 200)
    t.same(await factorsOf(app, user.id), ['totp'])
  })

  /** An attacker who changes the e-mail to that of a victim, who has the mail, and another account. */
  const preparedChange = async (attacker: SignedUp) => {
    const victim = freshEmail('victim')
    const payload = { email: victim, password: PASSWORD }
    t.equal((await changeEmail(app, attacker.token, payload)).statusCode, 202)
    return { victim, link: await mails.token(victim, 'emailChange') }
  }

  t.test("L5: the victim's click does not confirm the attacker's change", async t => {
    const bystander = await confirmed({ password: NEW })
    const key = await createKey(app, bystander.token)
    for (const attacker of [await confirmed(), await signUp(app)]) {
      const { victim, link } = await preparedChange(attacker)
      const own = await createKey(app, attacker.token)
      const acting = (await impersonate(app, attacker.id)).json().accessToken
      const clicks: [string, object, object][] = [
        ['without a session', {}, {}],
        ['with an empty password', { password: '' }, {}],
        ['with a revoked or forged session', {}, bearer(`${attacker.token}x`)],
        ['with a session of another account', {}, bearer(bystander.token)],
        ['by cookie', {}, cookie(bystander.token)],
        ['with an API key', {}, bearer(key.token)],
        ['with an API key of that account', {}, bearer(own.token)],

        ['with a code alone', { code: '123456' }, {}],
      ]
      for (const [title, proof, headers] of clicks) {
        const response = await confirm(app, link, proof, headers)
        if ('password' in proof) t.ok([400, 403].includes(response.statusCode), title)
        else needsAccount(t, response, title)
        t.equal(response.headers['set-cookie'], undefined)
      }
      globalErrorOf(t, await confirm(app, link, {}, bearer(acting)), 403, 'in an impersonated session')
      for (const headers of [{}, bearer(bystander.token), bearer(key.token)])
        errorsAt(t, await confirm(app, link, { password: NEW }, headers), 400, ['password'], 'a password')
      t.match(await accountOf(app, attacker.token), { email: attacker.email }, 'nothing changes')
      t.notOk((await typesOf(app, attacker.id)).includes('email.changed'))

      t.equal((await requestCode(app, victim)).statusCode, 202)
      await forgot(app, victim)
      t.equal((await signIn(app, victim)).statusCode, 401)
      const verified = await confirm(app, link, {}, bearer(attacker.token))
      t.equal(verified.statusCode, 200, 'the proof of the account is accepted')
      t.match(verified.json(), { id: attacker.id, email: victim, emailVerified: true })
      const sent = (await mails.all()).filter(({ to }) => to?.[0]?.address === victim)
      t.same(
        sent.filter(({ text }) => /sign in|Choose another password/.test(text ?? '')),
        [],
        'there was no account to sign in to',
      )
    }
  })

  t.test("L5: the victim's own account is never the attacker's", async t => {
    const attacker = await confirmed()
    const { victim, link } = await preparedChange(attacker)
    needsAccount(t, await confirm(app, link), 'the click')
    const own = await signUp(app, { email: victim, password: NEW })
    t.not(own.id, attacker.id)
    errorsAt(t, await verify(app, link), 409, ['email'], "the attacker's proof comes too late")
    const entered = await signInByCode(app, victim, await codes.request(victim))
    t.match(entered.json(), { user: { id: own.id } })
    await forgot(app, victim)
    const done = await reset(app, await mails.token(victim, 'passwordReset'), `${NEW} 2`)
    t.match(done.json(), { user: { id: own.id } })
    t.equal((await signIn(app, victim)).statusCode, 401, "the attacker's password")
    t.match(await accountOf(app, attacker.token), { email: attacker.email })
  })

  t.test('L5: the password is not enough where the account has an app', async t => {
    const attacker = await confirmed()
    const { victim, link } = await preparedChange(attacker)
    const totp = await addTotp(app, attacker.token)
    clock.advance(STEP)
    errorsAt(t, await confirm(app, link, { password: PASSWORD }), 401, ['code'], 'no code')
    const wrong = { password: PASSWORD, code: totp.code(20) }
    errorsAt(t, await confirm(app, link, wrong), 401, ['code'], 'a wrong one')
    const both = { password: NEW, code: totp.code() }
    errorsAt(t, await confirm(app, link, both), 400, ['password'], 'the code without the password')
    needsAccount(t, await confirm(app, link, { code: totp.code() }), 'the code alone')
    const verified = await confirm(app, link, { password: PASSWORD, code: totp.code() })
    t.match([verified.statusCode, verified.json()], [200, { email: victim }])
    t.equal(verified.headers['set-cookie'], undefined, 'it opens no session')
  })

  t.test(
    "L5: the link of a new account needs the account in the same way, and the victim's code ends it",
    async t => {
      const stranger = await signUp(app)
      const key = await createKey(app, stranger.token)
      const acting = (await impersonate(app, stranger.id)).json().accessToken
      const link = await mails.token(stranger.email, 'verification')
      for (const headers of [{}, bearer(key.token), bearer((await confirmed()).token)])
        needsAccount(t, await confirm(app, link, {}, headers), 'a click')
      for (const proof of [{}, { password: PASSWORD }])
        globalErrorOf(t, await confirm(app, link, proof, bearer(acting)), 403, 'in an impersonated session')
      errorsAt(t, await confirm(app, link, { password: NEW }), 400, ['password'])
      t.match(await adminUser(app, stranger.id), { emailVerified: false })
      const entered = await signInByCode(app, stranger.email, await codes.request(stranger.email))
      t.equal(entered.statusCode, 200)
      errorsAt(t, await verify(app, link), 400, ['token'])
      t.equal(await accountStatus(app, key.token), 401)
    },
  )

  t.test('L5: each refusal is reported for what it is, in the same words for every link', async t => {
    const expired = await signUp(app)
    const link = await mails.token(expired.email, 'verification')
    clock.advance(DAY)
    for (const token of [link, 'x'.repeat(43), '']) {
      errorsAt(t, await confirm(app, token), 400, ['token'], 'without a proof')
      errorsAt(t, await confirm(app, token, { password: PASSWORD }), 400, ['token'], 'with a proof')
      errorsAt(t, await reject(app, token), 400, ['token'])
    }
    t.equal(await adminStatus(app, expired.id), 200)
  })

  t.test(
    'L2: an e-mail that an administrator has given unconfirmed, and an unverified import, are emptied',
    async t => {
      const passwordHash = await quickHashing.hash(PASSWORD)
      for (const emailVerified of [true, false]) {
        const created = await createUser(app, { password: PASSWORD, emailVerified })
        const imported = { email: freshEmail('imported'), passwordHash, emailVerified }
        t.match(await importAll(app, [imported]), [{ status: 'created' }, { created: 1 }])
        const moved = await confirmed()
        const email = freshEmail('moved')
        await updateUser(app, moved.id, { email, ...(emailVerified && { emailVerified }) })
        for (const address of [created.email, imported.email, email]) {
          const session = (await signIn(app, address)).json().accessToken
          t.equal(await accountStatus(app, session), 200)
          const entered = await signInByCode(app, address, await codes.request(address))
          t.match(entered.json(), { user: { emailVerified: true } })
          t.equal(await accountStatus(app, session), emailVerified ? 200 : 401, address)
          t.equal((await signIn(app, address)).statusCode, emailVerified ? 200 : 401, address)
          const types = await typesOf(app, entered.json().user.id)
          t.equal(types.includes('password.removed'), !emailVerified)
        }
      }
    },
  )

  t.test('L2: an invitation without a password is entered by code', async t => {
    const invited = await createUser(app)
    const entered = await signInByCode(app, invited.email, await codes.request(invited.email))
    t.equal(entered.statusCode, 200)
    t.ok((await typesOf(app, invited.id)).includes('email.verified'))
  })

  t.test(
    "L5: an unconfirmed account that moves on to the stranger's own address leaves the first one free",
    async t => {
      const stranger = await signUp(app)
      const first = await mails.token(stranger.email, 'verification')
      const own = freshEmail('own')
      await changeEmail(app, stranger.token, { email: own, password: PASSWORD })
      const moved = await verify(app, await mails.token(own, 'emailChange'))
      t.match(moved.json(), { id: stranger.id, email: own, emailVerified: true })
      errorsAt(t, await confirm(app, first, { password: PASSWORD }), 400, ['token'])
      errorsAt(t, await reject(app, first), 400, ['token'], 'the account has a confirmed address')
      t.equal(await adminStatus(app, stranger.id), 200)
      const owner = await signUp(app, { email: stranger.email, password: NEW })
      t.not(owner.id, stranger.id)
      t.equal(await accountStatus(app, stranger.token), 200)
    },
  )

  t.test('L5: a link that was mailed again needs the account as the first one did', async t => {
    const user = await signUp(app)
    const links = [await mails.token(user.email, 'verification')]
    t.equal((await resend(app, user.token)).statusCode, 202)
    links.push(await mails.token(user.email, 'verification', 2))
    t.equal(new Set(links).size, 2)
    needsAccount(t, await confirm(app, links[1] ?? ''), 'the second link')
    const verified = await confirm(app, links[1] ?? '', {}, cookie(user.token))
    t.match(verified.json(), { emailVerified: true })
    errorsAt(t, await verify(app, links[1]), 400, ['token'], 'it works once')
    for (const link of links) {
      t.not((await confirm(app, link)).statusCode, 200)
      errorsAt(t, await reject(app, link), 400, ['token'])
    }
    t.equal(await accountStatus(app, user.token), 200)
  })

  t.test('L5: a disabled account is neither confirmed nor removed by its links', async t => {
    const user = await signUp(app)
    const link = await mails.token(user.email, 'verification')
    const { link: change } = await preparedChange(user)
    await updateUser(app, user.id, { disabled: true })
    for (const token of [link, change]) {
      errorsAt(t, await verify(app, token), 400, ['token'])
      errorsAt(t, await confirm(app, token), 400, ['token'])
      errorsAt(t, await reject(app, token), 400, ['token'])
    }
    t.match(await adminUser(app, user.id), { email: user.email, emailVerified: false, disabled: true })
    t.equal((await requestCode(app, user.email)).statusCode, 202)
    await forgot(app, user.email)
    await updateUser(app, user.id, { disabled: false })
    errorsAt(t, await verify(app, link), 400, ['token'], 'also afterwards')
    t.equal((await signIn(app, user.email)).statusCode, 200, 'nothing was removed')
  })

  t.test('L2: the owner rejects an account that was never confirmed: it is gone', async t => {
    const account = await occupied()
    const { verification } = account.links
    const [first, second] = [await reject(app, verification), await reject(app, verification)]
    t.strictSame([first.statusCode, first.json()], [200, { rejected: 'account' }])
    errorsAt(t, second, 400, ['token'], 'once')
    t.equal(await adminStatus(app, account.id), 404)
    await strangerIsOut(t, account)
    const [deleted] = await allEvents(app, { userId: account.id })
    t.match(deleted, { type: 'user.deleted', actor: { type: 'anonymous' } })
    const owner = await signUp(app, { email: account.email })
    t.not(owner.id, account.id, 'the address is free')
    errorsAt(t, await reject(app, verification), 400, ['token'], 'the link is not of the next account')
    t.equal(await accountStatus(app, owner.token), 200)
  })

  t.test('L5: the victim rejects a change: it ends, and the account stays', async t => {
    const attacker = await confirmed()
    const { victim, link } = await preparedChange(attacker)
    const other = await preparedChange(attacker)
    const [first, second] = [await reject(app, link), await reject(app, link)]
    t.strictSame([first.statusCode, first.json()], [200, { rejected: 'emailChange' }])
    errorsAt(t, second, 400, ['token'], 'once')
    errorsAt(t, await verify(app, link), 400, ['token'])
    t.match(await accountOf(app, attacker.token), { email: attacker.email, emailVerified: true })
    t.ok((await typesOf(app, attacker.id)).includes('email.change-rejected'))
    t.equal((await signIn(app, victim)).statusCode, 401)
    t.equal((await signIn(app, attacker.email)).statusCode, 200)
    t.equal(await adminStatus(app, attacker.id), 200)
    await reject(app, other.link)
    const unconfirmed = await signUp(app)
    const change = await preparedChange(unconfirmed)
    t.strictSame((await reject(app, change.link)).json(), { rejected: 'emailChange' })
    t.equal(await accountStatus(app, unconfirmed.token), 200, 'also where the account is not confirmed')
  })

  t.test('L2: nothing is rejected after it was confirmed, in whatever way', async t => {
    const confirmations: Record<string, (user: SignedUp, link: string) => Promise<unknown>> = {
      'by the link': (_user, link) => verify(app, link),
      'by another link': async user => {
        await resend(app, user.token)
        return verify(app, await mails.token(user.email, 'verification', 2))
      },
      'by a mailed code': async user => signInByCode(app, user.email, await codes.request(user.email)),
      'by a reset': async user => {
        await forgot(app, user.email)
        return reset(app, await mails.token(user.email, 'passwordReset'), NEW)
      },
      'by an administrator': user => updateUser(app, user.id, { emailVerified: true }),
    }
    for (const [way, run] of Object.entries(confirmations)) {
      const user = await signUp(app)
      const link = await mails.token(user.email, 'verification')
      await run(user, link)
      errorsAt(t, await reject(app, link), 400, ['token'], way)
      t.match(await adminUser(app, user.id), { emailVerified: true }, way)
    }
    const user = await confirmed()
    const { victim, link } = await preparedChange(user)
    t.equal((await verify(app, link)).statusCode, 200)
    errorsAt(t, await reject(app, link), 400, ['token'])
    t.match(await accountOf(app, user.token), { email: victim })
  })

  t.test(
    'L2: an account that was confirmed once is not removed by a stranger to whom it was moved',
    async t => {
      const user = await confirmed()
      const mistyped = freshEmail('mistyped')
      await updateUser(app, user.id, { email: mistyped })
      t.equal((await resend(app, user.token)).statusCode, 202)
      await reject(app, await mails.token(mistyped, 'verification'))
      t.equal(await adminStatus(app, user.id), 200)
      t.equal(await accountStatus(app, user.token), 200)
    },
  )

  t.test('L2: an account is not removed by its link once the events of its sign-up are gone', async t => {
    const user = await signUp(app)
    const link = await mails.token(user.email, 'verification')
    await execute(DATABASE_URL, `DELETE FROM events WHERE user_id = '${user.id}'`)
    errorsAt(t, await reject(app, link), 400, ['token'])
    t.equal(await adminStatus(app, user.id), 200)
  })

  t.test("L2, L3: the stranger's password change does not keep the owner out", async t => {
    for (const isReset of [false, true]) {
      const stranger = await signUp(app)
      const code = await codes.request(stranger.email)
      await forgot(app, stranger.email)
      const token = await mails.token(stranger.email, 'passwordReset')
      const payload = { currentPassword: PASSWORD, newPassword: WRONG }
      await call(app, 'PUT', '/account/password', payload, bearer(stranger.token))
      const entered = isReset ? await reset(app, token, NEW) : await signInByCode(app, stranger.email, code)
      t.equal(entered.statusCode, 200)
    }
  })

  t.test('L5: a rejected change leaves a change to another address pending', async t => {
    const user = await confirmed()
    const [rejected, other] = [freshEmail('rejected'), freshEmail('other')]
    for (const email of [rejected, other])
      t.equal((await changeEmail(app, user.token, { email, password: PASSWORD })).statusCode, 202)
    t.equal((await reject(app, await mails.token(rejected, 'emailChange'))).statusCode, 200)
    errorsAt(t, await verify(app, await mails.token(rejected, 'emailChange')), 400, ['token'])
    t.match((await verify(app, await mails.token(other, 'emailChange'))).json(), { email: other })
  })

  t.test('L2: only links that confirm are rejected', async t => {
    const user = await signUp(app)
    await forgot(app, user.email)
    const passwordReset = await mails.token(user.email, 'passwordReset')
    errorsAt(t, await reject(app, passwordReset), 400, ['token'])
    errorsAt(t, await verify(app, passwordReset), 400, ['token'])
    t.equal(await adminStatus(app, user.id), 200)
    t.equal((await reset(app, passwordReset, NEW)).statusCode, 200, 'it still resets')
    const removed = await signUp(app)
    const link = await mails.token(removed.email, 'verification')
    await deleteUser(app, removed.id)
    for (const response of [await reject(app, link), await verify(app, link)])
      errorsAt(t, response, 400, ['token'], 'of a deleted account')
  })

  t.test('L5: the page changes nothing until a button is pressed, and asks for the password', async t => {
    const attacker = await confirmed()
    const { victim, link } = await preparedChange(attacker)
    const browser = new FormClient(app, { headers: { host: new URL(ENV.PUBLIC_URL).host } })
    const path = `${ENV.PUBLIC_URL}/account/verify-email?token=${link}`
    for (let opened = 0; opened < 3; opened += 1) t.equal((await browser.open(path)).status, 200)
    t.match(await accountOf(app, attacker.token), { email: attacker.email }, 'a scanner confirms nothing')
    await browser.submit('/confirm', { password: NEW })
    t.equal(browser.status, 400)
    t.match(await accountOf(app, attacker.token), { email: attacker.email })
    await browser.submit('/not-me')
    t.equal(browser.status, 200)
    errorsAt(t, await verify(app, link), 400, ['token'])
    const { link: second, victim: other } = await preparedChange(attacker)
    await browser.open(`${ENV.PUBLIC_URL}/account/verify-email?token=${second}`)
    await browser.submit('/confirm', { password: PASSWORD })
    t.equal(browser.status, 200)
    t.match(browser.page, other)
    t.match(await accountOf(app, attacker.token), { email: other })
    t.equal((await signIn(app, victim)).statusCode, 401)
  })

  t.test(
    'L5: in a session of the account the page asks for no password, in that of another one it does',
    async t => {
      const [user, bystander] = [await signUp(app), await confirmed()]
      const link = await mails.token(user.email, 'verification')
      const page = async (headers: Record<string, string>) =>
        (await app.inject({ url: `/account/verify-email?token=${link}`, headers })).body
      const acting = (await impersonate(app, user.id)).json().accessToken
      const asks = /<input[^>]*type="password"/
      t.notMatch(await page(cookie(user.token)), asks)
      for (const headers of [{}, cookie(bystander.token), cookie(acting)]) t.match(await page(headers), asks)
    },
  )

  t.test('L5: wrong passwords at a confirmation wait like those at sign-in, and with them', async t => {
    const limited = await build(t, LIMITED)
    const user = await signUp(limited)
    const link = await mailbox(limited).token(user.email, 'verification')
    const from = (remoteAddress: string, url: string, payload: object) =>
      limited.inject({ method: 'POST', url, remoteAddress, payload })
    const guessAt = (remoteAddress: string, password: string) =>
      from(remoteAddress, '/account/verify-email', { token: link, password })
    for (let guess = 0; guess < 3; guess += 1) {
      const payload = { email: user.email, password: WRONG }
      t.equal((await from('198.51.100.7', '/account/sign-in', payload)).statusCode, 401)
    }
    const statuses: number[] = []
    for (let guess = 0; guess < 12; guess += 1)
      statuses.push((await guessAt(`198.51.100.${guess}`, WRONG)).statusCode)
    const firstRefusal = statuses.indexOf(429)
    t.ok(firstRefusal >= 2 && firstRefusal <= 3, `counted with the sign-ins: ${statuses}`)
    t.same([...new Set(statuses.slice(firstRefusal))], [429])
    const waiting = await guessAt('198.51.100.99', PASSWORD)
    globalErrorOf(t, waiting, 429, 'the right password waits')
    t.ok(Number(waiting.headers['retry-after']) > 0)
    t.match(await adminUser(limited, user.id), { emailVerified: false })
    const verified = await confirm(limited, link, {}, bearer(user.token))
    t.equal(verified.statusCode, 200, 'the session of the account does not, and the link has stayed usable')
  })

  t.test('L5: wrong codes at a confirmation wait too', async t => {
    const limited = await build(t, LIMITED)
    const user = await signUp(limited)
    const link = await mailbox(limited).token(user.email, 'verification')
    const totp = await addTotp(limited, user.token)
    clock.advance(STEP)
    const statuses: number[] = []
    for (let guess = 0; guess < 12; guess += 1) {
      const payload = { token: link, password: PASSWORD, code: totp.code(20 + guess) }
      const response = await limited.inject({ method: 'POST', url: '/account/verify-email', payload })
      statuses.push(response.statusCode)
    }
    t.equal(statuses[0], 401)
    t.equal(statuses.at(-1), 429, `${statuses}`)
  })
})

await onEnginesOfRun(t, async (t, { build }) => {
  const clock = manualClock()
  const env = { ...EMAIL_CODES, REQUIRE_EMAIL_VERIFICATION: 'true' }
  const LIMITED = { env: { ...env, RATE_LIMIT: 'on' }, clock: clock.now, rateLimits: RATE_LIMITS_OF_ACCOUNTS }
  const app = await build(t, { env, clock: clock.now })
  const mails = mailbox(app)

  const adminList = async (email: string) =>
    (await call(app, 'GET', `/admin/users?email=${encodeURIComponent(email)}`, undefined, asAdmin)).json()
      .results

  /** Two people sign up with one address, whose owner gets both mails. */
  const twoSignUps = async () => {
    const email = freshEmail('both')
    t.equal((await ask(app, email, PASSWORD, { firstName: 'Ann' })).statusCode, 202)
    const first = await mails.token(email, 'signUp')
    t.equal((await ask(app, email, NEW, { firstName: 'Eve' })).statusCode, 202)
    return { email, first, second: await mails.token(email, 'signUp', 2) }
  }

  t.test('L2: of two sign-ups with one address each password opens only its own', async t => {
    for (const isSecond of [false, true]) {
      const { email, first, second } = await twoSignUps()
      const [link, other] = isSecond ? [second, first] : [first, second]
      const [password, otherPassword] = isSecond ? [NEW, PASSWORD] : [PASSWORD, NEW]
      for (const token of [link, other]) needsAccount(t, await confirm(app, token), 'without a password')
      errorsAt(t, await confirm(app, link, { password: otherPassword }), 400, ['password'])
      errorsAt(t, await confirm(app, other, { password }), 400, ['password'])
      t.same(await adminList(email), [], 'nothing exists yet')
      const opened = await confirm(app, link, { password })
      t.match([opened.statusCode, opened.json()], [200, { user: { email, emailVerified: true } }])
      t.equal(opened.json().user.firstName, isSecond ? 'Eve' : 'Ann')
      t.match(opened.headers['set-cookie'], `ACCESS_TOKEN=${opened.json().accessToken};`)
      for (const each of [password, otherPassword])
        for (const token of [link, other])
          errorsAt(t, await confirm(app, token, { password: each }), 400, ['token'], 'the other has ended')
      errorsAt(t, await reject(app, other), 400, ['token'])
      t.equal((await adminList(email)).length, 1)
      t.equal((await signIn(app, email, password)).statusCode, 200)
      t.equal((await signIn(app, email, otherPassword)).statusCode, 401)
      t.equal(await accountStatus(app, opened.json().accessToken), 200)
    }
  })

  t.test('L2: no session, key or code takes the place of the password of a sign-up', async t => {
    const holder = await createUser(app, { password: PASSWORD, emailVerified: true })
    const { accessToken } = (await signIn(app, holder.email)).json()
    const key = await createKey(app, accessToken)
    const email = freshEmail('free')
    await ask(app, email, NEW)
    const link = await mails.token(email, 'signUp')
    for (const headers of [{}, bearer(accessToken), cookie(accessToken), bearer(key.token)]) {
      needsAccount(t, await confirm(app, link, {}, headers), 'no password')
      needsAccount(t, await confirm(app, link, { code: '123456' }, headers), 'a code')
      errorsAt(t, await confirm(app, link, { password: PASSWORD }, headers), 400, ['password'])
    }
    const opened = await confirm(app, link, { password: NEW }, cookie(accessToken))
    t.match(opened.json(), { user: { email } })
    t.not(opened.json().user.id, holder.id)
    t.match(await accountOf(app, accessToken), { id: holder.id, email: holder.email })
  })

  t.test('L2: the owner rejects a sign-up: it ends, and no other one', async t => {
    const { email, first, second } = await twoSignUps()
    const rejected = await reject(app, second)
    t.strictSame([rejected.statusCode, rejected.json()], [200, { rejected: 'signUp' }])
    errorsAt(t, await reject(app, second), 400, ['token'], 'once')
    errorsAt(t, await confirm(app, second, { password: NEW }), 400, ['token'])
    t.same(await adminList(email), [])
    const opened = await confirm(app, first, { password: PASSWORD })
    t.match(opened.json(), { user: { email, firstName: 'Ann' } })
    errorsAt(t, await reject(app, first), 400, ['token'], 'what was confirmed is not rejected')
    t.equal(await accountStatus(app, opened.json().accessToken), 200)
  })

  t.test('L2: a pending sign-up does not enter the account that came first', async t => {
    const { email, first, second } = await twoSignUps()
    const holder = await createUser(app, { email, password: `${NEW} of the holder`, emailVerified: true })
    for (const [token, password] of [
      [first, PASSWORD],
      [second, NEW],
    ] as const) {
      const late = await confirm(app, token, { password })
      t.ok([400, 409].includes(late.statusCode), late.body)
      t.equal(late.headers['set-cookie'], undefined)
      t.equal((await signIn(app, email, password)).statusCode, 401)
    }
    t.match(await adminList(email), [{ id: holder.id, firstName: null }])
    t.equal((await signIn(app, email, `${NEW} of the holder`)).statusCode, 200)
  })

  t.test('L2: an address that is free again does not revive what was pending', async t => {
    const { email, first, second } = await twoSignUps()
    const opened = await confirm(app, first, { password: PASSWORD })
    t.equal((await deleteUser(app, opened.json().user.id)).statusCode, 204)
    for (const [token, password] of [
      [first, PASSWORD],
      [second, NEW],
    ] as const)
      errorsAt(t, await confirm(app, token, { password }), 400, ['token'])
    t.same(await adminList(email), [])
  })

  t.test('L2: neither a mailed code nor a reset opens a pending sign-up', async t => {
    const email = freshEmail('pending')
    await ask(app, email)
    const link = await mails.token(email, 'signUp')
    t.equal((await requestCode(app, email)).statusCode, 202)
    await forgot(app, email)
    t.equal((await reset(app, link, NEW)).statusCode, 400, 'the link is of no other use')
    t.equal((await signIn(app, email)).statusCode, 401)
    const opened = await confirm(app, link, { password: PASSWORD })
    t.equal(opened.statusCode, 200)
    const sent = (await mails.all()).filter(({ to }) => to?.[0]?.address === email)
    t.equal(sent.length, 1, 'no code, no link')
  })

  t.test('wrong sign-ins with the address of a sign-up do not delay its confirmation', async t => {
    const limited = await build(t, LIMITED)
    const email = freshEmail()
    t.equal((await ask(limited, email)).statusCode, 202)
    const token = await mailbox(limited).token(email, 'signUp')
    let last = await signIn(limited, email, WRONG)
    for (let attempt = 1; attempt <= 20 && last.statusCode === 401; attempt += 1)
      last = await signIn(limited, email, WRONG)
    t.equal(last.statusCode, 429)
    t.equal((await confirm(limited, token, { password: PASSWORD })).statusCode, 200)
  })

  t.test('L5: wrong passwords for a pending sign-up wait too', async t => {
    const limited = await build(t, LIMITED)
    const email = freshEmail('guessed')
    await ask(limited, email)
    const link = await mailbox(limited).token(email, 'signUp')
    const statuses: number[] = []
    for (let guess = 0; guess < 12; guess += 1) {
      const payload = { token: link, password: WRONG }
      const remoteAddress = `198.51.100.${guess}`
      statuses.push(
        (await limited.inject({ method: 'POST', url: '/account/verify-email', payload, remoteAddress }))
          .statusCode,
      )
    }
    t.equal(statuses[0], 400)
    t.equal(statuses.at(-1), 429, `${statuses}`)
    globalErrorOf(t, await confirm(limited, link, { password: PASSWORD }), 429, 'the right one waits')
    t.equal((await reject(limited, link)).statusCode, 200, 'a client with the mailbox alone does not')
  })

  t.test('L2: with required confirmation an older unconfirmed account is emptied as ever', async t => {
    const account = await createUser(app, { password: PASSWORD })
    globalErrorOf(t, await signIn(app, account.email), 403)
    const code = await codesOf(app).request(account.email)
    t.equal((await signInByCode(app, account.email, code)).statusCode, 200)
    t.equal((await signIn(app, account.email)).statusCode, 401)
  })
})
