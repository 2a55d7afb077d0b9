/**
 * What a key with `users:write` may change of users, what needs `users:identity`, and keys from before that scope (docs/design.md, "Machine
 * callers").
 */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import type { TeamField } from '#core/users/field-kinds'
import { TEAM_FIELDS } from '#core/users/team-fields'
import { call } from '../support/account-routes.ts'
import { createKey, listKeys, postKey, type TestKey } from '../support/admin-keys.ts'
import { allEvents, removeFactors, UNKNOWN_ID } from '../support/admin-routes.ts'
import { createKey as createApiKey } from '../support/api-keys.ts'
import { addTotp, ENCRYPTION_KEY } from '../support/authenticator-apps.ts'
import { asAdmin, freshEmail, PASSWORD, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { mailbox } from '../support/mailbox.ts'
import { execute } from '../support/stored-rows.ts'

/** bcrypt of `imported pass phrase 7`. */
const HASH = '$2b$10$c3KKPmKviThSCN3FMENrVuGmJkRitdRR9eCgzD/HvRuBUoqerY2Xi'

type Body = Record<string, unknown>

/** Fields that a team has added, which need no scope of their own. */
const TEAM_FIELD_BODIES: readonly Body[] = Object.entries<TeamField>(TEAM_FIELDS)
  .filter(([, { adminScope }]) => adminScope === undefined)
  .map(([field, { schema }]) => ({ [field]: [schema.examples].flat()[0] }))

/** Each property of `PUT /admin/users/:id`, by the scope that it needs. */
const CHANGES: Record<string, readonly (() => Body)[]> = {
  'users:write': [
    () => ({ firstName: 'Ann' }),
    () => ({ lastName: null }),
    () => ({ locale: 'de' }),
    () => ({ userMetadata: { a: 1 } }),
    () => ({ appMetadata: { b: 2 } }),
    () => ({ disabled: true }),
    ...TEAM_FIELD_BODIES.map(body => () => body),
  ],
  'users:identity': [
    () => ({ email: freshEmail('changed') }),
    () => ({ emailVerified: true }),
    () => ({ emailVerified: false }),
    () => ({ roles: ['owner'] }),
    () => ({ roles: [] }),
  ],
}

/** Each property of `POST /admin/users` besides the e-mail. */
const PROPERTIES: Record<string, readonly Body[]> = {
  'users:write': [
    {},
    { firstName: 'Ann' },
    { lastName: 'Lee' },
    { locale: 'de' },
    { userMetadata: { a: 1 } },
    { appMetadata: { b: 2 } },
    ...TEAM_FIELD_BODIES,
  ],
  'users:identity': [
    { emailVerified: true },
    { emailVerified: false },
    { roles: ['owner'] },
    { roles: [] },
    { password: PASSWORD },
    { passwordHash: HASH },
  ],
}

const namesIn = (bodies: readonly Body[]): string[] => [...new Set(bodies.flatMap(body => Object.keys(body)))]

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const app = await build(t, { env: { ENCRYPTION_KEY } })
  const keys: Record<string, TestKey> = {
    'users:write': await createKey(app, ['users:write', 'users:read']),
    'users:identity': await createKey(app, ['users:identity', 'users:read']),
    both: await createKey(app, ['users:write', 'users:identity']),
  }
  const headersOf = (name: string) => ({ ...keys[name]?.headers })
  const otherOf = (scope: string) => (scope === 'users:write' ? 'users:identity' : 'users:write')
  const change = (id: string, payload: Body, key: string) =>
    call(app, 'PUT', `/admin/users/${id}`, payload, headersOf(key))
  const create = (payload: Body, key: string) => call(app, 'POST', '/admin/users', payload, headersOf(key))
  const userOf = async (id: string) =>
    (await call(app, 'GET', `/admin/users/${id}`, undefined, asAdmin)).json()
  const isRefused = (t: Test, response: LightMyRequestResponse, scopes: string, title: string) => {
    t.equal(globalErrorOf(t, response, 403), 'This needs a scope that the key does not have', title)
    t.equal(
      response.headers['www-authenticate'],
      `x-admin-key error="insufficient_scope", scope="${scopes}"`,
      title,
    )
  }
  /** The properties of a body, from the schema of the live route. */
  const propertiesOf = (url: string, method: string): string[] => {
    const route = app.routeTable.find(each => each.url === url && each.methods.includes(method))
    const body = route?.options.schema?.body as { readonly properties: object } | undefined
    return Object.keys(body?.properties ?? {}).sort()
  }

  t.test('K4: each property of a change needs its scope, and only that', async t => {
    const bodies = Object.values(CHANGES).flat()
    t.same(namesIn(bodies.map(body => body())).sort(), propertiesOf('/admin/users/:id', 'PUT'))
    for (const [scope, changes] of Object.entries(CHANGES))
      for (const body of changes) {
        const { id } = await signUp(app)
        const title = JSON.stringify(body())
        isRefused(t, await change(id, body(), otherOf(scope)), scope, title)
        t.match(await userOf(id), { updatedAt: (await userOf(id)).createdAt }, `${title}: nothing changed`)
        const allowed = body()
        t.match((await change(id, allowed, scope)).json(), allowed, title)
        t.equal((await change(id, body(), 'both')).statusCode, 200, title)
      }
  })

  t.test('K4: a change of both kinds needs both scopes, and is refused as a whole', async t => {
    const { id, email } = await signUp(app)
    for (const identity of CHANGES['users:identity'] ?? []) {
      const body = { firstName: 'Both', ...identity() }
      isRefused(t, await change(id, body, 'users:write'), 'users:identity', JSON.stringify(body))
      isRefused(t, await change(id, body, 'users:identity'), 'users:write', JSON.stringify(body))
    }
    t.match(await userOf(id), { firstName: null, email, emailVerified: false, roles: [] })
    t.same(await allEvents(app, { userId: id, type: 'user.changed' }), [])
    const { headers } = await createKey(app, ['users:delete'])
    const neither = await call(app, 'PUT', `/admin/users/${id}`, { email }, headers)
    isRefused(t, neither, 'users:write', 'a key without both learns the scope of the route')
  })

  t.test('K4: the scope is checked before the user is looked up, and after the body is valid', async t => {
    isRefused(t, await change(UNKNOWN_ID, { roles: [] }, 'users:write'), 'users:identity', 'unknown')
    const { id } = await signUp(app)
    errorsAt(t, await change(id, { roles: 'x', extra: 1 }, 'users:write'), 400, ['extra', 'roles'])
    globalErrorOf(t, await change(id, {}, 'users:identity'), 400)
  })

  t.test('K4: users:write creates accounts, users:identity gives access to them', async t => {
    const bodies = Object.values(PROPERTIES).flat()
    t.same(['email', ...namesIn(bodies)].sort(), propertiesOf('/admin/users', 'POST'))
    for (const [scope, properties] of Object.entries(PROPERTIES))
      for (const body of properties) {
        const email = freshEmail('new')
        const title = JSON.stringify(body)
        isRefused(t, await create({ email, ...body }, 'users:identity'), 'users:write', title)
        if (scope === 'users:identity')
          isRefused(t, await create({ email, ...body }, 'users:write'), scope, title)
        const created = await create({ email, ...body }, scope === 'users:identity' ? 'both' : scope)
        t.equal(created.statusCode, 201, `${title}: the refused requests have stored nothing`)
      }
  })

  t.test('K4: factors need users:identity, sessions and API keys users:write', async t => {
    const { id, token, email } = await signUp(app)
    await addTotp(app, token)
    const { apiKey } = await createApiKey(app, token)
    isRefused(t, await removeFactors(app, id, headersOf('users:write')), 'users:identity', 'factors')
    t.same((await userOf(id)).factors, ['totp'])
    for (const url of ['sessions', `api-keys/${apiKey.id}`]) {
      const remove = (key: string) =>
        call(app, 'DELETE', `/admin/users/${id}/${url}`, undefined, headersOf(key))
      isRefused(t, await remove('users:identity'), 'users:write', url)
      t.equal((await remove('users:write')).statusCode, 204, url)
    }
    t.equal((await removeFactors(app, id, headersOf('users:identity'))).statusCode, 204)
    await mailbox(app).to(email, 'factorsRemoved')
  })

  t.test('K2: a key with users:write creates no key with users:identity, and revokes none', async t => {
    const { headers } = await createKey(app, ['keys:write', 'users:write'])
    const more = await postKey(app, { name: 'more', scopes: ['users:write', 'users:identity'] }, headers)
    isRefused(t, more, 'users:identity', 'created')
    t.equal((await postKey(app, { name: 'as much', scopes: ['users:write'] }, headers)).statusCode, 201)
    const revoked = await call(app, 'DELETE', `/admin/keys/${keys.both?.id}`, undefined, headers)
    isRefused(t, revoked, 'users:identity', 'revoked')
  })

  t.test('keys from before users:identity keep what users:write allowed', async t => {
    const env = { DATABASE_URL: await newDatabase(t) }
    const before = await build(t, { env })
    const scopes = {
      write: ['users:write'],
      more: ['users:read', 'users:write', 'users:delete', 'keys:write'],
      none: ['users:read', 'users:delete'],
    }
    const made = {
      write: await createKey(before, scopes.write),
      more: await createKey(before, scopes.more),
      none: await createKey(before, scopes.none),
      // Of a later version, or of a feature that was removed.
      unknown: await createKey(before, ['users:read', 'status:read']),
    }
    const { id } = await signUp(before)
    await before.close()
    const { DATABASE_URL } = env
    await execute(DATABASE_URL, `UPDATE admin_keys SET scopes = replace(scopes, 'status:read', 'later:read')`)
    await execute(
      DATABASE_URL,
      `DELETE FROM feature_migrations WHERE feature = 'admin-keys' AND name = '0002_users_identity'`,
    )
    for (const start of ['migrated', 'started again'])
      await t.test(start, async t => {
        const app = await build(t, { env })
        const listed = new Map<string, string[]>(
          (await listKeys(app)).map((key: { id: string; scopes: string[] }) => [key.id, key.scopes]),
        )
        t.same(listed.get(made.write.id), ['users:write', 'users:identity'])
        t.same(listed.get(made.more.id), [
          ...['users:read', 'users:write', 'users:identity', 'users:delete', 'keys:write'],
        ])
        t.same(listed.get(made.none.id), scopes.none)
        t.same(listed.get(made.unknown.id), ['users:read', 'later:read'], 'an unknown scope is no error')
        const change = { email: freshEmail('kept'), emailVerified: true, firstName: start }
        const put = (app: FastifyInstance, { headers }: TestKey) =>
          call(app, 'PUT', `/admin/users/${id}`, change, { ...headers })
        t.match((await put(app, made.write)).json(), change)
        t.equal((await put(app, made.none)).statusCode, 403)
        const { headers } = made.unknown
        t.equal((await app.inject({ url: `/admin/users/${id}`, headers })).statusCode, 200)
      })
  })
})
