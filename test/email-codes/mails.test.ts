/** The mail with a code, and how many are sent (docs/mail.md; docs/design.md, "E-mail codes"). */
import t from 'tap'
import { RATE_LIMITS } from '#core/rate-limits/limits'
import { call } from '../support/account-routes.ts'
import { freshEmail, manualClock, signUp, updateUser } from '../support/build.ts'
import { codesOf, EMAIL_CODES, requestCode, signInByCode } from '../support/email-codes.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { globalErrorOf } from '../support/error-response.ts'
import { perAddress } from '../support/limits.ts'
import { SUBJECT } from '../support/mailbox.ts'

const HOUR = 3_600_000

await onEnginesOfRun(t, async (t, { build }) => {
  t.test('the mail has the code, how long it works, and that nobody asks for it', async t => {
    const env = {
      ...EMAIL_CODES,
      PRODUCT_NAME: 'Example & Co',
      WEB_URL: 'https://app.example.com',
      PAGES: 'off',
    }
    const app = await build(t, { env })
    const codes = codesOf(app)
    const user = await signUp(app)
    await updateUser(app, user.id, { emailVerified: true })
    const code = await codes.request(user.email)
    const [mail] = await codes.mails.to(user.email, 'emailCode')
    t.equal(mail?.subject, 'Your code to sign in')
    for (const part of [mail?.text ?? '', mail?.html?.replaceAll('&amp;', '&') ?? '']) {
      for (const content of [code, 'Example & Co', 'works once, for ten minutes', 'Nobody will ever ask you'])
        t.ok(part.includes(content), content)
      t.notOk(/confirm/i.test(part))
      t.notOk(part.includes('href'), 'nothing to click')
    }
    t.match(code, /^\d{8}$/)
    t.notOk(mail?.subject?.includes(code), 'lock screens show subjects')
  })

  t.test('to an address that was never confirmed, the mail warns of an account of somebody else', async t => {
    const app = await build(t, { env: { ...EMAIL_CODES, WEB_URL: 'https://app.example.com', PAGES: 'off' } })
    const codes = codesOf(app)
    const { email } = await signUp(app)
    await signInByCode(app, email, await codes.request(email))
    await codes.request(email, 2)
    const [first, second] = await codes.mails.to(email, 'emailCode', 2)
    t.match(first?.text, /has not been confirmed yet/)
    t.match(
      first?.text,
      /removes everything that gives access to the account now: password, sessions, API keys/,
    )
    t.notMatch(first?.html, /href/)
    t.notMatch(second?.text, /confirmed/)
  })

  t.test('codes are random: digits of every place differ, with leading zeros', async t => {
    const app = await build(t, { env: EMAIL_CODES })
    const codes = codesOf(app)
    const found = new Set<string>()
    const users = await Promise.all(Array.from({ length: 20 }, () => signUp(app)))
    await Promise.all(users.map(async ({ email }) => found.add(await codes.request(email))))
    t.equal(found.size, users.length)
    for (let place = 0; place < 8; place += 1)
      t.ok(new Set([...found].map(code => code[place])).size > 2, `digit ${place + 1}`)
  })

  t.test('an account gets five codes an hour, and the response does not reveal it', async t => {
    const app = await build(t, { env: EMAIL_CODES })
    const codes = codesOf(app)
    const { email } = await signUp(app)
    for (let sent = 1; sent <= 5; sent += 1) {
      const code = await codes.request(email, sent)
      t.equal((await signInByCode(app, email, code)).statusCode, 200, 'codes that were used count too')
    }
    for (let refused = 0; refused < 3; refused += 1) t.equal((await requestCode(app, email)).statusCode, 202)
    const subjects = await codes.mails.final(email)
    t.equal(subjects.filter(subject => subject === SUBJECT.emailCode).length, 5)
  })

  t.test('the next code is sent an hour later', async t => {
    const clock = manualClock()
    const app = await build(t, { env: EMAIL_CODES, clock: clock.now })
    const codes = codesOf(app)
    const { email } = await signUp(app)
    for (let sent = 1; sent <= 5; sent += 1) await codes.request(email, sent)
    clock.advance(HOUR)
    t.equal((await signInByCode(app, email, await codes.request(email, 6))).statusCode, 200)
  })

  t.test('codes use up nothing of the limit for each recipient', async t => {
    const rateLimits = {
      ...RATE_LIMITS,
      perAddress: perAddress(),
      perRecipient: { points: 1, seconds: 3_600 },
    }
    const app = await build(t, { env: { ...EMAIL_CODES, RATE_LIMIT: 'on' }, rateLimits })
    const codes = codesOf(app)
    const { email } = await signUp(app)
    await codes.request(email, 1)
    await codes.request(email, 2)
    const expected = [SUBJECT.verification, SUBJECT.emailCode, SUBJECT.emailCode]
    t.strictSame(await codes.mails.final(email), expected)
  })

  t.test('a client address is limited: requests like mails, sign-ins like sign-ins', async t => {
    const rateLimits = { ...RATE_LIMITS, perAddress: perAddress({ mail: 3, 'sign-in': 4 }) }
    const app = await build(t, { env: { ...EMAIL_CODES, RATE_LIMIT: 'on' }, rateLimits })
    const statuses = async (attempt: () => Promise<{ statusCode: number }>, count: number) => {
      const found = []
      for (let index = 0; index < count; index += 1) found.push((await attempt()).statusCode)
      return found
    }
    await call(app, 'POST', '/account/forgot-password', { email: freshEmail() })
    t.same(await statuses(() => requestCode(app, freshEmail()), 3), [202, 202, 429])
    const credentials = { email: freshEmail(), password: 'x' }
    await call(app, 'POST', '/account/sign-in', credentials)
    const guess = () => signInByCode(app, freshEmail(), '12345678')
    t.same(await statuses(guess, 4), [401, 401, 401, 429])
    const limited = await guess()
    globalErrorOf(t, limited, 429)
    t.ok(Number(limited.headers['retry-after']) > 0)
  })
})
