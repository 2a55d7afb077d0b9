/** Sign-up, sign-in, the account, health and readiness (docs/design.md, "Contract"). Validation: validation.test.ts. */
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { newFields } from '#core/users/fields'
import {
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
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { ACCOUNT, hasShape, isPrivateJson } from '../support/response-shapes.ts'

await onEnginesOfRun(t, async (t, { build }) => {
  const DAY = 86_400_000
  const clock = manualClock(Date.UTC(2026, 4, 6, 7, 8, 9, 10))
  const iso = (offset = 0) => new Date(clock.now() + offset).toISOString()
  const app = await build(t, { clock: clock.now, env: { RATE_LIMIT: 'off' } })

  const post = (url: string, payload: Record<string, unknown>, headers = {}) =>
    app.inject({ method: 'POST', url, payload, headers })
  const put = (token: string, payload: Record<string, unknown>) =>
    app.inject({ method: 'PUT', url: '/account', headers: bearer(token), payload })
  const account = async (token: string) =>
    (await app.inject({ url: '/account', headers: bearer(token) })).json()

  t.test('health and readiness are public and support GET and HEAD (§4)', async t => {
    for (const [url, status] of [
      ['/health', 'ok'],
      ['/ready', 'ready'],
    ] as const) {
      const response = await app.inject({ url })
      t.equal(response.statusCode, 200)
      t.match(response.headers['content-type'], /^application\/json/)
      t.strictSame(response.json(), { status })
      const head = await app.inject({ method: 'HEAD', url })
      t.equal(head.statusCode, 200, `HEAD ${url}`)
      t.equal(head.body, '')
    }
  })

  t.test('sign-up returns 201 SignedIn with Location', async t => {
    const email = freshEmail('ada')
    const names = { firstName: 'Ada', lastName: 'Lovelace' }
    const response = await post('/account/sign-up', { email, password: PASSWORD, ...names })
    isPrivateJson(t, response, 201)
    t.equal(response.headers.location, '/account')
    const { accessToken, expiresAt, user, ...rest } = response.json()
    t.strictSame(rest, {}, 'nothing beside token, expiry and user')
    hasShape(t, user, ACCOUNT)
    t.strictSame(user, {
      ...newFields(names),
      id: user.id,
      email,
      emailVerified: false,
      createdAt: iso(),
      updatedAt: iso(),
      lastRequestAt: null,
    })
    t.equal(new Date(expiresAt).toISOString(), expiresAt)
    t.ok(Math.abs(Date.parse(expiresAt) - clock.now() - 30 * DAY) <= 1000, 'ends after 30 days')
    t.notMatch(response.body, PASSWORD)
    const set = response.cookies.find(({ name }) => name === 'ACCESS_TOKEN')
    t.match(
      set,
      { value: accessToken, httpOnly: true, sameSite: 'Lax', path: '/' },
      'the token in the cookie',
    )
    t.strictSame(await account(accessToken), { ...user, lastRequestAt: iso() }, 'and it is kept')
  })

  t.test('names are optional at sign-up and null by default', async t => {
    const response = await post('/account/sign-up', { email: freshEmail(), password: PASSWORD })
    t.match(response.json().user, { firstName: null, lastName: null })
  })

  t.test('a taken e-mail is a 409 under `email`, in any letter case', async t => {
    const { email } = await signUp(app)
    for (const taken of [email, email.toUpperCase(), `  ${email}\t`]) {
      const response = await post('/account/sign-up', { email: taken, password: PASSWORD })
      errorsAt(t, response, 409, ['email'], taken)
      t.notOk(response.headers['set-cookie'], 'no session comes of it')
    }
  })

  t.test('sign-in returns 200 SignedIn with a new session', async t => {
    const { email, id, token } = await signUp(app)
    clock.advance(60_000)
    for (const spelling of [email, email.toUpperCase(), ` ${email} `]) {
      const response = await signIn(app, spelling)
      isPrivateJson(t, response, 200)
      const { accessToken, expiresAt, user, ...rest } = response.json()
      t.strictSame(rest, {})
      t.not(accessToken, token)
      t.equal(new Date(expiresAt).toISOString(), expiresAt)
      hasShape(t, user, ACCOUNT)
      t.match(user, { id, email, lastRequestAt: null, createdAt: iso(-60_000) })
      t.match(response.cookies, [{ name: 'ACCESS_TOKEN', value: accessToken, httpOnly: true }])
    }
    t.equal((await account(token)).id, id, 'the first session goes on')
  })

  t.test('every wrong pair is the same 401 under `credentials`', async t => {
    const { email } = await signUp(app)
    const wrong = await signIn(app, email, `${PASSWORD}.`)
    errorsAt(t, wrong, 401, ['credentials'], 'wrong password')
    t.notOk(wrong.headers['set-cookie'])
    for (const [title, address, password] of [
      ['unknown e-mail', freshEmail(), PASSWORD],
      ['other letter case', email, PASSWORD.toUpperCase()],
      ['not trimmed', email, ` ${PASSWORD} `],
      ['shorter than any password', email, 'x'],
      ['commonly used', email, 'password123'],
    ] as const) {
      const response = await signIn(app, address, password)
      t.equal(response.statusCode, 401, title)
      t.equal(response.body, wrong.body, `${title}: the very same body`)
    }
  })

  t.test('a disabled account is a 403, only after the correct password (§7.2)', async t => {
    const { email, id } = await signUp(app)
    t.equal((await updateUser(app, id, { disabled: true })).statusCode, 200)
    const right = await signIn(app, email)
    globalErrorOf(t, right, 403)
    t.notOk(right.headers['set-cookie'])
    errorsAt(t, await signIn(app, email, `${PASSWORD}.`), 401, ['credentials'], 'wrong password')
  })

  t.test('GET /account returns the own account, by header and by cookie, HEAD too (§4, §5.1)', async t => {
    const { email, id, token } = await signUp(app)
    for (const headers of [bearer(token), cookie(token)]) {
      const response = await app.inject({ url: '/account', headers })
      isPrivateJson(t, response, 200)
      hasShape(t, response.json(), ACCOUNT)
      t.match(response.json(), { id, email })
      const head = await app.inject({ method: 'HEAD', url: '/account', headers })
      isPrivateJson(t, head, 200)
      t.equal(head.body, '')
    }
    globalErrorOf(t, await app.inject({ url: '/account' }), 401, 'no token')
    t.equal((await app.inject({ method: 'HEAD', url: '/account' })).statusCode, 401)
  })

  t.test('PUT /account changes the given fields, and null clears', async t => {
    const { token } = await signUp(app, { firstName: 'Grace', lastName: 'Hopper' })
    const before = await account(token)
    clock.advance(5_000)
    const changed = { ...before, firstName: 'Amazing Grace', updatedAt: iso(), lastRequestAt: iso() }
    const response = await put(token, { firstName: '  Amazing Grace ' })
    isPrivateJson(t, response, 200)
    t.strictSame(response.json(), changed)
    t.strictSame(await account(token), changed, 'at once')
    const cleared = await put(token, { firstName: null, lastName: null })
    t.match(cleared.json(), { firstName: null, lastName: null })
    t.match(await account(token), { firstName: null, lastName: null })
    t.match((await put(token, { firstName: 'A', lastName: 'B' })).json(), { firstName: 'A', lastName: 'B' })
    clock.advance(5_000)
    t.equal((await account(token)).updatedAt, iso(-5_000), 'reading changes nothing')
  })

  t.test('PUT /account requires at least one property and rejects unknown ones', async t => {
    const { token } = await signUp(app, { firstName: 'Kept' })
    globalErrorOf(t, await put(token, {}), 400, 'none')
    for (const property of ['email', 'password', 'disabled', 'emailVerified', 'id', 'createdAt']) {
      const response = await put(token, { firstName: 'Lost', [property]: true })
      errorsAt(t, response, 400, [property])
      t.strictSame(response.json().errors[property], ['is not allowed'])
    }
    errorsAt(t, await put(token, { firstName: 1, lastName: '' }), 400, ['firstName', 'lastName'])
    t.equal((await account(token)).firstName, 'Kept', 'a rejected change changes nothing')
  })

  t.test('concurrent changes of one account lose none', async t => {
    const { token } = await signUp(app)
    const responses = await Promise.all([put(token, { firstName: 'One' }), put(token, { lastName: 'Two' })])
    for (const response of responses) t.equal(response.statusCode, 200)
    t.match(await account(token), { firstName: 'One', lastName: 'Two' })
  })

  t.test('the last request is exact, visible at once and never moves back', async t => {
    const { token } = await signUp(app)
    for (const step of [60_000, 1, 0]) {
      clock.advance(step)
      t.equal((await account(token)).lastRequestAt, iso(), 'the response includes its own request')
    }
    clock.advance(-400)
    t.equal((await account(token)).lastRequestAt, iso(400), 'not even with the clock')
  })

  t.test('the last request of an identified user is noted on every route (§5.1.2)', async t => {
    const cases: Record<string, [identified: boolean, url: string, headers: (token: string) => object]> = {
      'invalid token': [false, '/health', token => bearer(`${token}x`)],
      'bad cookie before a good header': [
        false,
        '/health',
        token => ({ ...bearer(token), ...cookie('bad') }),
      ],
      'no token': [false, '/health', () => ({})],
      public: [true, '/health', bearer],
      'by cookie': [true, '/ready', cookie],
      private: [true, '/users', bearer],
      admin: [true, '/admin/users', token => ({ ...bearer(token), ...asAdmin })],
      'admin, without the key': [true, '/admin/users', bearer],
      'invalid input': [true, '/users?limit=0', bearer],
    }
    const users: Record<string, string> = {}
    clock.advance(1_234)
    for (const [title, [, url, headers]] of Object.entries(cases)) {
      const { email, token } = await signUp(app)
      users[title] = email
      await app.inject({ url, headers: { ...headers(token) } })
    }
    const noted = async (title: string): Promise<string | null> => {
      const url = `/admin/users?email=${users[title]}`
      return (await app.inject({ url, headers: asAdmin })).json().results[0].lastRequestAt
    }
    const expected = iso()
    clock.advance(777)
    for (const [title, [identified]] of Object.entries(cases).reverse()) {
      // Stored within a second (docs/design.md, "Hot path"). If it never is, tap's time limit ends the wait.
      while (identified && (await noted(title)) === null) await setTimeout(20)
      t.equal(await noted(title), identified ? expected : null, title)
    }
  })

  t.test('of a thousand concurrent sign-ups with one e-mail one succeeds', async t => {
    await app.listen({ port: 0, host: '127.0.0.1' })
    // The clients are in the same process: on a busy machine they are not done with sending when the service gives them up.
    Object.assign(app.server, { headersTimeout: 0, requestTimeout: 0 })
    const { port } = app.server.address() as AddressInfo
    const email = freshEmail('thousand')
    const agent = new Agent({ keepAlive: true, maxSockets: 1_000 })
    t.teardown(() => agent.destroy())
    const attempt = async (number: number): Promise<number | undefined> => {
      const body = JSON.stringify({ email: number % 2 ? email : email.toUpperCase(), password: PASSWORD })
      const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
      const call = request({ port, method: 'POST', path: '/account/sign-up', agent, headers })
      call.end(body)
      const [response] = await once(call, 'response')
      response.resume()
      await once(response, 'end')
      return response.statusCode
    }
    const statuses = await Promise.all(Array.from({ length: 1_000 }, (_, number) => attempt(number)))
    const count = (status: number) => statuses.filter(found => found === status).length
    t.equal(count(201), 1, 'one 201')
    t.equal(count(409), 999, `the rest 409, found ${[...new Set(statuses)]}`)
    const list = await app.inject({ url: `/admin/users?count=true&email=${email}`, headers: asAdmin })
    t.equal(list.json().total, 1, 'one account')
  })
})
