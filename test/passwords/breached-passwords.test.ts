/** New passwords are compared with breached ones (`BREACHED_PASSWORDS_URL`; docs/design.md, "Account life cycle"). */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { BreachedPasswords } from '#core/passwords/breached-passwords'
import { call, forgot, reset } from '../support/account-routes.ts'
import { postUser } from '../support/admin-routes.ts'
import { bearer, build, freshEmail, PASSWORD, signIn, signUp } from '../support/build.ts'
import { runCommand } from '../support/cli.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { FormClient } from '../support/form-client.ts'
import { mailbox } from '../support/mailbox.ts'
import { growth, readMetrics } from '../support/metrics.ts'
import { rangeServer, rangeWith, sha1Of } from '../support/range-server.ts'
import { until } from '../support/until.ts'

const BREACHED = 'four hens crossed the highway'
const MESSAGE = 'is known from data breaches: choose another, which you use nowhere else'
const DEADLINE = 10_000

/**
 * @param timeLimit milliseconds. By default so many that a busy machine does not end a request.
 * @returns the checks of a password against one server, and the errors behind those that failed.
 */
const checks = (t: Test, url: string, timeLimit = DEADLINE) => {
  const errors: unknown[] = []
  const breached = new BreachedPasswords(url, error => errors.push(error), timeLimit)
  t.teardown(() => breached.close())
  return {
    errors,
    breached,
    /** @returns the outcome that was counted. */
    async outcome(password: string): Promise<string> {
      const before = breached.outcomes.values
      const isRefused = await breached.refuse(password, 'passwordBreached').then(
        () => false,
        ({ code }) => code === 'passwordBreached',
      )
      const [counted = ['none']] = Object.entries(growthOf(before, breached.outcomes.values))
      t.equal(isRefused, counted[0] === 'breached')
      return counted[0]
    },
  }
}

const growthOf = (before: Readonly<Record<string, number>>, after: Readonly<Record<string, number>>) =>
  Object.fromEntries(
    Object.entries(after)
      .map(([name, value]) => [name, value - (before[name] ?? 0)] as const)
      .filter(([, grown]) => grown > 0),
  )

t.test('a password is compared by the suffix of its SHA-1, of which the API receives the prefix', async t => {
  const server = await rangeServer(t, [BREACHED, 'é'])
  const { outcome, errors } = checks(t, server.url)
  t.equal(await outcome(BREACHED), 'breached')
  t.equal(await outcome(PASSWORD), 'not_breached')
  t.equal(await outcome('e\u0301'), 'breached', 'in the form that is hashed')
  const [first] = server.requests
  t.equal(first?.url, `/range/${sha1Of(BREACHED).prefix}`)
  t.match(first?.headers, { 'add-padding': 'true' })
  t.notMatch(JSON.stringify(server.requests), sha1Of(BREACHED).suffix.slice(0, 8))
  t.equal(server.connections, 1, 'a connection is used again')
  t.strictSame(errors, [])
})

t.test('every form of a range is read; padding does not count', async t => {
  const answers = {
    'lower case': [rangeWith(BREACHED, 3).toLowerCase(), 'breached'],
    'line feeds only, and one at the end': [`${rangeWith(BREACHED, 3).replaceAll('\r', '')}\n`, 'breached'],
    'one line': [`${sha1Of(BREACHED).suffix}:1`, 'breached'],
    padding: [rangeWith(BREACHED, 0), 'not_breached'],
    empty: ['', 'not_breached'],
  } as const
  for (const [name, [range, expected]] of Object.entries(answers)) {
    const server = await rangeServer(t, [], response => response.end(range))
    t.equal(await checks(t, server.url).outcome(BREACHED), expected, name)
  }
})

