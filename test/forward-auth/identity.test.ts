/** `/forward-auth`: who sends the request that a proxy has received (docs/verifying.md, "Forward authentication"). */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { createKey } from '../support/api-keys.ts'
import { addTotp, ENCRYPTION_KEY, signInWith } from '../support/authenticator-apps.ts'
import { asAdmin, bearer, build, cookie, signUp, updateUser } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { buildOAuth, registerClient } from '../support/oauth.ts'
import { CALLBACK, newTokens } from '../support/oauth-flow.ts'
import { organizationOf } from '../support/organizations.ts'

const FORWARD_AUTH = { FORWARD_AUTH: 'on', ENCRYPTION_KEY }
const NAMES = ['remote-user', 'remote-email', 'remote-name', 'remote-groups'] as const

const ask = (app: FastifyInstance, headers: object = {}, url = '/forward-auth', method = 'GET') =>
  app.inject({ method: method as 'GET', url, headers: { ...headers } })

await onEnginesOfRun(t, async (t, engine) => {
  const app = await engine.build(t, { env: FORWARD_AUTH })

  t.test('every credential of a user is accepted, by every method and below the path', async t => {
    const user = await signUp(app)
    const key = await createKey(app, user.token, { password: undefined })
    for (const headers of [bearer(user.token), cookie(user.token), bearer(key.token)])
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
        for (const url of ['/forward-auth', '/forward-auth/', '/forward-auth/a/../b%2F?x=1&role=admin&x=2']) {
          const response = await ask(app, headers, url, method)
          t.equal(response.statusCode, 200, `${method} ${url}`)
          t.equal(response.body, '')
          t.equal(response.headers['cache-control'], 'no-store')
          for (const name of NAMES) t.equal(typeof response.headers[name], 'string', name)
          t.equal(response.headers['remote-user'], user.id)
        }
  })

  t.test('a token that an OAuth client got is accepted, until its grant ends', async t => {
    const oauth = await buildOAuth(engine, t, { env: { FORWARD_AUTH: 'on' } })
    const client = await registerClient(oauth, { redirectUris: [CALLBACK], scopes: ['account:read'] })
    const user = await signUp(oauth)
    const { accessToken: token } = await newTokens(oauth, client, user.token)
    const response = await ask(oauth, bearer(token))
    t.equal(response.headers['remote-user'], user.id)
    t.equal((await ask(oauth, bearer(token), '/forward-auth?scope=account:read')).statusCode, 200)
    globalErrorOf(t, await ask(oauth, bearer(token), '/forward-auth?scope=account:write'), 403)
    const url = `/admin/clients/${client.id}`
    t.equal((await oauth.inject({ method: 'DELETE', url, headers: asAdmin })).statusCode, 204)
    t.equal((await ask(oauth, bearer(token))).statusCode, 401)
  })

  t.test('fields are empty where there is nothing, and encoded where HTTP needs it', async t => {
    const user = await signUp(app)
    t.match((await ask(app, bearer(user.token))).headers, {
      'remote-email': '',
      'remote-name': '',
      'remote-groups': '',
    })
    const fields = {
      firstName: '100% Zoë',
      lastName: '雪 😀,',
      roles: ['editor', 'admin'],
      emailVerified: true,
    }
    t.equal((await updateUser(app, user.id, fields)).statusCode, 200)
    t.match((await ask(app, bearer(user.token))).headers, {
      'remote-email': user.email,
      'remote-name': '100%25 Zo%C3%AB %E9%9B%AA %F0%9F%98%80,',
      'remote-groups': 'admin,editor',
    })
  })

  t.test('nobody is 401, after the end of access too', async t => {
    const user = await signUp(app)
    t.equal((await ask(app, bearer(user.token))).statusCode, 200)
    await updateUser(app, user.id, { disabled: true })
    for (const headers of [{}, bearer('x'), cookie('x'), bearer(user.token), asAdmin]) {
      const response = await ask(app, headers)
      globalErrorOf(t, response, 401)
      t.notOk('remote-user' in response.headers)
      t.match(response.headers['www-authenticate'], /^Bearer/)
    }
  })

  t.test('role, scope, organization and factors narrow, each with 403', async t => {
    const user = await signUp(app)
    await updateUser(app, user.id, { roles: ['editor'], emailVerified: true })
    const { id } = await organizationOf(app, user)
    const other = await signUp(app)
    await updateUser(app, other.id, { emailVerified: true })
    const foreign = await organizationOf(app, other)
    const key = await createKey(app, user.token, { scopes: ['account:read'] })
    const status = async (query: string, token = user.token) =>
      (await ask(app, bearer(token), `/forward-auth?${query}`)).statusCode
    t.equal(await status('role=editor'), 200)
    t.equal(await status('role=admin'), 403)
    t.equal(await status('scope=account:write'), 200, 'a session has every scope')
    t.equal(await status('scope=account:read', key.token), 200)
    t.equal(await status('scope=account:write', key.token), 403)
    t.equal(await status(`organization=${id}`), 200)
    t.equal(await status(`organization=${foreign.id}`), 403)
    t.equal(await status('organization=01936b7e-4a5c-7d3e-9f10-2b3c4d5e6f70'), 403, 'unknown')
    t.equal(await status(`role=editor&organization=${id}&scope=users:read`), 200)
    t.equal(await status(`role=admin&organization=${id}`), 403)
    t.equal(await status('factors=2'), 403)
    t.equal(await status('factors=2', key.token), 403)
    const totp = await addTotp(app, user.token)
    const proved = (await signInWith(app, user.email, totp.code(1))).json().accessToken
    t.equal(await status('factors=2', proved), 200)
  })

  t.test('a condition that cannot hold is 400, also for nobody', async t => {
    const { token } = await signUp(app)
    const cases: [string, string][] = [
      ['role=No', 'role'],
      ['role=', 'role'],
      ['role=a&role=b', 'role'],
      ['scope=account:fly', 'scope'],
      ['organization=x', 'organization'],
      ['factors=1', 'factors'],
      ['redirect=body', 'redirect'],
      ['roles=admin', 'roles'],
    ]
    for (const [query, field] of cases)
      errorsAt(t, await ask(app, bearer(token), `/forward-auth?${query}`), 400, [field], query)
    errorsAt(t, await ask(app, {}, '/forward-auth?role=No'), 400, ['role'])
  })

  t.test('the body and its type are of the request behind the proxy, and not read', async t => {
    const { token } = await signUp(app)
    for (const headers of [
      { 'content-type': 'application/json' },
      { 'content-type': 'multipart/form-data; boundary=x', 'content-encoding': 'gzip' },
      { 'content-type': 'x' },
    ]) {
      const response = await app.inject({
        method: 'POST',
        url: '/forward-auth',
        headers: {
          ...headers,
          ...cookie(token),
          origin: 'https://elsewhere.example',
          'sec-fetch-site': 'cross-site',
        },
        payload: '{'.repeat(200_000),
      })
      t.equal(response.statusCode, 200, response.body)
    }
  })
})

t.test('a look-up that fails is no answer: 503', async t => {
  const app = await build(t, { env: FORWARD_AUTH })
  const { token } = await signUp(app)
  app.services.authenticator.invalidateAll()
  await app.services.storage.close()
  const response = await ask(app, { ...bearer(token), accept: 'text/html' })
  t.ok(response.statusCode >= 500, String(response.statusCode))
  t.notOk('remote-user' in response.headers)
})

t.test('without FORWARD_AUTH there is no such route', async t => {
  const app = await build(t)
  t.equal((await ask(app)).statusCode, 404)
})
