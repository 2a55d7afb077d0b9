/** Signing in with a mailed link (docs/design.md, "Magic links"). */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import { RATE_LIMITS } from '#core/rate-limits/limits'
import { accountOf, call, changeEmail, forgot, NO_TOKENS, reset, verify } from '../support/account-routes.ts'
import { allEvents, deleteUser } from '../support/admin-routes.ts'
import { addTotp, STEP, signInWith } from '../support/authenticator-apps.ts'
import {
  accountStatus,
  bearer,
  build,
  confirmedUser,
  freshEmail,
  logCapture,
  manualClock,
  PASSWORD,
  signIn,
  signUp,
  updateUser,
} from '../support/build.ts'
import {
  checkLink,
  codesOf,
  linksOf,
  MAILED_SIGN_INS,
  requestCode,
  requestLink,
  signInByCode,
  signInByLink,
} from '../support/email-codes.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { perAddress } from '../support/limits.ts'
import { SUBJECT } from '../support/mailbox.ts'
import { growth, readMetrics } from '../support/metrics.ts'
import { isPrivateJson } from '../support/response-shapes.ts'
import { storedRows } from '../support/stored-rows.ts'
import { until } from '../support/until.ts'

const MINUTE = 60_000
const NEW = 'another long pass phrase 8'
const WRONG_CODE = '000000'
const MAGIC_LINKS = { MAGIC_LINKS: 'on' }

const seen = ({ statusCode, headers, body }: LightMyRequestResponse) => {
  const { date: _date, 'x-request-id': _id, ...others } = headers
  return { statusCode, headers: others, body }
}

t.test('without MAGIC_LINKS=on the routes do not exist, with it alone those of codes do not', async t => {
  const off = await build(t)
  const { email } = await signUp(off)
  for (const response of [
    await requestLink(off, email),
    await checkLink(off, 'x'),
    await signInByLink(off, 'x'),
    await off.inject('/sign-in/magic-link'),
    await off.inject('/magic-link?token=x'),
  ])
    globalErrorOf(t, response, 404)
  const on = await build(t, { env: MAGIC_LINKS })
  globalErrorOf(t, await requestCode(on, email), 404)
  const user = await signUp(on)
  t.equal((await signInByLink(on, await linksOf(on).request(user.email))).statusCode, 200)
})