t.test('a password is accepted when the API fails or takes too long', async t => {
  const elsewhere = await rangeServer(t, [BREACHED])
  const range = rangeWith(BREACHED, 3)
  const flood = (response: ServerResponse): void => {
    while (!response.destroyed && response.write(`${range}\r\n`));
    response.once('drain', () => flood(response))
  }
  const failures: Record<string, [(response: ServerResponse) => unknown, string]> = {
    'status 500': [response => response.writeHead(500).end(range), 'failed'],
    'status 404': [response => response.writeHead(404).end(), 'failed'],
    redirect: [
      response => response.writeHead(302, { location: `${elsewhere.url}/${sha1Of(BREACHED).prefix}` }).end(),
      'failed',
    ],
    garbage: [response => response.end(`<html>${range}`), 'failed'],
    'a line that is none': [response => response.end(`${range}\r\nx`), 'failed'],
    'more than a range': [flood, 'failed'],
    'cut off': [
      response => {
        response.writeHead(200, { 'content-length': range.length }).write(range.slice(0, 20_000))
        setImmediate(() => response.destroy())
      },
      'failed',
    ],
    'no HTTP': [response => response.socket?.end('nonsense\r\n\r\n'), 'failed'],
    'no response': [() => undefined, 'timed_out'],
    'a body that stalls': [response => response.write(range), 'timed_out'],
  }
  const runs = Object.entries(failures).map(async ([name, [respond, expected]]) => {
    const server = await rangeServer(t, [], respond)
    const { outcome, errors } = checks(t, server.url, expected === 'timed_out' ? 100 : DEADLINE)
    t.equal(await outcome(BREACHED), expected, name)
    t.equal(errors.length, 1, `${name}: reported`)
    await until(
      () => server.closed,
      closed => closed === 1,
      DEADLINE,
    )
  })
  await Promise.all(runs)
  t.equal(elsewhere.requests.length, 0, 'redirects are not followed')
  t.equal(await checks(t, 'http://127.0.0.1:1/range').outcome(BREACHED), 'failed', 'connection refused')
})

t.test('a client that disconnects ends the request, which is not counted', async t => {
  const server = await rangeServer(t, [], () => undefined)
  const { breached, errors } = checks(t, server.url)
  const client = new AbortController()
  const refused = breached.refuse(BREACHED, 'passwordBreached', client.signal)
  const rejected = t.rejects(refused, { code: 'clientClosedRequest' })
  await until(
    () => server.requests.length,
    requests => requests === 1,
    DEADLINE,
  )
  client.abort()
  await rejected
  await until(
    () => server.closed,
    closed => closed === 1,
    DEADLINE,
  )
  t.strictSame(growthOf({}, breached.outcomes.values), {})
  t.strictSame(errors, [])
})

t.test('the end of the service ends requests', async t => {
  const server = await rangeServer(t, [], () => undefined)
  const { breached } = checks(t, server.url)
  const checked = breached.refuse(BREACHED, 'passwordBreached')
  await until(
    () => server.requests.length,
    requests => requests === 1,
    DEADLINE,
  )
  await breached.close()
  await checked
  t.strictSame(growthOf({}, breached.outcomes.values), { failed: 1 })
})

t.test('every route that sets a password asks, and only if nothing else is wrong', async t => {
  const server = await rangeServer(t, [BREACHED])
  const app = await build(t, { hasher: quickHashing, env: { BREACHED_PASSWORDS_URL: server.url } })
  const mails = mailbox(app)
  const before = await readMetrics(app)
  const user = await signUp(app)
  t.equal(server.requests.length, 1)
  await forgot(app, user.email)
  const token = await mails.token(user.email, 'passwordReset')
  const change = (currentPassword: string, newPassword: string) =>
    call(app, 'PUT', '/account/password', { currentPassword, newPassword }, bearer(user.token))
  const ways = {
    'sign-up': ['password', () => call(app, 'POST', '/account/sign-up', signUpOf(freshEmail()))],
    'sign-up, taken': ['password', () => call(app, 'POST', '/account/sign-up', signUpOf(user.email))],
    admin: ['password', () => postUser(app, signUpOf(freshEmail()))],
    change: ['newPassword', () => change(PASSWORD, BREACHED)],
    reset: ['password', () => reset(app, token, BREACHED)],
  } as const
  for (const [way, [field, send]] of Object.entries(ways)) {
    const asked = server.requests.length
    const response = await send()
    t.equal(response.statusCode, 400, way)
    t.strictSame(response.json(), { errors: { [field]: [MESSAGE] } })
    t.equal(server.requests.length, asked + 1, way)
  }

  const asked = server.requests.length
  const hash = await quickHashing.hash(BREACHED)
  for (const [status, response] of [
    [200, await signIn(app, user.email)],
    [401, await signIn(app, user.email, BREACHED)],
    [201, await postUser(app, { email: freshEmail(), passwordHash: hash })],
    [201, await postUser(app, { email: freshEmail() })],
    [409, await postUser(app, signUpOf(user.email))],
    [400, await call(app, 'POST', '/account/sign-up', { email: freshEmail(), password: 'password1' })],
    [400, await change('wrong', BREACHED)],
    [400, await change(PASSWORD, PASSWORD)],
    [400, await reset(app, 'x', BREACHED)],
  ] as const)
    t.equal(response.statusCode, status)
  t.equal(server.requests.length, asked, 'nothing is asked for these')

  t.equal((await reset(app, token, 'six ducks left the pond')).statusCode, 200, 'the token is not used up')
  const grown = growth(before, await readMetrics(app))
  const counted = (outcome: string) => grown('gatehouse_breached_password_checks_total', { outcome })
  t.strictSame(['breached', 'not_breached', 'failed', 'timed_out'].map(counted), [5, 2, 0, 0])
  t.equal(grown('gatehouse_sign_ups_total'), 1, 'a password that is refused is no sign-up')
})

