/** `/admin/keys`: creating, listing and revoking admin keys (docs/design.md, "Machine callers"). */
import t from 'tap'
import { createKey, listKeys, listStatus, postKey, revokeKey } from '../support/admin-keys.ts'
import { accountStatus, asAdmin, manualClock, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { until } from '../support/until.ts'

const DAY = 86_400_000

/** The id of the root key in the audit log. */
const ROOT_ID = /^[0-9a-f]{8}$/

await onEnginesOfRun(t, async (t, { build }) => {
  const app = await build(t)

  t.test('a key is shown once, and listed without its secret', async t => {
    const clock = manualClock()
    const app = await build(t, { clock: clock.now })
    const expiresAt = new Date(clock.now() + DAY).toISOString()
    const scopes = ['events:read', 'users:read']
    const response = await postKey(app, { name: ' audit \u{1f50d} ', scopes, expiresAt })
    t.equal(response.statusCode, 201)
    t.equal(response.headers['cache-control'], 'no-store')
    const { adminKey, key, ...others } = response.json()
    t.strictSame(others, {})
    t.match(adminKey, /^gate_adm_[0-9A-Za-z]{49}$/)
    t.match(key.createdBy, ROOT_ID)
    t.strictSame(key, {
      id: key.id,
      name: 'audit \u{1f50d}',
      prefix: adminKey.slice(0, 13),
      scopes: ['users:read', 'events:read'],
      createdAt: new Date(clock.now()).toISOString(),
      expiresAt,
      lastUsedAt: null,
      createdBy: key.createdBy,
    })
    clock.advance(1)
    const newer = await createKey(app, ['keys:write'])
    t.match(await listKeys(app), [{ id: newer.id, expiresAt: null }, key], 'newest first')
    t.equal((await listKeys(app)).length, 2)
    const list = await app.inject({ url: '/admin/keys', headers: newer.headers })
    t.equal(list.headers['cache-control'], 'no-store')
    t.notMatch(list.body, adminKey)
  })

  t.test('input that is not valid is a 400 with the field (§7.1)', async t => {
    const valid = { name: 'a key', scopes: ['users:read'] }
    const wrong: [string[], object][] = [
      [['name'], { ...valid, name: '' }],
      [['name'], { ...valid, name: ' ' }],
      [['name'], { ...valid, name: 'a\nkey' }],
      [['name'], { ...valid, name: 'a\u0007key' }],
      [['name'], { ...valid, name: 'a\u202ekey' }],
      [['name'], { ...valid, name: 'k'.repeat(129) }],
      [['scopes'], { ...valid, scopes: [] }],
      [['scopes'], { ...valid, scopes: ['users:read', 'users:read'] }],
      [['scopes'], { ...valid, scopes: 'users:read' }],
      [['scopes.1'], { ...valid, scopes: ['users:read', 'account:read'] }],
      [['scopes.0'], { ...valid, scopes: ['*'] }],
      [['expiresAt'], { ...valid, expiresAt: '2020-01-01T00:00:00Z' }],
      [['expiresAt'], { ...valid, expiresAt: 'tomorrow' }],
      [['id'], { ...valid, id: 'x' }],
      [['name', 'scopes'], {}],
    ]
    for (const [fields, payload] of wrong)
      errorsAt(t, await postKey(app, payload), 400, fields, JSON.stringify(payload))
    t.strictSame(await listKeys(app), [])
  })

  t.test('a key creates keys with a subset of its scopes, and no later expiry', async t => {
    const app = await build(t)
    const inAnHour = new Date(Date.now() + 3_600_000).toISOString()
    const later = new Date(Date.parse(inAnHour) + 1).toISOString()
    const limited = await createKey(app, ['keys:write', 'users:read'], { expiresAt: inAnHour })
    const by = limited.headers
    const child = await createKey(app, ['users:read'], { by, expiresAt: inAnHour })
    t.equal(await listStatus(app, child.headers), 200)
    t.match((await listKeys(app))[0], { id: child.id, createdBy: limited.id })
    const more = await postKey(
      app,
      { name: 'more', scopes: ['events:read', 'users:read', 'users:write'], expiresAt: inAnHour },
      by,
    )
    t.match(globalErrorOf(t, more, 403), /scope that the key does not have/)
    t.equal(
      more.headers['www-authenticate'],
      'x-admin-key error="insufficient_scope", scope="users:write events:read"',
      'the missing scopes',
    )
    for (const expiresAt of [later, null, undefined])
      errorsAt(t, await postKey(app, { name: 'longer', scopes: ['users:read'], expiresAt }, by), 400, [
        'expiresAt',
      ])
    t.equal((await listKeys(app)).length, 2)
  })

  t.test('a revoked or removed key does nothing from the next request on', async t => {
    const key = await createKey(app, ['users:read'])
    const other = await createKey(app, ['users:read'])
    for (const { headers } of [key, other]) t.equal(await listStatus(app, headers), 200)
    t.equal(await revokeKey(app, key.id), 204)
    t.equal(await listStatus(app, key.headers), 401)
    t.equal(await listStatus(app, other.headers), 200)
    const again = await app.inject({ method: 'DELETE', url: `/admin/keys/${key.id}`, headers: asAdmin })
    globalErrorOf(t, again, 404)
    errorsAt(t, await app.inject({ method: 'DELETE', url: '/admin/keys/x', headers: asAdmin }), 400, ['id'])
    t.equal(await revokeKey(app, other.id.toUpperCase()), 204, 'ids in upper case, as of users')
  })

  t.test('a key revokes only keys whose scopes it has', async t => {
    const one = await createKey(app, ['keys:write', 'users:read'])
    const more = await createKey(app, ['keys:write', 'users:read', 'users:write'])
    const less = await createKey(app, ['users:read'])
    const refused = await app.inject({
      method: 'DELETE',
      url: `/admin/keys/${more.id}`,
      headers: one.headers,
    })
    globalErrorOf(t, refused, 403)
    t.match(refused.headers['www-authenticate'], 'scope="users:write"')
    t.equal(await listStatus(app, more.headers), 200)
    t.equal(await revokeKey(app, less.id, one.headers), 204)
    t.equal(await revokeKey(app, one.id, one.headers), 204, 'itself')
    t.equal(await revokeKey(app, one.id, one.headers), 401)
    t.equal(await revokeKey(app, more.id), 204, 'the root key revokes every key')
  })

  t.test('an expired key is a 401, listed for 90 days and then removed', async t => {
    const clock = manualClock()
    const cleanUpPace = { startWithin: 1, interval: 20, pause: 1 }
    const app = await build(t, { clock: clock.now, cleanUpPace })
    const expiresAt = new Date(clock.now() + 1_000).toISOString()
    const key = await createKey(app, ['users:read'], { expiresAt })
    await createKey(app, ['events:read'])
    clock.advance(999)
    t.equal(await listStatus(app, key.headers), 200, 'cached now')
    clock.advance(1)
    t.equal(await listStatus(app, key.headers), 401)
    clock.advance(90 * DAY)
    t.equal((await listKeys(app)).length, 2)
    clock.advance(1)
    const left = await until(
      () => listKeys(app),
      ({ length }) => length < 2,
      10_000,
    )
    t.match(left, [{ scopes: ['events:read'], expiresAt: null }])
    t.equal(left.length, 1)
  })

  t.test('there are at most 1,000 keys, also when they are created at once', async t => {
    const app = await build(t)
    const request = { name: 'one of many', scopes: ['users:read'], expiresAt: null }
    const actor = { type: 'system', id: null, ip: null } as const
    const rights = { scopes: null, expiresAt: null }
    const create = () => app.services.adminKeys.create(request, rights, actor)
    for (let created = 0; created < 990; created += 110)
      await Promise.all(Array.from({ length: 110 }, create))
    const last = await Promise.all(
      Array.from({ length: 20 }, () => postKey(app, { name: 'last', scopes: ['users:read'] })),
    )
    const statuses = last.map(({ statusCode }) => statusCode).sort()
    t.strictSame(statuses, [...Array(10).fill(201), ...Array(10).fill(409)])
    globalErrorOf(t, await postKey(app, { name: 'one more', scopes: ['users:read'] }), 409)
    const keys = await listKeys(app)
    t.equal(keys.length, 1_000)
    t.equal(await revokeKey(app, keys[0].id), 204)
    t.equal((await postKey(app, { name: 'one more', scopes: ['users:read'] })).statusCode, 201)
  })

  t.test('the audit log names the key that acts, and the keys that change', async t => {
    const app = await build(t)
    const key = await createKey(app, ['keys:write', 'users:write'])
    const user = await signUp(app)
    const change = { method: 'PUT', url: `/admin/users/${user.id}`, payload: { firstName: 'Ada' } } as const
    t.equal((await app.inject({ ...change, headers: key.headers })).statusCode, 200)
    const child = await createKey(app, ['keys:write'], { by: key.headers })
    await revokeKey(app, child.id, key.headers)
    const events = async (query: string) =>
      (await app.inject({ url: `/admin/events?${query}`, headers: asAdmin })).json()
    t.match(await events('type=user.changed'), {
      results: [{ actor: { type: 'adminKey', id: key.id }, userId: user.id }],
    })
    const created = (await events('type=admin-key.created')).results
    t.equal(created.length, 2)
    t.match(created, [
      {
        actor: { type: 'adminKey', id: key.id },
        userId: null,
        ip: '127.0.0.1',
        details: { adminKey: child.id, scopes: ['keys:write'] },
      },
      { actor: { type: 'adminKey', id: ROOT_ID }, userId: null, details: { adminKey: key.id } },
    ])
    t.match((await events('type=admin-key.revoked')).results, [
      { actor: { type: 'adminKey', id: key.id }, userId: null, details: { adminKey: child.id } },
    ])
    const types = (page: { results: { type: string }[] }) => page.results.map(({ type }) => type)
    t.strictSame(types(await events(`userId=${user.id}`)), ['user.changed', 'user.signed-up'])
    // On PostgreSQL an event waits for transactions that began before its own.
    const inOrder = await until(
      async () => types(await events('sort=at')),
      ({ length }) => length === 5,
      5_000,
    )
    t.strictSame(inOrder, [
      'admin-key.created',
      'user.signed-up',
      'user.changed',
      'admin-key.created',
      'admin-key.revoked',
    ])
    const { text } = key
    t.notMatch(JSON.stringify(await events('limit=100')), text)
  })

  t.test('impersonated sessions end with the key that opened them', async t => {
    const clock = manualClock()
    const app = await build(t, { clock: clock.now })
    const expiresAt = new Date(clock.now() + 90_500).toISOString()
    const key = await createKey(app, ['users:impersonate'])
    const short = await createKey(app, ['users:impersonate'], { expiresAt })
    const users = [await signUp(app), await signUp(app)]
    const impersonate = async (id: string, headers: Record<string, string>) =>
      (await app.inject({ method: 'POST', url: `/admin/users/${id}/impersonate`, headers })).json()
    const tokens: string[] = []
    for (const { id } of users) {
      const { accessToken } = await impersonate(id, key.headers)
      tokens.push(accessToken)
      t.equal(await accountStatus(app, accessToken), 200)
    }
    const byRoot = (await impersonate(users[0]?.id ?? '', asAdmin)).accessToken
    const limited = await impersonate(users[0]?.id ?? '', short.headers)
    t.equal(limited.expiresAt, new Date(clock.now() + 90_000).toISOString(), 'not later than the key')
    t.equal(await revokeKey(app, key.id), 204)
    for (const token of tokens) t.equal(await accountStatus(app, token), 401)
    for (const token of [byRoot, limited.accessToken, ...users.map(({ token }) => token)])
      t.equal(await accountStatus(app, token), 200, 'others go on')
  })
})