t.test('MAGIC_LINKS=on needs mails', async t => {
  await t.rejects(build(t, { env: { ...MAGIC_LINKS, MAIL_URL: 'off' } }), {
    message: /MAIL_URL cannot be off with MAGIC_LINKS: no link would be sent/,
  })
})

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const clock = manualClock()
  const env = { ...MAILED_SIGN_INS, RATE_LIMIT: 'on' }
  const rateLimits = { ...RATE_LIMITS, perAddress: perAddress() }
  const app = await build(t, { env, clock: clock.now, rateLimits })
  const [links, codes] = [linksOf(app), codesOf(app)]

  const isDead = (t: Test, response: LightMyRequestResponse, title?: string) =>
    t.same(errorsAt(t, response, 400, ['token'], title), { token: ['is not valid or has expired'] })

  t.test('the token of the link signs in once, and keeps other sessions', async t => {
    const user = await confirmedUser(app)
    const token = await links.request(user.email)
    const response = await signInByLink(app, token)
    isPrivateJson(t, response, 200)
    const { accessToken, user: account } = response.json()
    t.match(response.headers['set-cookie'], `ACCESS_TOKEN=${accessToken};`)
    t.match(account, { id: user.id, email: user.email })
    for (const session of [accessToken, user.token]) t.equal(await accountStatus(app, session), 200)
    isDead(t, await signInByLink(app, token))
    isDead(t, await checkLink(app, token))
    const sessions = await call(app, 'GET', '/account/sessions', undefined, bearer(accessToken))
    t.match(sessions.json().results[0], { current: true, method: 'magicLink', amr: ['otp'] })
    const { results } = (await call(app, 'GET', '/account/methods', undefined, bearer(accessToken))).json()
    const [method] = results.filter(({ method }: { method: string }) => method === 'magicLink')
    t.match(method, { id: null, label: user.email, isFactor: false, lastUsedAt: String })
    const [signedIn] = await allEvents(app, { userId: user.id, type: 'user.signed-in' })
    t.match(signedIn, { details: { method: 'magicLink' }, actor: { type: 'user', id: user.id } })
  })

  t.test('a check tells the account and who has asked, and changes nothing', async t => {
    const ask = async (remoteAddress: string, userAgent?: string) => {
      const { email } = await signUp(app)
      await app.inject({
        method: 'POST',
        url: '/account/magic-link',
        headers: { 'user-agent': userAgent ?? '' },
        remoteAddress,
        payload: { email },
      })
      const token = await links.mails.token(email, 'magicLink')
      for (let time = 0; time < 3; time += 1) await checkLink(app, token)
      const response = await checkLink(app, token)
      isPrivateJson(t, response, 200)
      t.equal((await signInByLink(app, token)).statusCode, 200, 'it still works')
      const { email: shown, ...others } = response.json()
      t.equal(shown, email)
      return others
    }
    const requestedAt = new Date(clock.now()).toISOString()
    t.same(await ask('203.0.113.77', 'Some Browser'), {
      emailVerified: false,
      requestedAt,
      network: '203.0.113.0/24',
      userAgent: 'Some Browser',
    })
    t.match(await ask('2001:db8:7:8:9::1', 'x'.repeat(300)), {
      network: '2001:db8:7::/48',
      userAgent: 'x'.repeat(256),
    })
    t.match(await ask('::ffff:203.0.113.77'), { network: '203.0.113.0/24' })
  })

  t.test('a link works for ten minutes', async t => {
    for (const [wait, isAlive] of [[10 * MINUTE - 1, true] as const, [10 * MINUTE, false] as const]) {
      const { email } = await signUp(app)
      const token = await links.request(email)
      clock.advance(wait)
      if (isAlive) t.equal((await signInByLink(app, token)).statusCode, 200)
      else isDead(t, await signInByLink(app, token))
    }
  })

  t.test('the next mail replaces the former one, whether it has a code or a link', async t => {
    const { email } = await signUp(app)
    const first = await links.request(email)
    const second = await links.request(email, 2)
    isDead(t, await signInByLink(app, first))
    const code = await codes.request(email)
    isDead(t, await signInByLink(app, second))
    const third = await links.request(email, 3)
    errorsAt(t, await signInByCode(app, email, code), 401, ['emailCode'])
    t.equal((await signInByLink(app, third)).statusCode, 200)
  })

  t.test('guesses of a code use up no link, and its empty code is no code', async t => {
    const log = logCapture()
    const own = await build(t, { env: MAILED_SIGN_INS, logStream: log.stream })
    const { email } = await signUp(own)
    const token = await linksOf(own).request(email)
    for (const guess of ['12345678', ' ', '-', '0', '1', '2', '3'])
      errorsAt(t, await signInByCode(own, email, guess), 401, ['emailCode'])
    t.equal((await signInByLink(own, token)).statusCode, 200)
    await own.close()
    t.notMatch(log.text(), /cannot be decrypted/, 'it is compared with nothing')
  })

  t.test('no other token signs in, and invalid input is a 400', async t => {
    const { email } = await signUp(app)
    const token = await links.request(email)
    await forgot(app, email)
    const tokens = [
      await links.mails.token(email, 'passwordReset'),
      await links.mails.token(email, 'verification'),
      token.slice(0, -1),
      token + token,
      token.toUpperCase(),
      ...NO_TOKENS,
    ]
    for (const wrong of tokens) {
      errorsAt(t, await signInByLink(app, wrong), 400, ['token'], String(wrong).slice(0, 20))
      errorsAt(t, await checkLink(app, wrong), 400, ['token'], String(wrong).slice(0, 20))
    }
    errorsAt(t, await reset(app, token, NEW), 400, ['token'], 'it resets no password')
    errorsAt(t, await verify(app, token), 400, ['token'], 'and confirms no e-mail')
    const more = await call(app, 'POST', '/account/sign-in/magic-link', { token, email })
    errorsAt(t, more, 400, ['email'])
    for (const wrong of ['', 'ann', null, 7, undefined])
      errorsAt(t, await requestLink(app, wrong), 400, ['email'])
    t.equal((await signInByLink(app, token)).statusCode, 200)
  })

  t.test('F9: another e-mail ends the link, also when it is changed back', async t => {
    const ann = await confirmedUser(app)
    const token = await links.request(ann.email)
    await updateUser(app, ann.id, { email: freshEmail() })
    isDead(t, await signInByLink(app, token))
    isDead(t, await checkLink(app, token))
    await updateUser(app, ann.id, { email: ann.email })
    isDead(t, await signInByLink(app, token))

    const ben = await confirmedUser(app)
    const later = freshEmail()
    await changeEmail(app, ben.token, { email: later, password: PASSWORD })
    const second = await links.request(ben.email)
    t.equal((await verify(app, await links.mails.token(later, 'emailChange'))).statusCode, 200)
    isDead(t, await signInByLink(app, second), 'the link that confirms the new address')
  })

  t.test('another password, a reset, and the removal of the user end the link', async t => {
    const changing = await confirmedUser(app)
    const token = await links.request(changing.email)
    const body = { currentPassword: PASSWORD, newPassword: NEW }
    t.equal((await call(app, 'PUT', '/account/password', body, bearer(changing.token))).statusCode, 200)
    isDead(t, await signInByLink(app, token), 'changed')

    const forgetful = await signUp(app)
    await forgot(app, forgetful.email)
    const resetToken = await links.mails.token(forgetful.email, 'passwordReset')
    const second = await links.request(forgetful.email)
    t.equal((await reset(app, resetToken, NEW)).statusCode, 200)
    isDead(t, await signInByLink(app, second), 'reset')

    const leaving = await signUp(app)
    const third = await links.request(leaving.email)
    t.equal((await deleteUser(app, leaving.id)).statusCode, 204)
    isDead(t, await signInByLink(app, third), 'removed')
  })

  t.test('S4: a disabled user is not signed in by a link of before', async t => {
    const user = await confirmedUser(app)
    const token = await links.request(user.email)
    await updateUser(app, user.id, { disabled: true })
    isDead(t, await signInByLink(app, token))
    isDead(t, await checkLink(app, token))
    await updateUser(app, user.id, { disabled: false })
    isDead(t, await signInByLink(app, token), 'nor once it is enabled again')
    t.equal((await signInByLink(app, await links.request(user.email, 2))).statusCode, 200)
  })

  t.test('S1: with an authenticator app nothing is signed in without its code', async t => {
    const user = await confirmedUser(app)
    const totp = await addTotp(app, user.token)
    clock.advance(STEP)
    const token = await links.request(user.email)
    for (const [code, message] of [
      [undefined, 'is required'],
      [WRONG_CODE, 'is wrong'],
    ] as const) {
      const response = await signInByLink(app, token, code)
      t.same(errorsAt(t, response, 401, ['code']), { code: [message] })
      t.equal(response.headers['set-cookie'], undefined)
    }
    t.same(await allEvents(app, { userId: user.id, type: 'user.signed-in' }), [])
    const signedIn = await signInByLink(app, token, totp.code())
    t.equal(signedIn.statusCode, 200, 'the link was not used up')
    const { accessToken } = signedIn.json()
    const sessions = await call(app, 'GET', '/account/sessions', undefined, bearer(accessToken))
    t.match(sessions.json().results[0], { amr: ['otp', 'mfa'] })
    const second = await links.request(user.email, 2)
    t.equal((await signInByLink(app, second, totp.recoveryCodes[0])).statusCode, 200, 'a recovery code')
  })

  t.test('S7, F1: an account whose codes wait, waits here too, also with a link of before', async t => {
    const user = await confirmedUser(app)
    const totp = await addTotp(app, user.token)
    clock.advance(STEP)
    const token = await links.request(user.email)
    const statuses = []
    for (let attempt = 0; attempt < 3; attempt += 1)
      statuses.push((await signInWith(app, user.email, WRONG_CODE)).statusCode)
    for (let attempt = 0; attempt < 4; attempt += 1)
      statuses.push((await signInByLink(app, token, WRONG_CODE)).statusCode)
    t.same(statuses, [...Array(6).fill(401), 429], 'one count for all routes')
    globalErrorOf(t, await signInByLink(app, token, totp.code()), 429)
    globalErrorOf(t, await signInWith(app, user.email, totp.code()), 429)
  })

  t.test(
    'L2: the link empties an account that was never confirmed, and asks for none of its codes',
    async t => {
      const stranger = await signUp(app)
      await addTotp(app, stranger.token)
      clock.advance(STEP)
      const token = await links.request(stranger.email)
      t.match((await checkLink(app, token)).json(), { emailVerified: false })
      const signedIn = await signInByLink(app, token)
      t.equal(signedIn.statusCode, 200)
      const { accessToken } = signedIn.json()
      t.match(await accountOf(app, accessToken), { emailVerified: true, id: stranger.id })
      t.equal(await accountStatus(app, stranger.token), 401)
      t.equal((await signIn(app, stranger.email)).statusCode, 401)
      const [mail] = await links.mails.to(stranger.email, 'accessRemoved')
      t.match(mail?.text, 'The password')
      t.match(mail?.text, 'authenticator app')
      const again = await signInByLink(app, await links.request(stranger.email, 2))
      t.equal(again.statusCode, 200)
      t.equal(await accountStatus(app, accessToken), 200, 'once')
    },
  )

  t.test('R1: every request has the same response, before any work', async t => {
    // Without limits, whose headers count.
    const app = await build(t, { env: MAILED_SIGN_INS })
    const links = linksOf(app)
    const [known, disabled, exhausted] = [await signUp(app), await signUp(app), await signUp(app)]
    await updateUser(app, disabled.id, { disabled: true })
    for (let count = 1; count <= 5; count += 1) await links.request(exhausted.email, count)
    const responses = []
    for (const email of [freshEmail(), known.email, disabled.email, exhausted.email])
      responses.push(seen(await requestLink(app, email)))
    t.match(responses[0], { statusCode: 202, body: '{"status":"accepted"}' })
    for (const response of responses) t.strictSame(response, responses[0])
  })

  t.test('R8: an account gets five codes and links an hour together, from any client', async t => {
    const options = {
      env: { ...MAILED_SIGN_INS, DATABASE_URL: await newDatabase(t) },
      clock: clock.now,
    }
    const own = await build(t, options)
    const [links, codes] = [linksOf(own), codesOf(own)]
    const { email } = await signUp(own)
    for (let count = 1; count <= 2; count += 1) {
      t.equal((await signInByLink(own, await links.request(email, count))).statusCode, 200)
      await codes.request(email, count)
    }
    await links.request(email, 3)
    for (let refused = 0; refused < 3; refused += 1)
      for (const request of [requestLink, requestCode]) t.equal((await request(own, email)).statusCode, 202)
    const [unknown, disabled] = [freshEmail(), await signUp(own)]
    await updateUser(own, disabled.id, { disabled: true })
    for (const address of [unknown, disabled.email]) await requestLink(own, address)
    const subjects = await links.mails.final(email)
    t.equal(subjects.filter(subject => subject === SUBJECT.magicLink).length, 3)
    t.equal(subjects.filter(subject => subject === SUBJECT.emailCode).length, 2)
    t.same(await links.mails.final(unknown), [])
    t.same(await links.mails.final(disabled.email), [SUBJECT.verification])
    clock.advance(60 * MINUTE)
    t.ok(await linksOf(await build(t, options)).request(email), 'an hour later')
  })

  t.test('a client address is limited: requests like mails, uses and checks like sign-ins', async t => {
    const rateLimits = { ...RATE_LIMITS, perAddress: perAddress({ mail: 2, 'sign-in': 3 }) }
    const limited = await build(t, { env, rateLimits })
    const statuses = async (attempts: readonly (() => Promise<{ statusCode: number }>)[]) => {
      const found = []
      for (const attempt of attempts) found.push((await attempt()).statusCode)
      return found
    }
    const request = () => requestLink(limited, freshEmail())
    t.same(await statuses([request, request, request]), [202, 202, 429])
    const [use, check] = [() => signInByLink(limited, 'x'), () => checkLink(limited, 'x')]
    t.same(await statuses([use, check, use, use, check]), [400, 400, 400, 429, 429])
  })

  t.test('the mail says how long the link works, and what it removes', async t => {
    const own = await build(t, {
      env: {
        ...MAGIC_LINKS,
        PRODUCT_NAME: 'Example & Co',
        WEB_URL: 'https://app.example.com/x',
        PAGES: 'off',
      },
    })
    const links = linksOf(own)
    const stranger = await signUp(own)
    const token = await links.request(stranger.email)
    await signInByLink(own, token)
    const second = await links.request(stranger.email, 2)
    const [warning, plain] = await links.mails.to(stranger.email, 'magicLink', 2)
    t.match(warning?.text, /removes everything that gives access to the account now: password, sessions/)
    t.notMatch(plain?.text, /confirmed/)
    t.equal(plain?.subject, 'Your link to sign in')
    for (const content of [
      `https://app.example.com/x/magic-link?token=${second}`,
      'Example & Co',
      'works once, for ten minutes, in any browser',
    ])
      t.ok(plain?.text?.includes(content), content)
    t.notMatch((await own.inject('/magic-link?token=x')).statusCode, 200, 'WEB_URL has the page')
  })

  t.test('the outcomes are those of the method in the metrics', async t => {
    const { email } = await signUp(app)
    const token = await links.request(email)
    const before = await readMetrics(app)
    for (const each of ['x', token, token]) await signInByLink(app, each)
    const grown = growth(before, await readMetrics(app))
    const method = 'magicLink'
    t.equal(grown('gatehouse_sign_ins_total', { method, outcome: 'succeeded' }), 1)
    t.equal(grown('gatehouse_sign_ins_total', { method, outcome: 'wrong_credentials' }), 2)
    t.equal(grown('gatehouse_sign_ins_total'), 3)
  })

  t.test('neither the database nor the log has the token', async t => {
    const DATABASE_URL = await newDatabase(t)
    const log = logCapture()
    const own = await build(t, {
      env: { ...MAILED_SIGN_INS, DATABASE_URL, LOG_LEVEL: 'trace', LOG_REQUESTS: 'on' },
      logStream: log.stream,
    })
    const { id, email } = await signUp(own)
    const token = await linksOf(own).request(email)
    const rows = await storedRows(DATABASE_URL)
    t.match(rows, id)
    t.notOk(rows.includes(token))
    const page = await own.inject(`/magic-link?token=${token}`)
    t.equal(page.statusCode, 200)
    for (const each of [`${token}x`, token, token]) await signInByLink(own, each)
    await own.close()
    t.ok(log.records().length > 5)
    for (const secret of [token, email]) t.notOk(log.text().includes(secret), secret)
  })

  t.test('links are removed an hour after they have expired', async t => {
    const DATABASE_URL = await newDatabase(t)
    const own = await build(t, {
      env: { ...MAGIC_LINKS, DATABASE_URL },
      clock: clock.now,
      cleanUpPace: { startWithin: 1, interval: 10, pause: 1 },
    })
    const { email } = await signUp(own)
    await linksOf(own).request(email)
    const rows = async () => /"email_codes",\[(.*?)\]/.exec(await storedRows(DATABASE_URL))?.[1] ?? ''
    t.match(await rows(), email)
    clock.advance(70 * MINUTE + 1)
    t.equal(await until(rows, found => found === '', 30_000), '')
  })

  t.test('S6: of 50 simultaneous uses on two instances one succeeds', async t => {
    const DATABASE_URL = await newDatabase(t)
    const apps = [
      await build(t, { env: { ...MAILED_SIGN_INS, DATABASE_URL } }),
      await build(t, { env: { ...MAILED_SIGN_INS, DATABASE_URL } }),
    ] as const
    for (let round = 0; round < 5; round += 1) {
      const { email } = await signUp(apps[0])
      const token = await linksOf(apps[0]).request(email)
      const responses = await Promise.all(
        Array.from({ length: 50 }, (_, index) => signInByLink(apps[index % 2] as FastifyInstance, token)),
      )
      const winners = responses.filter(({ statusCode }) => statusCode === 200)
      t.equal(winners.length, 1)
      t.equal(responses.filter(({ statusCode }) => statusCode === 400).length, 49)
      t.equal(await accountStatus(apps[1], winners[0]?.json().accessToken), 200)
    }
  })
})