const signUpOf = (email: string) => ({ email, password: BREACHED })

t.test('R1: with required verification a breached password tells nothing of the e-mail', async t => {
  const server = await rangeServer(t, [BREACHED])
  const env = { BREACHED_PASSWORDS_URL: server.url, REQUIRE_EMAIL_VERIFICATION: 'true' }
  const app = await build(t, { env })
  const email = freshEmail()
  const send = (payload: object) => call(app, 'POST', '/account/sign-up', payload)
  t.equal((await send({ email, password: PASSWORD })).statusCode, 202)
  const [taken, free] = [await send(signUpOf(email)), await send(signUpOf(freshEmail()))]
  t.equal(taken.statusCode, 400)
  t.equal(taken.body, free.body)
  t.equal(server.requests.length, 3)
})

t.test('pages show the error in their language', async t => {
  const server = await rangeServer(t, [BREACHED])
  const app = await build(t, { env: { BREACHED_PASSWORDS_URL: server.url } })
  const user = await signUp(app)
  await forgot(app, user.email)
  const token = await mailbox(app).token(user.email, 'passwordReset')
  for (const [language, text] of [
    ['en', 'This password is known from data breaches.'],
    ['de', 'Dieses Passwort ist aus Datenlecks bekannt.'],
  ] as const) {
    const browser = new FormClient(app, { headers: { 'accept-language': language } })
    await browser.open(`/reset-password?token=${token}`)
    await browser.submit('reset-password', { password: BREACHED })
    t.match(browser.page, text)
  }
})

t.test('a client that disconnects while its password is compared gets no account', async t => {
  const server = await rangeServer(t, [], () => undefined)
  const app = await build(t, { env: { BREACHED_PASSWORDS_URL: server.url } })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const client = new AbortController()
  const body = JSON.stringify(signUpOf(freshEmail()))
  const headers = { 'content-type': 'application/json' }
  const request = fetch(`${url}/account/sign-up`, { method: 'POST', headers, body, signal: client.signal })
  const failed = t.rejects(request)
  await until(
    () => server.requests.length,
    requests => requests === 1,
    DEADLINE,
  )
  client.abort()
  await failed
  await until(
    () => server.closed,
    closed => closed === 1,
    DEADLINE,
  )
  const metrics = await readMetrics(app)
  t.equal(metrics.sum('gatehouse_breached_password_checks_total'), 0, 'it did not wait for the time limit')
  t.equal(metrics.sum('gatehouse_sign_ups_total'), 0)
})

t.test('an operator is refused too', async t => {
  const server = await rangeServer(t, [BREACHED])
  const app = await build(t)
  const { storage } = app.config
  const DATABASE_URL = storage.engine === 'sqlite' ? `sqlite:${storage.file}` : ''
  const create = (BREACHED_PASSWORDS_URL: string) =>
    runCommand(
      ['users', 'create', freshEmail(), '--password-stdin'],
      { DATABASE_URL, BREACHED_PASSWORDS_URL },
      BREACHED,
    )
  t.match(await create(server.url), { code: 2, stderr: `The password ${MESSAGE}` })
  const accepted = await create('http://127.0.0.1:1')
  t.match(accepted, {
    code: 0,
    stderr: /^The password was not compared with breached ones: the connection failed \(ECONNREFUSED\)/,
  })
})
