/**
 * REQUIRE_EMAIL_VERIFICATION=true (docs/design.md, "Account life cycle"): sign-up reveals no accounts, and an account exists once it is
 * confirmed.
 */
import type { FastifyInstance } from 'fastify'
import pg from 'pg'
import t, { type Test } from 'tap'
import { accountOf, call, changeEmail, forgot, reset, verify } from '../support/account-routes.ts'
import { accountStatus, asAdmin, build, freshEmail, PASSWORD, signIn, updateUser } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { hasToken, mailbox, SUBJECT, tokenIn } from '../support/mailbox.ts'
import { createDatabase } from '../support/postgres.ts'

const NEW = 'another long pass phrase 8'

await onEnginesOfRun(t, async (t, { build }) => {
  const options = { hasher: quickHashing, env: { REQUIRE_EMAIL_VERIFICATION: 'true' } }
  const app = await build(t, options)
  const mails = mailbox(app)

  const ask = (app: FastifyInstance, email: string, fields: object = {}) =>
    call(app, 'POST', '/account/sign-up', { email, password: PASSWORD, ...fields })

  /** A user with a verified e-mail and a session. */
  const member = async (t: Pick<Test, 'equal'>) => {
    const email = freshEmail()
    t.equal((await ask(app, email)).statusCode, 202)
    const { accessToken, user } = (await verify(app, await mails.token(email, 'signUp'))).json()
    return { email, id: user.id, token: accessToken }
  }

  const memberOf = async (app: FastifyInstance) => {
    const email = freshEmail()
    const account = { email, password: PASSWORD, emailVerified: true }
    await call(app, 'POST', '/admin/users', account, asAdmin)
    return { email, token: (await signIn(app, email)).json().accessToken as string }
  }

  /** A user from before an upgrade, or of an administrator, whose e-mail is not verified. */
  const unverified = async () => {
    const email = freshEmail()
    const account = { email, password: PASSWORD, emailVerified: false }
    const { id } = (await call(app, 'POST', '/admin/users', account, asAdmin)).json()
    return { email, id }
  }

  const listed = async (app: FastifyInstance, email: string) =>
    (await call(app, 'GET', `/admin/users?email=${email}`, undefined, asAdmin)).json().results

  t.test('sign-up has the same response for new and existing addresses (202)', async t => {
    const known = await member(t)
    const pending = freshEmail()
    await ask(app, pending)
    const seen = []
    for (const email of [freshEmail(), known.email, pending, ` ${known.email.toUpperCase()}`]) {
      const { statusCode, headers, body } = await ask(app, email, { firstName: 'Eve', password: NEW })
      const { date: _date, 'x-request-id': _id, ...others } = headers
      seen.push({ statusCode, body, headers: others })
    }
    for (const each of seen) t.strictSame(each, seen[0])
    t.strictSame([seen[0]?.statusCode, seen[0]?.body], [202, '{"status":"accepted"}'])
    t.notOk(seen[0]?.headers['set-cookie'] ?? seen[0]?.headers.location, 'no session is opened')
    const accounts = await listed(app, known.email)
    t.match(accounts, [{ id: known.id, firstName: null, emailVerified: true }], 'nothing has changed')
    t.equal(accounts.length, 1)
    const [notice] = await mails.to(known.email, 'accountExists', 2)
    t.notOk(notice && hasToken(notice))
    t.match(notice?.text, '/forgot-password')
    t.equal((await signIn(app, known.email)).statusCode, 200, 'the password is the old one')
    t.equal((await signIn(app, known.email, NEW)).statusCode, 401)
    t.equal(await accountStatus(app, known.token), 200)
    t.same(await listed(app, pending), [], 'nothing is listed until it is confirmed')
    t.equal((await signIn(app, pending, NEW)).statusCode, 401)
    await forgot(app, known.email)
    const token = await mails.token(known.email, 'passwordReset')
    t.equal((await reset(app, token, NEW)).statusCode, 200, 'the holder can choose another password')
    t.equal((await signIn(app, known.email, NEW)).statusCode, 200)
  })

  t.test('the link opens the account with the password of the sign-up, and signs in', async t => {
    const email = freshEmail()
    await ask(app, email, { firstName: 'Ann', lastName: 'Lee' })
    t.equal((await signIn(app, email)).statusCode, 401)
    const token = await mails.token(email, 'signUp')
    globalErrorOf(t, await call(app, 'POST', '/account/verify-email', { token }), 403)
    errorsAt(t, await verify(app, token, NEW), 400, ['password'])
    const opened = await verify(app, token)
    t.equal(opened.statusCode, 200)
    t.match(opened.json(), { user: { email, emailVerified: true, firstName: 'Ann', lastName: 'Lee' } })
    t.match(opened.headers['set-cookie'], /^ACCESS_TOKEN=/)
    t.equal(await accountStatus(app, opened.json().accessToken), 200)
    errorsAt(t, await verify(app, token), 400, ['token'], 'once')
    t.equal((await signIn(app, email)).statusCode, 200)
  })

  t.test('invalid input is a 400 for new and existing addresses', async t => {
    const known = await member(t)
    for (const email of [freshEmail(), known.email]) {
      const local = email.slice(0, email.indexOf('@'))
      for (const password of ['short', 'password', email, local]) {
        errorsAt(t, await ask(app, email, { password }), 400, ['password'], password)
      }
      errorsAt(t, await ask(app, email, { age: 7 }), 400, ['age'])
    }
  })

  t.test('a user from before gets 403, only after the correct password', async t => {
    const { email } = await unverified()
    const rejected = await signIn(app, email)
    t.match(globalErrorOf(t, rejected, 403), /verified/)
    t.equal(rejected.headers['set-cookie'], undefined)
    const wrong = await signIn(app, email, NEW)
    t.equal(wrong.body, (await signIn(app, freshEmail(), NEW)).body, 'who guesses learns nothing')
    t.equal(wrong.statusCode, 401)
  })

  t.test('a password reset by mail verifies the address of such a user', async t => {
    const { email } = await unverified()
    t.strictSame((await forgot(app, email)).json(), { status: 'accepted' })
    const response = await reset(app, await mails.token(email, 'passwordReset'), NEW)
    t.match(response.json(), { user: { email, emailVerified: true } })
    t.equal(await accountStatus(app, response.json().accessToken), 200)
    t.equal((await signIn(app, email, NEW)).statusCode, 200)
  })

  t.test('a disabled account is reported only after the correct password, verified or not', async t => {
    const { email, id } = await unverified()
    await updateUser(app, id, { disabled: true })
    globalErrorOf(t, await signIn(app, email), 403)
    t.equal((await signIn(app, email, NEW)).statusCode, 401)
  })

  t.test('a taken address has the response of a free one, and its owner is notified', async t => {
    const [user, other] = [await member(t), await member(t)]
    const free = freshEmail()
    const [taken, accepted] = [
      await changeEmail(app, user.token, { email: other.email, password: PASSWORD }),
      await changeEmail(app, user.token, { email: free, password: PASSWORD }),
    ]
    t.strictSame([taken.statusCode, taken.body], [202, '{"status":"accepted"}'])
    t.strictSame([taken.statusCode, taken.body], [accepted.statusCode, accepted.body])
    t.equal((await mails.to(other.email, 'accountExists')).length, 1)
    const own = await changeEmail(app, user.token, { email: user.email, password: PASSWORD })
    errorsAt(t, own, 400, ['email'])
    const wrong = await changeEmail(app, user.token, { email: other.email, password: NEW })
    errorsAt(t, wrong, 400, ['password'])
    t.match(await accountOf(app, user.token), { email: user.email })
    t.equal((await verify(app, await mails.token(free, 'emailChange'))).statusCode, 200)
    t.match((await signIn(app, free)).json(), { user: { id: user.id } })
  })

  t.test('an address gets five mails of sign-ups an hour, and the response does not reveal it', async t => {
    const app = await build(t, options)
    const mails = mailbox(app)
    const [email, free] = [freshEmail(), freshEmail()]
    await ask(app, email)
    await verify(app, await mails.token(email, 'signUp'))
    for (const each of [email, free])
      for (let sent = 0; sent < 7; sent += 1) t.equal((await ask(app, each)).statusCode, 202)
    await app.close()
    const kinds = (await mails.all()).map(({ to, subject }) => `${to?.[0]?.address} ${subject}`)
    t.equal(kinds.filter(kind => kind === `${email} ${SUBJECT.accountExists}`).length, 5)
    t.equal(kinds.filter(kind => kind === `${free} ${SUBJECT.signUp}`).length, 5)
  })

  t.test('changes of e-mails to one address send five notices an hour', async t => {
    const app = await build(t, options)
    const mails = mailbox(app)
    const { email } = await memberOf(app)
    for (let user = 0; user < 2; user += 1) {
      const { token } = await memberOf(app)
      for (let sent = 0; sent < 4; sent += 1)
        t.equal((await changeEmail(app, token, { email, password: PASSWORD })).statusCode, 202)
    }
    const kinds = await mails.final(email)
    t.equal(kinds.filter(kind => kind === SUBJECT.accountExists).length, 5)
  })

  t.test('of concurrent sign-ups with one address one creates an account', async t => {
    const email = freshEmail()
    const responses = await Promise.all(
      Array.from({ length: 5 }, (_, index) => ask(app, email, { password: `${PASSWORD} ${index}` })),
    )
    t.ok(responses.every(({ statusCode, body }) => statusCode === 202 && body === responses[0]?.body))
    const links = (await mails.to(email, 'signUp', 5)).map(tokenIn)
    const attempts = links.flatMap(token => responses.map((_, index) => ({ token, index })))
    const opened = []
    for (const { token, index } of attempts)
      if ((await verify(app, token, `${PASSWORD} ${index}`)).statusCode === 200) opened.push(index)
    t.equal(opened.length, 1, 'the first confirmation ends the other sign-ups')
    t.equal((await listed(app, email)).length, 1)
    t.equal((await signIn(app, email, `${PASSWORD} ${opened[0]}`)).statusCode, 200)
  })

  t.test('without REQUIRE_EMAIL_VERIFICATION sign-up and sign-in work as usual', async t => {
    const app = await build(t, { hasher: quickHashing })
    const email = freshEmail()
    const signedUp = await ask(app, email)
    t.equal(signedUp.statusCode, 201)
    t.match(signedUp.json(), { user: { email, emailVerified: false } })
    t.equal((await signIn(app, email)).statusCode, 200)
    errorsAt(t, await ask(app, email), 409, ['email'])
    t.strictSame(await mailbox(app).final(email), [SUBJECT.verification])
  })
})

t.test('the response does not wait for work that only existing accounts need', async t => {
  const url = await createDatabase(t)
  const env = { REQUIRE_EMAIL_VERIFICATION: 'true', DATABASE_URL: url }
  const app = await build(t, { hasher: quickHashing, env })
  const mails = mailbox(app)
  const [holder, other] = [freshEmail(), freshEmail()]
  for (const email of [holder, other]) {
    await call(app, 'POST', '/account/sign-up', { email, password: PASSWORD })
    await verify(app, await mails.token(email, 'signUp'))
  }
  const { accessToken } = (await signIn(app, other)).json()
  const lock = new pg.Client({ connectionString: url })
  await lock.connect()
  t.teardown(() => lock.end())
  await lock.query('BEGIN')
  await lock.query('SELECT FROM users WHERE email = $1 FOR UPDATE', [holder])
  const response = await changeEmail(app, accessToken, { email: holder, password: PASSWORD })
  t.equal(response.statusCode, 202)
  await lock.query('COMMIT')
  t.equal((await mails.to(holder, 'accountExists')).length, 1)
})
