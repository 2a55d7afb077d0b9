/** The client's calls over real connections: accounts, tokens, errors, admin keys (docs/design.md, "OpenAPI and client"). */
import { inspect } from 'node:util'
import t from 'tap'
import {
  createAdminClient,
  createClient,
  isServiceError,
  memoryTokens,
  NetworkError,
  ServiceError,
} from '../../client/client.ts'
import { createKey } from '../support/admin-keys.ts'
import { freshEmail, PASSWORD } from '../support/build.ts'
import { clientsOf, rejection, scripted } from '../support/clients.ts'
import { onEnginesOfRun } from '../support/engines.ts'

t.test('accounts', t =>
  onEnginesOfRun(t, async (t, { build }) => {
    const { baseUrl, gatehouse, admin } = await clientsOf(await build(t))

    t.test('sign-up, sign-in and the account, with the token in memory', async t => {
      const email = freshEmail()
      const tokens = memoryTokens()
      const own = createClient({ baseUrl, tokens })
      const signedUp = await own.signUp({ email, password: PASSWORD, firstName: 'Ann' })
      t.ok('accessToken' in signedUp && signedUp.accessToken === tokens.get())
      t.match(await own.getAccount(), { email, firstName: 'Ann', lastName: null, userMetadata: {} })

      await own.signOut()
      t.equal(tokens.get(), null)
      t.ok(isServiceError(await rejection(own.getAccount()), 401))

      const { accessToken, user } = await own.signIn({ email, password: PASSWORD })
      t.equal(tokens.get(), accessToken)
      t.equal((await own.getAccount()).id, user.id)
      const changed = await own.changePassword({ currentPassword: PASSWORD, newPassword: `${PASSWORD} 2` })
      t.not(changed.accessToken, accessToken)
      t.equal((await own.getAccount()).id, user.id, 'with the new token')
      t.equal(await own.deleteAccount({ password: `${PASSWORD} 2` }), undefined)
      t.equal(tokens.get(), null)
    })

    t.test('without a token storage a sign-in changes no other call', async t => {
      const email = freshEmail()
      await gatehouse.signUp({ email, password: PASSWORD })
      const { accessToken } = await gatehouse.signIn({ email, password: PASSWORD })
      t.ok(isServiceError(await rejection(gatehouse.getAccount()), 401))
      const user = createClient({ baseUrl, accessToken })
      t.equal((await user.getAccount()).email, email)
      const { apiKey, token } = await user.createApiKey({ name: 'a script', scopes: ['account:read'] })
      t.same((await user.listApiKeys()).results, [apiKey])
      t.equal((await createClient({ baseUrl, accessToken: token }).getAccount()).email, email)
      await user.deleteApiKey(apiKey.id)
      t.same((await user.listApiKeys()).results, [])
    })

    t.test('ETags: the response of a call, and changes under a condition', async t => {
      const { id } = await admin.createUser({ email: freshEmail() })
      const { data, response } = await admin.getUser(id).withResponse()
      t.equal(data.id, id)
      const ifMatch = response.headers.get('etag') ?? ''
      t.equal((await admin.updateUser(id, { firstName: 'Ann' }, { ifMatch })).firstName, 'Ann')
      const late = await rejection(admin.updateUser(id, { firstName: 'Bea' }, { ifMatch }))
      t.ok(isServiceError(late, 412))
      t.ok(isServiceError(await rejection(admin.updateUser(id, {}).withResponse()), 400))
    })

    t.test('errors have the fields, the status and the header fields of the response', async t => {
      const email = freshEmail()
      await gatehouse.signUp({ email, password: PASSWORD })
      const taken = await rejection(gatehouse.signUp({ email, password: PASSWORD }))
      if (!isServiceError(taken)) throw taken
      t.match(taken, { name: 'ServiceError', status: 409, retryAfter: null })
      t.same(taken.errors, { email: ['is already taken'] })
      t.equal(taken.message, 'POST /account/sign-up: 409: email is already taken')

      const invalid = await rejection(gatehouse.signUp({ email: 'ann', password: 'short' }))
      if (!isServiceError(invalid, 400)) throw invalid
      t.same(Object.keys(invalid.errors).sort(), ['email', 'password'])
      t.notOk(isServiceError(invalid, 409))

      const wrong = await rejection(gatehouse.signIn({ email, password: 'wrong' }))
      t.match(wrong, { status: 401, message: /: The e-mail or the password is wrong$/ })
    })

    t.test('admin keys: what their scopes allow', async t => {
      const { adminKey, key } = await admin.createAdminKey({ name: 'reports', scopes: ['users:read'] })
      const reports = createAdminClient({ baseUrl, adminKey })
      t.ok((await reports.listUsers({ limit: 1 }).page()).results)
      const denied = await rejection(reports.createUser({ email: freshEmail() }))
      t.match(denied, { status: 403, message: /a scope that the key does not have/ })
      await admin.deleteAdminKey(key.id)
      t.ok(isServiceError(await rejection(reports.listUsers().page()), 401))
      t.match(await admin.getMetrics(), /^# HELP gatehouse_/m)
      const { accessToken } = await gatehouse.signIn({ ...(await signedUp()) })
      t.match(await admin.introspectToken({ token: accessToken }), { active: true, token_type: 'Bearer' })
    })

    const signedUp = async () => {
      const user = { email: freshEmail(), password: PASSWORD }
      await gatehouse.signUp(user)
      return user
    }
  }),
)

t.test('an id cannot lead to another path', async t => {
  const { baseUrl, requests } = await scripted(t, response => response.end('{}'))
  const admin = createAdminClient({ baseUrl, adminKey: 'k' })
  for (const id of ['', '.', '..']) t.throws(() => admin.deleteUser(id), TypeError)
  await admin.getUser('a/../b?c#d')
  t.same(requests, ['GET /admin/users/a%2F..%2Fb%3Fc%23d'])
})

t.test('the request id of an error is that of the response', async t => {
  const { baseUrl } = await scripted(t, response =>
    response
      .writeHead(403, { 'x-request-id': 'r-1' })
      .end('{"errors":{"global":["This is not allowed"]},"unknown":1}'),
  )
  t.match(await rejection(createClient({ baseUrl }).getAccount()), { status: 403, requestId: 'r-1' })
})

t.test('unknown properties are kept', async t => {
  const { baseUrl } = await scripted(t, response => response.end('{"id":"1","later":{"a":1}}'))
  t.same(await createClient({ baseUrl }).getAccount(), { id: '1', later: { a: 1 } })
})

t.test('headers of the client and of a call are sent; the token only to the service', async t => {
  const received: unknown[] = []
  const { baseUrl } = await scripted(t, (response, { headers }) => {
    received.push([headers['x-app'], headers.traceparent, headers.authorization, headers['x-admin-key']])
    response.writeHead(headers.traceparent === 'redirect' ? 307 : 200, { location: '/elsewhere' }).end('{}')
  })
  const gatehouse = createClient({ baseUrl: `${baseUrl}//`, accessToken: 'a', headers: { 'x-app': 'shop' } })
  await gatehouse.getAccount({ headers: { traceparent: '00-1' } })
  await createAdminClient({ baseUrl, adminKey: 'k' }).getMetrics()
  t.same(received.splice(0), [
    ['shop', '00-1', 'Bearer a', undefined],
    [undefined, undefined, undefined, 'k'],
  ])
  const redirected = gatehouse.getAccount({ headers: { traceparent: 'redirect' }, retries: 0 })
  t.ok((await rejection(redirected)) instanceof NetworkError, 'redirects are not followed')
  t.equal(received.length, 1)
})

t.test('errors of the network', async t => {
  t.test('a connection that breaks is a NetworkError with its cause', async t => {
    const { baseUrl, requests } = await scripted(t, response => response.destroy())
    const error = await rejection(createClient({ baseUrl }).signIn({ email: 'a', password: 'b' }))
    t.ok(error instanceof NetworkError && !(error instanceof ServiceError))
    t.match(error, { message: 'POST /account/sign-in: The connection failed', timedOut: false })
    t.ok(error instanceof Error && error.cause)
    t.equal(requests.length, 1, 'a POST is not repeated: it may have been processed')
  })

  t.test('no response in time', async t => {
    const { baseUrl, requests } = await scripted(t, () => undefined)
    const error = await rejection(createClient({ baseUrl, timeout: 50 }).getAccount())
    t.match(error, { name: 'NetworkError', timedOut: true, message: /No response within 50 ms/ })
    t.equal(requests.length, 1)
  })

  t.test('a body that does not end in time, and one that breaks off', async t => {
    const { baseUrl } = await scripted(t, (response, { url }) => {
      response.writeHead(200, { 'content-length': '100' }).write('{')
      if (url === '/health') setImmediate(() => response.destroy())
    })
    const gatehouse = createClient({ baseUrl, timeout: 200, retries: 0 })
    t.match(await rejection(gatehouse.getAccount()), { name: 'NetworkError', timedOut: true })
    t.match(await rejection(gatehouse.getHealth({ timeout: 10_000 })), {
      name: 'NetworkError',
      timedOut: false,
    })
  })

  t.test('a page of something else', async t => {
    const { baseUrl } = await scripted(t, (response, { url }) =>
      response.writeHead(url === '/health' ? 200 : 404).end('<html>'),
    )
    const gatehouse = createClient({ baseUrl })
    t.match(await rejection(gatehouse.getHealth()), { name: 'NetworkError', message: /is not JSON/ })
    const { errors } = (await rejection(gatehouse.getAccount())) as ServiceError
    t.same(errors, { global: ['Not Found'] })
  })
})

t.test('a refusal of a proxy with errors of another form keeps its status', async t => {
  for (const errors of [['no'], [{ message: 'no' }], { global: 'no' }, { global: [{ message: 'no' }] }]) {
    const { baseUrl, requests } = await scripted(t, response =>
      response.writeHead(403).end(JSON.stringify({ errors })),
    )
    const error = await rejection(createClient({ baseUrl }).getAccount())
    t.match(error, { name: 'ServiceError', status: 403, errors: { global: ['Forbidden'] } })
    t.equal(requests.length, 1)
  }
})

t.test('a key that cannot be sent is in no error', async t => {
  const { baseUrl, requests } = await scripted(t, response => response.end('{}'))
  const error = await rejection(createAdminClient({ baseUrl, adminKey: 'a secret\nkey' }).getStatus())
  t.match(error, { name: 'TypeError', message: /^GET \/admin\/status: the header "x-admin-key" has/ })
  t.notMatch(inspect(error), 'a secret')
  t.equal(requests.length, 0)
})

t.test('an aborted call rejects with the reason of its signal', async t => {
  const reason = new Error('the page was left')
  const { baseUrl, requests } = await scripted(t, () => controller.abort(reason))
  const controller = new AbortController()
  const { signal } = controller
  t.equal(await rejection(createClient({ baseUrl }).getAccount({ signal })), reason)
  t.equal(await rejection(createClient({ baseUrl }).getAccount({ signal })), reason, 'also before it begins')
  t.equal(requests.length, 1)
})

t.test('a token storage may be asynchronous', async t => {
  const stored = new Map([['token', 'a']])
  const { baseUrl } = await scripted(t, (response, { headers }) =>
    response.end(JSON.stringify({ accessToken: 'b', sent: headers.authorization })),
  )
  const gatehouse = createClient({
    baseUrl,
    tokens: {
      get: async () => stored.get('token') ?? null,
      set: async token => {
        if (token === null) stored.delete('token')
        else stored.set('token', token)
      },
    },
  })
  t.match(await gatehouse.signIn({ email: 'a', password: 'b' }), { sent: 'Bearer a' })
  t.match(await gatehouse.getAccount(), { sent: 'Bearer b' })
})

t.test('a key of the store works like ADMIN_KEY', t =>
  onEnginesOfRun(t, async (t, { build }) => {
    const app = await build(t)
    const { baseUrl } = await clientsOf(app)
    const { text } = await createKey(app, ['users:read', 'users:delete'])
    const support = createAdminClient({ baseUrl, adminKey: text })
    t.ok(isServiceError(await rejection(support.deleteUser('0198c0de-0000-7000-8000-000000000000')), 404))
  }),
)
