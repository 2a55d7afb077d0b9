/**
 * REQUIRE_EMAIL_VERIFICATION=true (docs/design.md, "Account life cycle"): a sign-up is pending until its address is confirmed. Until then
 * it is nowhere to be found, and nothing tells a free address from a taken one.
 */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import pg from 'pg'
import t from 'tap'
import { anonymous, newEvent } from '#core/audit-log/event'
import { storedPendingSignUps } from '#core/email-confirmation/stored-pending-sign-ups'
import { RATE_LIMITS } from '#core/rate-limits/limits'
import { newSignUpFields } from '#core/users/fields'
import { POSTGRES } from '#storage/postgres/dialect'
import { SQLITE } from '#storage/sqlite/dialect'
import { call, changeEmail, forgot, reset, verify } from '../support/account-routes.ts'
import { allEvents, createUser } from '../support/admin-routes.ts'
import {
  accountStatus,
  asAdmin,
  bearer,
  build,
  freshEmail,
  logCapture,
  manualClock,
  PASSWORD,
  signIn,
  updateUser,
} from '../support/build.ts'
import { exportAll, importAll } from '../support/bulk-users.ts'
import { EMAIL_CODES, requestCode, signInByCode } from '../support/email-codes.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { perAddress } from '../support/limits.ts'
import { mailbox, SUBJECT } from '../support/mailbox.ts'
import { requestOptions } from '../support/passkeys.ts'
import { createDatabase, newDatabase } from '../support/postgres.ts'
import { storedRows } from '../support/stored-rows.ts'
import { createProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'

const NEW = 'another long pass phrase 8'
const HOUR = 3_600_000
const DAY = 24 * HOUR

/** Milliseconds until something that is missing counts as a failure. */
const DEADLINE = 20_000

/** Operations that every process runs by itself from time to time. */
const IN_BACKGROUND = /^(?:jobs|webhooks)\./

const REQUIRED = { REQUIRE_EMAIL_VERIFICATION: 'true' }

/** One pass a second. */
const OFTEN = { startWithin: 1, interval: 10, pause: 1 }

/** What a client sees, except what differs from request to request. */
const seen = ({ statusCode, headers, body }: LightMyRequestResponse) => {
  const { date: _date, 'x-request-id': _id, ...others } = headers
  return { statusCode, headers: others, body }
}

const ask = (app: FastifyInstance, email: string, fields: object = {}) =>
  call(app, 'POST', '/account/sign-up', { email, password: PASSWORD, ...fields })

const adminGet = async (app: FastifyInstance, path: string) =>
  (await call(app, 'GET', path, undefined, asAdmin)).json()

/** @returns an account whose address a stranger may try. */
const holderOf = (app: FastifyInstance, fields: object = {}) =>
  createUser(app, { password: `${PASSWORD} of the holder`, emailVerified: true, ...fields })

t.test('a sign-up has the same statements for a free and a taken address', t => {
  const event = newEvent('user.sign-up-requested', anonymous(null), null, 1_000)
  const signUp = {
    digest: 'a7',
    email: 'ann@example.com',
    passwordHash: 'hash',
    fields: newSignUpFields({}),
    createdAt: 1_000,
    expiresAt: 2_000,
  }
  for (const dialect of [SQLITE, POSTGRES]) {
    const run = (holder: string | null, maySend: boolean) => {
      const statements: unknown[] = []
      const steps = storedPendingSignUps.operations.addPendingSignUp(signUp, event, 'user.sign-up-repeated')
      const rows = [[{ holder }], maySend ? [{ digest: 'a7' }] : []]
      for (let step = steps.next(); !step.done; step = steps.next(rows[statements.length - 1] ?? [])) {
        const { text, values } = step.value
        statements.push([typeof text === 'function' ? text(dialect) : text, values])
      }
      return statements
    }
    const statements = run(null, true)
    t.ok(statements.length > 0)
    t.strictSame(run('01890000-0000-7000-8000-000000000000', true), statements)
    t.strictSame(run('01890000-0000-7000-8000-000000000000', false), statements, 'after five mails')
    t.strictSame(run(null, false), statements)
  }
  t.end()
})

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const clock = manualClock()
  const DATABASE_URL = await newDatabase(t)
  const env = { ...REQUIRED, ...EMAIL_CODES, DATABASE_URL }
  const operations: string[] = []
  const recorder = {
    record<Result>(name: string, run: () => Result): Result {
      if (!IN_BACKGROUND.test(name)) operations.push(name)
      return run()
    },
  }
  const tracing = { recorderOf: () => recorder }
  const app = await build(t, { env, clock: clock.now, tracing })
  const mails = mailbox(app)

  /** An address in each state that a stranger could want to know of. */
  const addresses = async () => {
    const disabled = await holderOf(app)
    await updateUser(app, disabled.id, { disabled: true })
    const pending = freshEmail('pending')
    await ask(app, pending, { password: NEW })
    const rejected = freshEmail('rejected')
    await ask(app, rejected, { password: NEW })
    const token = await mails.token(rejected, 'signUp')
    t.equal((await call(app, 'POST', '/account/verify-email/reject', { token })).statusCode, 200)
    return {
      free: freshEmail('free'),
      taken: (await holderOf(app)).email,
      'taken, without a password': (await createUser(app, { emailVerified: true })).email,
      'taken, never confirmed': (await holderOf(app, { emailVerified: false })).email,
      'taken, disabled': disabled.email,
      pending,
      rejected,
    }
  }

  t.test('a sign-up has the same response for every address', async t => {
    for (const [title, email] of Object.entries(await addresses()))
      for (const written of [email, ` ${email.toUpperCase()} `]) {
        const response = seen(await ask(app, written))
        t.match(response, { statusCode: 202, body: '{"status":"accepted"}' }, title)
        t.strictSame(response, seen(await ask(app, freshEmail())), title)
        t.notOk(response.headers['set-cookie'] ?? response.headers.location, title)
      }
  })

  t.test('with rate limits too, and each address counts alike', async t => {
    const limited = await build(t, { env: { ...env, RATE_LIMIT: 'on' }, clock: clock.now })
    const from = async (email: string, remoteAddress: string) => {
      const responses = []
      for (let sent = 0; sent < 22; sent += 1)
        responses.push(
          seen(
            await limited.inject({
              method: 'POST',
              url: '/account/sign-up',
              payload: { email, password: PASSWORD },
              remoteAddress,
            }),
          ),
        )
      return responses.map(({ headers, ...others }) => ({
        ...others,
        // The seconds that are left of the window go on.
        headers: {
          ...headers,
          ratelimit: String(headers.ratelimit).replace(/t=\d+/g, ''),
          'retry-after': '',
        },
      }))
    }
    const free = await from(freshEmail(), '198.51.100.1')
    t.equal(free.at(-1)?.statusCode, 429)
    t.strictSame(await from((await holderOf(app)).email, '198.51.100.2'), free)
  })

  t.test('invalid input has the same error for every address', async t => {
    const { free, ...others } = await addresses()
    const inputs = [
      { password: 'short' },
      { password: 'password' },
      { age: 7 },
      { firstName: 7 },
      { email: 7 },
    ]
    for (const fields of inputs) {
      const expected = seen(await ask(app, free, fields))
      t.equal(expected.statusCode, 400)
      for (const [title, email] of Object.entries(others))
        t.strictSame(seen(await ask(app, email, fields)), expected, title)
    }
  })

  t.test('a sign-up runs the same operations of the store, until its mail is sent', async t => {
    for (const [title, email] of Object.entries(await addresses())) {
      await until(
        () => operations.length,
        length => length === operations.length,
        DEADLINE,
      )
      const sent = (await mails.all()).length
      operations.splice(0)
      await ask(app, email)
      t.strictSame(operations, ['pending-sign-ups.addPendingSignUp'], title)
      await until(
        async () => (await mails.all()).length,
        length => length > sent,
        DEADLINE,
      )
      t.strictSame(operations, ['pending-sign-ups.addPendingSignUp'], `${title}: when the mail is sent`)
    }
  })

  /** Every later request that could tell a stranger more, after a sign-up with an address and a password of the stranger. */
  const LATER: Record<string, (email: string, token: string) => Promise<LightMyRequestResponse>> = {
    'sign-in with the chosen password': email => signIn(app, email),
    'sign-in with another password': email => signIn(app, email, NEW),
    'another sign-up': email => ask(app, email),
    'another sign-up with another password': email => ask(app, email, { password: NEW }),
    'a forgotten password': email => forgot(app, email),
    'a mailed code': email => requestCode(app, email),
    'sign-in with a guessed code': email => signInByCode(app, email, '12345678'),
    "another user's change to the address": (email, token) =>
      changeEmail(app, token, { email, password: `${PASSWORD} of the holder` }),
    'a search by the chosen name': (_email, token) =>
      call(app, 'GET', '/users?search=Mallory', undefined, bearer(token)),
    'a search by the address': (email, token) =>
      call(app, 'GET', `/users?search=${encodeURIComponent(email)}`, undefined, bearer(token)),
    'a made-up link': () => verify(app, 'x'.repeat(43)),
    'a made-up reset': () => reset(app, 'x'.repeat(43), NEW),
  }

  t.test('no later request tells a free address from a taken one', async t => {
    const strangerToken = async (): Promise<string> =>
      (await signIn(app, (await holderOf(app)).email, `${PASSWORD} of the holder`)).json().accessToken
    const { free, ...others } = await addresses()
    for (const email of [free, ...Object.values(others)])
      t.equal((await ask(app, email, { lastName: 'Mallory' })).statusCode, 202)
    for (const [request, send] of Object.entries(LATER)) {
      const expected = seen(await send(free, await strangerToken()))
      t.ok(expected.statusCode < 500 && expected.statusCode !== 404, `${request}: ${expected.statusCode}`)
      for (const [title, email] of Object.entries(others))
        t.strictSame(seen(await send(email, await strangerToken())), expected, `${request}: ${title}`)
    }
    const { publicKey, ...rest } = (await requestOptions(app)).json()
    t.notOk(JSON.stringify([publicKey, rest]).includes('allowCredentials":[{'), 'passkeys name no account')
  })

  t.test('guesses wait alike for a free and a taken address', async t => {
    const loginThrottle = { freeAttempts: 5, window: 900, initialDelay: 600, maxDelay: 900 }
    const rateLimits = { ...RATE_LIMITS, perAddress: perAddress(), loginThrottle }
    const limited = await build(t, { env: { ...env, RATE_LIMIT: 'on' }, clock: clock.now, rateLimits })
    const statuses = async (email: string) => {
      await ask(limited, email)
      const found = []
      for (let guess = 0; guess < 8; guess += 1) found.push((await signIn(limited, email)).statusCode)
      return found
    }
    const free = await statuses(freshEmail())
    t.equal(free.at(-1), 429)
    t.strictSame(await statuses((await holderOf(app)).email), free)
  })

  t.test('a pending sign-up is in no list, count, export or document', async t => {
    const { accessToken } = (
      await signIn(app, (await holderOf(app)).email, `${PASSWORD} of the holder`)
    ).json()
    const count = async () => [
      (await adminGet(app, '/admin/users?count=true&limit=1')).total,
      (await adminGet(app, '/admin/status')).users,
      (await exportAll(app)).length,
    ]
    const before = await count()
    const email = freshEmail('hidden')
    await ask(app, email, { firstName: 'Zebulon', lastName: 'Quagmire' })
    const token = await mails.token(email, 'signUp')
    t.strictSame(await count(), before)
    const pages = [
      await call(app, 'GET', '/users?search=Quagmire', undefined, bearer(accessToken)),
      await call(app, 'GET', '/admin/users?search=Quagmire', undefined, asAdmin),
      await call(app, 'GET', `/admin/users?email=${encodeURIComponent(email)}`, undefined, asAdmin),
      await call(app, 'GET', '/admin/users/export', undefined, asAdmin),
      await call(app, 'GET', '/admin/events?limit=100', undefined, asAdmin),
      await call(app, 'GET', '/admin/status', undefined, asAdmin),
    ]
    for (const { statusCode, body } of pages) {
      t.equal(statusCode, 200)
      t.notMatch(body, /Quagmire|Zebulon/)
      t.notOk(body.includes(email))
    }
    t.notOk((await storedRows(DATABASE_URL)).includes(token), 'the store has a digest of the token')
    t.notOk((await storedRows(DATABASE_URL)).includes(PASSWORD))
    const opened = await verify(app, token)
    t.match(opened.json(), { user: { email, firstName: 'Zebulon', lastName: 'Quagmire' } })
    t.strictSame(
      await count(),
      before.map(each => each + 1),
      'now it is',
    )
    t.notOk((await storedRows(DATABASE_URL)).includes('pending.sign-up'))
  })

  t.test('the log has the request without a user, and the holder has the repeated one', async t => {
    const holder = await holderOf(app)
    const before = (await allEvents(app)).length
    await ask(app, freshEmail())
    await ask(app, holder.email)
    const events = (await allEvents(app)).slice(0, -before)
    t.match(
      events.toReversed().map(({ type, userId, actor }) => ({ type, userId, actor: actor.type })),
      [
        { type: 'user.sign-up-requested', userId: null, actor: 'anonymous' },
        { type: 'user.sign-up-repeated', userId: holder.id, actor: 'anonymous' },
      ],
    )
    t.equal(events.length, 2)
  })

  t.test('the owner of a taken address is told, and nothing of the account changes', async t => {
    const holder = await holderOf(app, { firstName: 'Ann' })
    const account = await adminGet(app, `/admin/users/${holder.id}`)
    await ask(app, holder.email, { firstName: 'Eve' })
    const [notice] = await mails.to(holder.email, 'accountExists')
    t.notMatch(notice?.text, /token/i, 'without a link that confirms or resets')
    t.strictSame(await adminGet(app, `/admin/users/${holder.id}`), account)
    t.equal((await signIn(app, holder.email, `${PASSWORD} of the holder`)).statusCode, 200)
    t.equal((await signIn(app, holder.email)).statusCode, 401)
  })

  t.test('a confirmed sign-up opens the account with a session, and its link works once', async t => {
    const email = freshEmail()
    await ask(app, email, { firstName: 'Ann' })
    const token = await mails.token(email, 'signUp')
    const opened = await verify(app, token)
    t.equal(opened.statusCode, 200)
    t.strictSame(Object.keys(opened.json()).sort(), ['accessToken', 'expiresAt', 'user'])
    t.match(opened.json().user, { email, firstName: 'Ann', emailVerified: true })
    t.equal(opened.headers['cache-control'], 'no-store')
    t.equal(await accountStatus(app, opened.json().accessToken), 200)
    errorsAt(t, await verify(app, token), 400, ['token'])
    const types = (await allEvents(app, { userId: opened.json().user.id })).map(({ type }) => type)
    t.ok(types.includes('user.signed-up'))
    t.equal((await signIn(app, email)).statusCode, 200)
  })

  t.test('a pending address is free for everybody else', async t => {
    const [created, imported, changed] = [freshEmail(), freshEmail(), freshEmail()]
    for (const email of [created, imported, changed]) await ask(app, email)
    t.ok(await createUser(app, { email: created, emailVerified: true }))
    t.match(await importAll(app, [{ email: imported, emailVerified: true }]), [{ status: 'created' }, {}])
    const user = await holderOf(app)
    const { accessToken } = (await signIn(app, user.email, `${PASSWORD} of the holder`)).json()
    await changeEmail(app, accessToken, { email: changed, password: `${PASSWORD} of the holder` })
    const link = await mails.token(changed, 'emailChange')
    t.equal((await verify(app, link, `${PASSWORD} of the holder`)).statusCode, 200)
    for (const email of [created, imported, changed]) {
      errorsAt(t, await verify(app, await mails.token(email, 'signUp')), 409, ['email'])
      t.equal((await signIn(app, email)).statusCode, 401, "the stranger's password")
    }
  })

  t.test('a sign-up is pending for a day', async t => {
    for (const [wait, isPending] of [
      [DAY - 1, true],
      [DAY, false],
    ] as const) {
      const email = freshEmail()
      await ask(app, email)
      const token = await mails.token(email, 'signUp')
      clock.advance(wait)
      const page = await call(app, 'GET', `/account/verify-email?token=${token}`, undefined, {
        accept: 'application/json',
      })
      t.equal(page.statusCode, isPending ? 200 : 400)
      const opened = await verify(app, token)
      if (isPending) t.equal(opened.statusCode, 200)
      else {
        errorsAt(t, opened, 400, ['token'])
        errorsAt(t, await call(app, 'POST', '/account/verify-email/reject', { token }), 400, ['token'])
        t.equal((await signIn(app, email)).statusCode, 401)
      }
    }
  })

  t.test('five mails an hour go to one address, free or taken, of any client', async t => {
    const fresh = await build(t, { env: { ...REQUIRED, DATABASE_URL }, clock: clock.now })
    const free = freshEmail()
    const { email: taken } = await holderOf(fresh)
    const box = mailbox(fresh)
    for (let sent = 0; sent < 7; sent += 1)
      for (const email of [free, taken]) t.equal((await ask(fresh, email)).statusCode, 202)
    await box.to(free, 'signUp', 5)
    await box.to(taken, 'accountExists', 5)
    clock.advance(HOUR)
    for (const email of [free, taken]) await ask(fresh, email)
    await box.to(free, 'signUp', 6)
    await box.to(taken, 'accountExists', 6)
    await fresh.close()
    const all = (await box.all()).map(({ to, subject }) => `${to?.[0]?.address} ${subject}`)
    t.equal(all.filter(each => each === `${free} ${SUBJECT.signUp}`).length, 6)
    t.equal(all.filter(each => each === `${taken} ${SUBJECT.accountExists}`).length, 6)
  })

  t.test('twenty simultaneous sign-ups with one address mail it five times', async t => {
    const instances = [
      await build(t, { env: { ...REQUIRED, DATABASE_URL }, clock: clock.now }),
      await build(t, { env: { ...REQUIRED, DATABASE_URL }, clock: clock.now }),
    ] as const
    const free = freshEmail()
    const { email: taken } = await holderOf(app)
    for (const email of [free, taken]) {
      const asked = Array.from({ length: 20 }, (_, index) => ask(instances[index % 2 === 0 ? 0 : 1], email))
      for (const { statusCode } of await Promise.all(asked)) t.equal(statusCode, 202)
    }
    const counts: Record<string, number> = {}
    for (const instance of instances)
      for (const email of [free, taken])
        counts[email] = (counts[email] ?? 0) + (await mailbox(instance).final(email)).length
    t.strictSame(counts, { [free]: 5, [taken]: 5 })
  })

  t.test('expired sign-ups are removed, those that are pending are not', async t => {
    const url = await newDatabase(t)
    const options = { env: { ...REQUIRED, DATABASE_URL: url }, clock: clock.now, cleanUpPace: OFTEN }
    const cleaned = await build(t, options)
    const [old, recent] = [freshEmail('old'), freshEmail('recent')]
    await ask(cleaned, old)
    await mailbox(cleaned).token(old, 'signUp')
    clock.advance(DAY - 1)
    await ask(cleaned, recent)
    const token = await mailbox(cleaned).token(recent, 'signUp')
    t.ok((await storedRows(url)).includes(old))
    clock.advance(2 * HOUR)
    const rows = await until(
      () => storedRows(url),
      text => !text.includes(old),
      DEADLINE,
    )
    t.notOk(rows.includes(old), 'nothing of it is left')
    t.equal((await verify(cleaned, token)).statusCode, 200)
  })

  t.test('a restart keeps what is pending, and without the setting links still work', async t => {
    const url = await newDatabase(t)
    const first = await build(t, { env: { ...REQUIRED, DATABASE_URL: url }, clock: clock.now })
    const tokens = []
    const emails = [freshEmail(), freshEmail()]
    for (const email of emails) {
      await ask(first, email)
      tokens.push(await mailbox(first).token(email, 'signUp'))
    }
    await first.close()
    const second = await build(t, { env: { ...REQUIRED, DATABASE_URL: url }, clock: clock.now })
    t.match((await verify(second, tokens[0])).json(), { user: { email: emails[0] } })
    await second.close()
    const without = await build(t, { env: { DATABASE_URL: url }, clock: clock.now })
    t.match((await verify(without, tokens[1])).json(), { user: { email: emails[1] } })
  })

  t.test('accounts of before the setting keep its rules: they confirm with their password', async t => {
    const url = await newDatabase(t)
    const before = await build(t, { env: { ...EMAIL_CODES, DATABASE_URL: url }, clock: clock.now })
    const email = freshEmail('before')
    const signedUp = await ask(before, email)
    t.equal(signedUp.statusCode, 201)
    const token = await mailbox(before).token(email, 'verification')
    const after = await build(t, { env: { ...env, DATABASE_URL: url }, clock: clock.now })
    globalErrorOf(t, await signIn(after, email), 403, 'not before it is confirmed')
    t.equal((await signIn(after, email, NEW)).statusCode, 401)
    await ask(after, email, { password: NEW })
    await mailbox(after).to(email, 'accountExists')
    const confirmed = await verify(after, token)
    t.match(confirmed.json(), { id: signedUp.json().user.id, emailVerified: true })
    t.equal((await signIn(after, email)).statusCode, 200)
    t.equal((await signIn(after, email, NEW)).statusCode, 401)
  })

  t.test('the log of the service names neither the address nor the token', async t => {
    const log = logCapture()
    const logged = await build(t, {
      env: { ...REQUIRED, LOG_REQUESTS: 'on' },
      clock: clock.now,
      logStream: log.stream,
    })
    const [email, { email: taken }] = [freshEmail('logged'), await holderOf(logged)]
    for (const each of [email, taken]) await ask(logged, each)
    const token = await mailbox(logged).token(email, 'signUp')
    await verify(logged, token, NEW)
    await call(logged, 'GET', `/account/verify-email?token=${token}`)
    t.equal((await verify(logged, token)).statusCode, 200)
    await logged.close()
    for (const secret of [email, taken, token, PASSWORD]) t.notOk(log.text().includes(secret))
    t.same(log.problems(), [])
  })
})

