/** `/admin/clients`: registering, changing and deleting clients of the authorization server (docs/oauth.md). */
import t from 'tap'
import { createKey } from '../support/admin-keys.ts'
import { allEvents, UNKNOWN_ID } from '../support/admin-routes.ts'
import { asAdmin, manualClock } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt } from '../support/error-response.ts'
import {
  adminStatus,
  buildOAuth,
  clientKey,
  ownToken,
  postClient,
  registerClient,
  registerMachine,
  requestOwnToken,
} from '../support/oauth.ts'

const DAY = 86_400_000
const CALLBACK = 'https://app.example.test/callback'
const WEB = { name: 'Planner', redirectUris: [CALLBACK] }

await onEnginesOfRun(t, async (t, engine) => {
  t.test('a client is registered, listed without its secret, changed and deleted', async t => {
    const app = await buildOAuth(engine, t)
    const created = await postClient(app, { ...WEB, scopes: ['openid', 'email'] })
    t.equal(created.statusCode, 201, created.body)
    t.equal(created.headers['cache-control'], 'no-store')
    const { secret, ...client } = created.json()
    t.match(secret, /^gate_cls_[0-9A-Za-z]{49}$/)
    t.match(client, {
      ...{ name: 'Planner', redirectUris: [CALLBACK], scopes: ['openid', 'email'], adminScopes: [] },
      ...{ grantTypes: ['authorization_code', 'refresh_token'], authMethod: 'client_secret_basic' },
      ...{ firstParty: false, requirePkce: true, jwks: null, formerSecretExpiresAt: null },
    })
    const url = `/admin/clients/${client.id}`
    t.strictSame((await app.inject({ url, headers: asAdmin })).json(), client)
    const list = await app.inject({ url: '/admin/clients', headers: asAdmin })
    t.strictSame(list.json(), { results: [client], nextCursor: null })
    t.notMatch(list.body, secret)

    const changed = await app.inject({ method: 'PUT', url, headers: asAdmin, payload: { name: 'Fleet' } })
    t.match(changed.json(), { name: 'Fleet', redirectUris: [CALLBACK] })
    t.equal((await app.inject({ method: 'DELETE', url, headers: asAdmin })).statusCode, 204)
    for (const method of ['GET', 'DELETE'] as const)
      errorsAt(t, await app.inject({ method, url, headers: asAdmin }), 404, ['global'])
    const events = await allEvents(app)
    t.strictSame(
      events.map(({ type, details }) => [type, details?.client]),
      [
        ['client.deleted', client.id],
        ['client.changed', client.id],
        ['client.created', client.id],
      ],
    )
  })

  t.test('the job removes a deleted client once its grants are gone', async t => {
    const app = await buildOAuth(engine, t, { jobPace: { startWithin: 1, maxWait: 50 } })
    const { id } = await registerClient(app, WEB)
    await app.inject({ method: 'DELETE', url: `/admin/clients/${id}`, headers: asAdmin })
    await app.services.clients.removeDeleted({ job: 'test', fence: 1, signal: AbortSignal.timeout(10_000) })
    t.equal((await app.inject({ url: `/admin/clients/${id}`, headers: asAdmin })).statusCode, 404)
  })

  t.test('P10, P35: metadata that is not valid is a 400 with the field', async t => {
    const app = await buildOAuth(engine, t)
    const weak = { kty: 'RSA', n: 'AQAB', e: 'AQAB' }
    const machine = { grantTypes: ['client_credentials'], redirectUris: [] }
    const wrong: [string[], object][] = [
      [['name'], { name: '' }],
      [['id'], { id: 'https://client.example.test' }],
      [['redirectUris'], { redirectUris: [] }],
      ...[
        ...['JavaScript:alert(1)', 'data:text/html,x', 'vbscript:x', 'blob:https://a.test/1', 'file:///etc'],
        ...['http://example.test/cb', 'http://localhost.evil.test/cb', 'https://a:b@example.test/'],
        ...[
          'https://example.test/#x',
          '/cb',
          'https://ex ample.test/',
          'myapp:/cb',
          'https://a.test\\@b.test/',
        ],
      ].map((uri): [string[], object] => [['redirectUris.0'], { redirectUris: [uri] }]),
      [['redirectUris'], { redirectUris: [CALLBACK, CALLBACK] }],
      [['redirectUris'], { grantTypes: ['client_credentials'] }],
      [['grantTypes.0'], { grantTypes: ['password'] }],
      [['grantTypes'], { grantTypes: [] }],
      [['grantTypes'], { grantTypes: ['refresh_token', 'client_credentials'], redirectUris: [] }],
      [['authMethod'], { ...machine, authMethod: 'none' }],
      [['authMethod'], { authMethod: 'tls_client_auth' }],
      [['adminScopes'], { adminScopes: ['users:read'] }],
      [['adminScopes.0'], { ...machine, adminScopes: ['openid'] }],
      [['adminScopes.0'], { ...machine, adminScopes: ['keys:write'] }],
      [['adminScopes.0'], { ...machine, adminScopes: ['users:impersonate'] }],
      [['jwks'], { authMethod: 'private_key_jwt' }],
      [['jwks'], { jwks: { keys: [clientKey().jwk] } }],
      [['jwks'], { authMethod: 'private_key_jwt', jwks: { keys: [weak] } }],
      [
        ['jwks.keys.0.d'],
        { authMethod: 'private_key_jwt', jwks: { keys: [{ ...clientKey().jwk, d: 'x' }] } },
      ],
      [['scopes.0'], { scopes: ['a b'] }],
      [['firstParty'], { firstParty: true, redirectUris: ['http://127.0.0.1/cb'] }],
      [['firstParty'], { firstParty: true, redirectUris: ['com.example.app:/cb'] }],
      [['requirePkce'], { requirePkce: false, authMethod: 'none' }],
      [['uri'], { uri: 'http://example.test' }],
      [['name'], { name: 'a\u0000b' }],
    ]
    for (const [fields, change] of wrong)
      errorsAt(t, await postClient(app, { ...WEB, ...change }), 400, fields, JSON.stringify(change))
    t.strictSame((await app.inject({ url: '/admin/clients', headers: asAdmin })).json().results, [])
  })

  t.test('P31: a key gives clients only scopes that it has, and trust needs a scope of its own', async t => {
    const app = await buildOAuth(engine, t)
    const writer = await createKey(app, ['clients:write', 'users:read'])
    const machine = { name: 'Job', grantTypes: ['client_credentials'] }
    const more = await postClient(app, { ...machine, adminScopes: ['users:write'] }, writer.headers)
    t.equal(more.statusCode, 403)
    t.match(more.headers['www-authenticate'], /scope="users:write"/)
    const own = await postClient(app, { ...machine, adminScopes: ['users:read'] }, writer.headers)
    t.equal(own.statusCode, 201)
    const url = `/admin/clients/${own.json().id}`
    for (const payload of [{ adminScopes: ['users:delete'] }, { firstParty: true }, { requirePkce: false }])
      t.equal((await app.inject({ method: 'PUT', url, headers: writer.headers, payload })).statusCode, 403)
    t.equal((await postClient(app, { ...WEB, firstParty: true }, writer.headers)).statusCode, 403)
    const trusting = await createKey(app, ['clients:write', 'clients:trust'])
    t.equal((await postClient(app, { ...WEB, firstParty: true }, trusting.headers)).statusCode, 201)
    const reader = await createKey(app, ['clients:read'])
    t.equal((await postClient(app, WEB, reader.headers)).statusCode, 403)
    t.equal((await app.inject({ url, headers: reader.headers })).statusCode, 200)
  })

  t.test('two secrets are valid while one is rotated, and never a third', async t => {
    const clock = manualClock()
    const app = await buildOAuth(engine, t, { clock: clock.now })
    const first = await registerMachine(app)
    const rotate = async () => {
      const url = `/admin/clients/${first.id}/rotate-secret`
      const response = await app.inject({ method: 'POST', url, headers: asAdmin })
      t.equal(response.statusCode, 200)
      t.equal(response.json().formerSecretExpiresAt, new Date(clock.now() + DAY).toISOString())
      return { id: first.id, secret: response.json().secret as string }
    }
    const statuses = async (...clients: (typeof first)[]) =>
      Promise.all(clients.map(async client => (await requestOwnToken(app, client)).statusCode))
    const second = await rotate()
    t.strictSame(await statuses(first, second), [200, 200])
    const third = await rotate()
    t.strictSame(await statuses(first, second, third), [401, 200, 200])
    clock.advance(DAY)
    t.strictSame(await statuses(second, third), [401, 200])
    const keyed = await registerMachine(app, {
      authMethod: 'private_key_jwt',
      jwks: { keys: [clientKey().jwk] },
    })
    const url = `/admin/clients/${keyed.id}/rotate-secret`
    errorsAt(t, await app.inject({ method: 'POST', url, headers: asAdmin }), 409, ['global'])
  })

  t.test(
    'P32, P41: a client that is changed or deleted loses its access at once, on every instance',
    async t => {
      const env = { DATABASE_URL: await engine.newDatabase(t) }
      const app = await buildOAuth(engine, t, { env })
      const client = await registerMachine(app, { adminScopes: ['users:read', 'events:read'] })
      const token = await ownToken(app, client)
      const others = engine.name === 'postgres' ? [await buildOAuth(engine, t, { env })] : []
      for (const instance of [app, ...others]) t.equal(await adminStatus(instance, token), 200)
      const url = `/admin/clients/${client.id}`
      await app.inject({ method: 'PUT', url, headers: asAdmin, payload: { adminScopes: ['events:read'] } })
      for (const instance of [app, ...others]) t.equal(await adminStatus(instance, token), 403)
      const back = { adminScopes: ['users:read', 'events:read'] }
      await app.inject({ method: 'PUT', url, headers: asAdmin, payload: back })
      for (const instance of [app, ...others]) t.equal(await adminStatus(instance, token), 200)
      await app.inject({ method: 'DELETE', url, headers: asAdmin })
      for (const instance of [app, ...others]) {
        t.equal(await adminStatus(instance, token), 401)
        t.equal((await requestOwnToken(instance, client)).statusCode, 401)
      }
    },
  )

  t.test('with OAUTH=off there are no routes', async t => {
    const app = await engine.build(t)
    for (const url of ['/admin/clients', '/admin/resources', `/admin/clients/${UNKNOWN_ID}`])
      t.equal((await app.inject({ url, headers: asAdmin })).statusCode, 404, url)
    t.equal((await app.inject({ method: 'POST', url: '/oauth/token' })).statusCode, 404)
    t.equal(app.services.oauth, null)
  })
})
