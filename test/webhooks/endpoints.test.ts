/** The routes of webhooks: what is refused, what is shown, what is recorded (docs/api.md, "Webhooks"). */
import t from 'tap'
import type { WebhookStore } from '#features/webhooks/stored-webhooks'
import { createKey } from '../support/admin-keys.ts'
import { createKey as createApiKey } from '../support/api-keys.ts'
import { bearer, logCapture, signUp } from '../support/build.ts'
import { onEveryEngine } from '../support/engines.ts'
import { until } from '../support/until.ts'
import {
  allowing,
  asRoot,
  attemptsOf,
  createWebhook,
  getWebhook,
  receiver,
} from '../support/webhook-receiver.ts'

const WAIT = 20_000
const UNKNOWN = '01936b7e-4a5c-7d3e-9f10-2b3c4d5e6f70'

await onEveryEngine(t, async (t, { build, newDatabase }) => {
  const hook = await receiver(t)
  const env = { ...allowing(hook), DATABASE_URL: await newDatabase(t) }
  const app = await build(t, { env })
  const path = (id: string, action = '') => `/admin/webhooks/${id}${action}`
  const post = (url: string, payload?: object) =>
    asRoot(app, { method: 'POST', url, ...(payload && { payload }) })

  t.test('W11: a URL that is not valid creates nothing', async t => {
    const before = (await asRoot(app, { method: 'GET', url: '/admin/webhooks' })).json()
    const urls = [
      ...['', 'hook', '//example.com', 'ftp://example.com/', 'javascript:alert(1)', 'https://'],
      ...['https://ann:secret@example.com/', 'https://ann@example.com/', 'https://example.com/#a'],
      ...[
        'https://example.com/\r\nx-injected: 1',
        'https://example.com/a b',
        'https://exa\tmple.com/',
        ' https://example.com',
      ],
      ...['http://example.com/', 'https://example.com:99999/', `https://example.com/${'a'.repeat(2_048)}`],
      ...['https://does-not-exist.invalid/'],
    ]
    for (const url of urls) {
      const response = await post('/admin/webhooks', { url })
      t.equal(response.statusCode, 400, url)
      t.same(Object.keys(response.json().errors), ['url'], url)
    }
    t.same((await asRoot(app, { method: 'GET', url: '/admin/webhooks' })).json(), before)
  })

  t.test('other fields that are not valid are named', async t => {
    const { url } = hook
    const cases: readonly (readonly [object, string])[] = [
      [{ url, types: ['user.unheard-of'] }, 'types'],
      [{ url, types: [] }, 'types'],
      [{ url, types: 'user.created' }, 'types'],
      [{ url, types: ['user.created', 'user.created'] }, 'types'],
      [{ url, description: 'a'.repeat(201) }, 'description'],
      [{ url, description: 5 }, 'description'],
      [{ url, secret: 'whsec_mine' }, 'secret'],
      [{}, 'url'],
    ]
    for (const [payload, field] of cases) {
      const response = await post('/admin/webhooks', payload)
      t.equal(response.statusCode, 400, JSON.stringify(payload))
      t.ok(
        Object.keys(response.json().errors).some(name => name.startsWith(field)),
        response.body,
      )
    }
  })

  t.test('W11: the secret is shown once, and neither it nor the query of the URL anywhere else', async t => {
    const logged = logCapture()
    const logging = await build(t, { env: { ...env, LOG_REQUESTS: 'on' }, logStream: logged.stream })
    const created = await asRoot(logging, {
      method: 'POST',
      url: '/admin/webhooks',
      payload: { url: `${hook.url}?token=hidden-token`, description: 'Billing', types: ['user.deleted'] },
    })
    t.equal(created.statusCode, 201)
    t.equal(created.headers['cache-control'], 'no-store')
    const { id, secret, ...shown } = created.json()
    t.match(secret, /^whsec_[\w+/]{43}=$/)
    t.match(shown, {
      url: hook.url,
      description: 'Billing',
      types: ['user.deleted'],
      state: 'enabled',
      disabledReason: null,
      failures: 0,
      failedEventId: null,
      retryAt: null,
    })
    await asRoot(logging, { method: 'POST', url: path(id, '/ping') })
    await until(
      () => attemptsOf(logging, id),
      attempts => attempts.length > 0,
      WAIT,
    )
    t.ok(
      hook.received.some(({ url }) => url === '/hook?token=hidden-token'),
      'the query is sent',
    )
    const views = [
      await asRoot(logging, { method: 'GET', url: '/admin/webhooks' }),
      await asRoot(logging, { method: 'GET', url: path(id) }),
      await asRoot(logging, { method: 'GET', url: path(id, '/attempts') }),
      await asRoot(logging, { method: 'GET', url: '/admin/events' }),
      await asRoot(logging, { method: 'GET', url: '/admin/metrics' }),
    ]
    t.ok(views.every(({ statusCode }) => statusCode === 200))
    for (const text of [...views.map(({ body }) => body), logged.text()]) {
      t.notMatch(text, /hidden-token/)
      t.notOk(text.includes(secret))
    }
    const store = app.services.storage.features.webhooks as WebhookStore
    const stored = JSON.stringify(await store.findWebhook(id))
    t.notMatch(stored, /hidden-token|whsec_/, 'encrypted in the store')
  })

  t.test('a change keeps what is not given', async t => {
    const { id, secret } = await createWebhook(app, { url: `${hook.url}?token=1`, description: 'A' })
    const change = (payload: object) => asRoot(app, { method: 'PUT', url: path(id), payload })
    t.match((await change({ types: ['user.deleted'] })).json(), { types: ['user.deleted'], description: 'A' })
    t.match((await change({ description: null })).json(), { types: ['user.deleted'], description: null })
    t.match((await change({ types: null, url: `${hook.url}2?token=2` })).json(), {
      types: null,
      url: `${hook.url}2`,
    })
    t.equal((await change({})).statusCode, 400)
    t.equal((await change({ url: 'https://127.0.0.1/' })).statusCode, 400)
    await post(path(id, '/ping'))
    await until(
      async () => hook.received.filter(({ url }) => url === '/hook2?token=2').length,
      count => count > 0,
      WAIT,
    )
    t.ok(secret)
  })

  t.test('K9: users, API keys and admin keys without the scope manage no webhook', async t => {
    const { id } = await createWebhook(app, { url: hook.url })
    const { token } = await signUp(app)
    const apiKey = await createApiKey(app, token)
    const adminKey = await createKey(app, ['events:read', 'users:write', 'keys:write'])
    const calls: readonly (readonly ['GET' | 'POST' | 'PUT' | 'DELETE', string, object?])[] = [
      ['POST', '/admin/webhooks', { url: hook.url }],
      ['GET', '/admin/webhooks'],
      ['GET', path(id)],
      ['PUT', path(id), { types: null }],
      ['DELETE', path(id)],
      ['GET', path(id, '/attempts')],
      ...['/rotate-secret', '/ping', '/pause', '/resume'].map(action => ['POST', path(id, action)] as const),
      ['POST', path(id, '/replay'), { from: '2026-01-31T09:30:00Z' }],
    ]
    const before = (await asRoot(app, { method: 'GET', url: '/admin/webhooks' })).json()
    for (const [method, url, payload] of calls) {
      const statusOf = async (headers: Record<string, string>) =>
        (await app.inject({ method, url, headers, ...(payload && { payload }) })).statusCode
      const codes = [
        await statusOf(bearer(token)),
        await statusOf(bearer(apiKey.token)),
        await statusOf(adminKey.headers),
      ]
      t.same(codes, [401, 401, 403], `${method} ${url}`)
    }
    t.same((await asRoot(app, { method: 'GET', url: '/admin/webhooks' })).json(), before)
  })

  t.test('what there is not is 404', async t => {
    const actions = ['/rotate-secret', '/ping', '/pause', '/resume']
    for (const action of actions) t.equal((await post(path(UNKNOWN, action))).statusCode, 404, action)
    t.equal((await post(path(UNKNOWN, '/replay'), { from: '2026-01-31T09:30:00Z' })).statusCode, 404)
    t.equal((await asRoot(app, { method: 'GET', url: path(UNKNOWN) })).statusCode, 404)
    t.equal((await asRoot(app, { method: 'GET', url: path(UNKNOWN, '/attempts') })).statusCode, 404)
    t.equal((await asRoot(app, { method: 'DELETE', url: path(UNKNOWN) })).statusCode, 404)
    t.equal(
      (await asRoot(app, { method: 'PUT', url: path(UNKNOWN), payload: { types: null } })).statusCode,
      404,
    )
  })

  t.test('a replay begins with a timestamp or the id of an event', async t => {
    const { id } = await createWebhook(app, { url: hook.url, types: ['user.deleted'] })
    for (const from of [
      '',
      'yesterday',
      '2026-13-01T00:00:00Z',
      'not-an-id',
      '0',
      '4f1e6c9e-9d4f-4a53-8a5c-1b8d5f5e2a11',
    ])
      t.same(Object.keys((await post(path(id, '/replay'), { from })).json().errors), ['from'], from)
    t.equal((await post(path(id, '/replay'), { from: '2999-01-01T00:00:00Z' })).statusCode, 200)
  })

  t.test('each change is an event of the administrator', async t => {
    const { id } = await createWebhook(app, { url: hook.url, types: ['user.deleted'] })
    await asRoot(app, { method: 'PUT', url: path(id), payload: { description: 'B' } })
    for (const action of ['/rotate-secret', '/pause', '/resume']) await post(path(id, action))
    await post(path(id, '/replay'), { from: '2026-01-31T09:30:00Z' })
    await asRoot(app, { method: 'DELETE', url: path(id) })
    // On PostgreSQL an event waits for transactions that began before its own.
    const own = await until(
      async () => {
        const query = { filter: {}, after: null, limit: 1_000 }
        const { events } = await app.services.storage.events.follow(query)
        return events.filter(({ details }) => details?.webhook === id)
      },
      events => events.length === 7,
      WAIT,
    )
    t.same(
      own.map(({ type }) => type),
      ['created', 'changed', 'secret-rotated', 'paused', 'resumed', 'replayed', 'deleted'].map(
        each => `webhook.${each}`,
      ),
    )
    t.ok(own.every(({ actor, userId }) => actor.type === 'adminKey' && userId === null))
    t.equal((await asRoot(app, { method: 'GET', url: path(id) })).statusCode, 404)
  })

  t.test('two changes at once: one succeeds, the other is told', async t => {
    const { id } = await createWebhook(app, { url: hook.url })
    const rotations = Array.from({ length: 8 }, () => post(path(id, '/rotate-secret')))
    const codes = (await Promise.all(rotations)).map(({ statusCode }) => statusCode)
    t.ok(
      codes.every(code => code === 200 || code === 409),
      `${codes}`,
    )
    t.ok(codes.includes(200))
  })

  t.test('the number of webhooks is bounded exactly', async t => {
    const payload = { url: hook.url, types: ['user.deleted'] }
    const { results } = (await asRoot(app, { method: 'GET', url: '/admin/webhooks' })).json()
    const attempts = Array.from({ length: 104 - results.length }, () => post('/admin/webhooks', payload))
    const codes = (await Promise.all(attempts)).map(({ statusCode }) => statusCode)
    t.equal(codes.filter(code => code === 201).length, 100 - results.length)
    t.equal(codes.filter(code => code === 409).length, 4)
  })

  t.test('a change of ENCRYPTION_KEY encrypts secrets again', async t => {
    const DATABASE_URL = await newDatabase(t)
    const first = await build(t, { env: { ...allowing(hook), DATABASE_URL } })
    const { id } = await createWebhook(first, { url: hook.url, types: ['user.deleted'] })
    // No event is delivered to it.
    await asRoot(first, { method: 'POST', url: path(id, '/pause') })
    await first.close()
    const { ENCRYPTION_KEY: former, ...others } = { ...allowing(hook), DATABASE_URL }
    const ENCRYPTION_KEY = 'another-encryption-key-0123456789abcdef'
    const lost = await build(t, { env: { ...others, ENCRYPTION_KEY } })
    const unreadable = await asRoot(lost, { method: 'POST', url: path(id, '/rotate-secret') })
    t.equal(unreadable.statusCode, 503)
    t.match(await getWebhook(lost, id), { id }, 'it is listed')
    await lost.close()
    const rotated = await build(t, { env: { ...others, ENCRYPTION_KEY, ENCRYPTION_KEY_PREVIOUS: former } })
    const stored = async () => {
      const store = rotated.services.storage.features.webhooks as WebhookStore
      return (await store.findWebhook(id))?.target
    }
    const encrypted = await stored()
    await asRoot(rotated, { method: 'POST', url: path(id, '/ping') })
    await until(stored, target => target !== encrypted, WAIT)
    const later = await build(t, { env: { ...others, ENCRYPTION_KEY } })
    t.equal((await asRoot(later, { method: 'POST', url: path(id, '/rotate-secret') })).statusCode, 200)
  })
})