/** The statements that clients of PostgreSQL execute, by their names, or by their text if they have none. */
const statementsIn = () => {
  const executed: string[] = []
  let unnamed = ''
  const textAt = (chunk: Buffer, at: number) => chunk.toString('utf8', at, chunk.indexOf(0, at))
  const read = (type: string, body: Buffer): void => {
    const first = textAt(body, 0)
    const second = () => textAt(body, Buffer.byteLength(first) + 1)
    if (type === 'Q') executed.push(first)
    if (type === 'P' && first === '') unnamed = second()
    if (type === 'B') executed.push(second() || unnamed)
  }
  return {
    executed,
    onRequest(chunk: Buffer): void {
      // A message without a type opens a connection.
      for (let at = 0; at < chunk.length && chunk[at] !== 0; at += 1 + chunk.readInt32BE(at + 1))
        read(String.fromCharCode(chunk[at] ?? 0), chunk.subarray(at + 5))
    },
    /** Those of requests: heartbeats, and looks for webhooks, are sent all the time. */
    take: () => executed.splice(0).filter(text => !/^INSERT INTO process_leases|^webhooks\./.test(text)),
  }
}

t.test(
  'PostgreSQL gets the same statements for a free and a taken address, until the mail is sent',
  async t => {
    const statements = statementsIn()
    const proxy = await createProxy(t, await newDatabase(t), statements.onRequest)
    const env = { ...REQUIRED, RATE_LIMIT: 'on', DATABASE_URL: proxy.url }
    const app = await build(t, { env, rateLimits: { ...RATE_LIMITS, perAddress: perAddress() } })
    const mails = mailbox(app)
    const holder = await holderOf(app)
    await ask(app, freshEmail())
    await ask(app, holder.email)
    await mails.to(holder.email, 'accountExists')
    statements.take()
    const seen: string[][] = []
    for (let sent = 2; sent <= 5; sent += 1) {
      const email = freshEmail()
      await ask(app, email)
      await mails.to(email, 'signUp')
      seen.push(statements.take())
      await ask(app, holder.email)
      await mails.to(holder.email, 'accountExists', sent)
      seen.push(statements.take())
    }
    t.ok((seen[0]?.length ?? 0) > 3, 'the statements of a transaction')
    for (const each of seen) t.strictSame(each, seen[0])
    await app.close()
    t.same(
      statements.take().filter(text => /users|events|sign.ups/.test(text)),
      [],
      'and none later',
    )
  },
)

t.test('a sign-up does not wait for a change of the account that has its address', async t => {
  const url = await createDatabase(t)
  const app = await build(t, { env: { ...REQUIRED, DATABASE_URL: url } })
  const holder = await holderOf(app)
  const lock = new pg.Client({ connectionString: url })
  await lock.connect()
  t.teardown(() => lock.end())
  await lock.query('BEGIN')
  await lock.query('SELECT FROM users WHERE email = $1 FOR NO KEY UPDATE', [holder.email])
  t.equal((await ask(app, holder.email)).statusCode, 202)
  await lock.query('COMMIT')
  const all = await until(mailbox(app).all, mails => mails.length > 0, DEADLINE)
  t.match(all, [{ subject: SUBJECT.accountExists }], 'the notice is mailed then')
})
