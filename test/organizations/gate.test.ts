/** The gate of organizations: its declarations, its cost, and how fast a change holds (docs/organizations.md). */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { openSqliteStorage } from '#core/store/sqlite'
import { defineFeature } from '#feature/declaration'
import { allFeatures } from '#features/built-in'
import { bearer, build, newFile, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsOf } from '../support/error-response.ts'
import { addMember, adminCall, call, organizationOf, team } from '../support/organizations.ts'
import { inShortRun } from '../support/run.ts'
import { execute, select } from '../support/stored-rows.ts'
import { until } from '../support/until.ts'
import { pooledWriter } from '../support/writer-pool.ts'

/** Private routes outside of the service's folders are added behind its gate. */
const addRoute = (path: string, organization: unknown) => (app: FastifyInstance) => {
  app.register(async scoped => {
    scoped.addHook('onRequest', scoped.requestAuthentication.authenticateUser)
    scoped.addHook('preHandler', scoped.requestAuthentication.authenticateUser)
    scoped.addHook('onRoute', route => {
      route.config = { ...route.config, gate: 'user' }
    })
    scoped.get(
      path,
      { config: { organization: organization as true } },
      async request => request.organization,
    )
  })
}

const withRoute = (organization: unknown, path = '/teams/:organizationId/secret') => ({
  extend: addRoute(path, organization),
})

t.test('a route gets the organization, with the roles of the user there', async t => {
  const app = await build(t, { ...withRoute(['billing']), env: { ORGANIZATION_ROLES: 'billing' } })
  const { organization, owner, admin, member } = await team(app)
  const url = `/teams/${organization.id}/secret`
  const { id, slug, name } = organization
  t.strictSame((await call(app, owner, 'GET', url)).json(), { id, slug, name, roles: ['owner'] })
  t.equal((await call(app, owner, 'GET', url.replace(id, id.toUpperCase()))).statusCode, 200)
  for (const user of [admin, member]) errorsOf(t, await call(app, user, 'GET', url), 403)
  await addMember(app, id, member.id, ['billing', 'member'])
  t.strictSame((await call(app, member, 'GET', url)).json().roles, ['billing', 'member'])
  errorsOf(t, await app.inject({ url }), 401)
  await call(app, owner, 'PUT', `/organizations/${id}`, { name: 'Renamed', slug: 'renamed-team' })
  t.match((await call(app, member, 'GET', url)).json(), { slug: 'renamed-team', name: 'Renamed' })
})

t.test('true admits every member', async t => {
  const app = await build(t, withRoute(true))
  const { organization, member } = await team(app)
  t.equal((await call(app, member, 'GET', `/teams/${organization.id}/secret`)).statusCode, 200)
  errorsOf(t, await call(app, await signUp(app), 'GET', `/teams/${organization.id}/secret`), 404)
})

t.test('a declaration that cannot be met stops the start', async t => {
  const cases: readonly (readonly [unknown, string, RegExp])[] = [
    [
      ['billing'],
      '/teams/:organizationId',
      /role "billing" of an organization, which is none of owner, admin, member/,
    ],
    ['admin', '/teams/:organizationId', /neither true nor a list of roles/],
    [false, '/teams/:organizationId', /neither true nor a list of roles/],
    [[], '/teams/:organizationId', /neither true nor a list of roles/],
    [['admin'], '/teams/:id', /its URL has no :organizationId/],
  ]
  for (const [declared, path, message] of cases)
    await t.rejects(build(t, withRoute(declared, path)), { message })
  const open = build(t, {
    extend: app => void app.get('/o/:organizationId', { config: { organization: true } }, async () => 'x'),
  })
  await t.rejects(open, { message: /declares organization, but only private routes know their user/ })
})

t.test('the name of a guard is its own', async t => {
  const guarding = (guards: object) =>
    defineFeature({ name: 'guarding', module: import.meta.url, guards: guards as Record<string, never> })
  for (const name of ['organization', 'roles', 'user', 'Organization'])
    await t.rejects(build(t, { features: [guarding({ [name]: () => null })] }), { message: new RegExp(name) })
})

t.test('a warm request queries nothing', async t => {
  const DATABASE_URL = await newFile(t)
  const storage = await openSqliteStorage(DATABASE_URL.replace('sqlite:', ''), allFeatures(), pooledWriter)
  const reads: string[] = []
  const counted = Object.fromEntries(
    Object.entries(storage.features.organizations as Record<string, (...args: never[]) => unknown>).map(
      ([name, run]) => [
        name,
        (...args: never[]) => {
          reads.push(name)
          return run(...args)
        },
      ],
    ),
  )
  const features = { ...storage.features, organizations: counted }
  const app = await build(t, { ...withRoute(true), env: { DATABASE_URL }, storage: { ...storage, features } })
  const owner = await signUp(app)
  const { id } = await organizationOf(app, owner)
  const get = () => app.inject({ url: `/teams/${id}/secret`, headers: bearer(owner.token) })
  t.equal((await get()).statusCode, 200)
  reads.length = 0
  for (let each = 0; each < 20; each += 1) t.equal((await get()).statusCode, 200)
  t.strictSame(reads, [])
  // A foreign organization, and one that does not exist, neither.
  for (const other of ['01936b7e-4a5c-7d3e-9f10-2b3c4d5e6f70', 'x'])
    t.equal(
      (await app.inject({ url: `/teams/${other}/secret`, headers: bearer(owner.token) })).statusCode,
      404,
    )
  t.strictSame(reads, [])
})

await onEnginesOfRun(t, async (t, { name, build, newDatabase }) => {
  const DATABASE_URL = await newDatabase(t)
  const options = { ...withRoute(['admin']), env: { DATABASE_URL } }
  const app = await build(t, options)
  const second = await build(t, options)

  t.test('a removal, and lost roles, hold at once here, and within a second elsewhere', async t => {
    for (const isRemoved of [true, false]) {
      const { organization, owner, admin } = await team(app)
      const url = `/teams/${organization.id}/secret`
      const status = async (on: FastifyInstance) => (await call(on, admin, 'GET', url)).statusCode
      t.strictSame([await status(app), await status(second)], [200, 200])
      const path = `/organizations/${organization.id}/members/${admin.id}`
      const response = isRemoved
        ? await call(app, owner, 'DELETE', path)
        : await call(app, owner, 'PUT', path, { roles: ['member'] })
      t.ok(response.statusCode < 300)
      const expected = isRemoved ? 404 : 403
      t.equal(await status(app), expected)
      t.equal(
        await until(
          () => status(second),
          found => found === expected,
          1_000,
        ),
        expected,
      )
    }
  })

  t.test('a deleted organization is not found at once here, and within a second elsewhere', async t => {
    const { organization, owner, admin } = await team(app)
    const url = `/teams/${organization.id}/secret`
    const status = async (on: FastifyInstance) => (await call(on, admin, 'GET', url)).statusCode
    t.strictSame([await status(app), await status(second)], [200, 200])
    t.equal((await call(app, owner, 'DELETE', `/organizations/${organization.id}`)).statusCode, 204)
    t.equal(await status(app), 404)
    t.equal(
      await until(
        () => status(second),
        found => found === 404,
        1_000,
      ),
      404,
    )
  })

  t.test('deleting a large organization is batched, and leaves nothing', async t => {
    const size = inShortRun(20_000, 100_000)
    const { organization, owner, admin } = await team(app)
    const { id } = organization
    const padded = (text: string) =>
      name === 'postgres' ? `lpad(${text}::text, 12, '0')` : `substr('000000000000' || ${text}, -12)`
    const series = `WITH RECURSIVE series (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM series WHERE i < ${size})`
    const idOf = (prefix: string) => `'${prefix}-0000-7000-8000-' || ${padded('i')}`
    await execute(
      DATABASE_URL,
      `${series} INSERT INTO users (id, email, password_hash, first_name_key, last_name_key, email_verified, disabled, created_at, updated_at, version)
        SELECT ${idOf('00000001')}, 'many' || i || '@example.com', 'x', '', '', 1, 0, 1, 1, 1 FROM series`,
    )
    await execute(
      DATABASE_URL,
      `INSERT INTO organization_members (id, organization_id, user_key, roles, rank, created_at, updated_at)
        SELECT 'f' || substr(id, 2), '${id}', key, '["member"]', 2, 1, 1 FROM users WHERE email LIKE 'many%'`,
    )
    const began = performance.now()
    t.equal((await call(app, owner, 'DELETE', `/organizations/${id}`)).statusCode, 204)
    t.ok(performance.now() - began < 5_000, 'the request does not wait for it')
    errorsOf(t, await call(app, admin, 'GET', `/teams/${id}/secret`), 404)
    const count = async () =>
      Number((await select(DATABASE_URL, 'SELECT count(*) AS n FROM organization_members'))[0]?.n)
    const total = await count()
    t.ok(total > size * 0.99)
    // A process that is stopped in the middle: another one continues.
    const stopping = new AbortController()
    const first = app.services.organizations.removeDeleted({ signal: stopping.signal })
    await until(count, found => found < total, 20_000)
    stopping.abort()
    await t.rejects(first)
    t.ok((await count()) > 0)
    await second.services.organizations.removeDeleted({ signal: new AbortController().signal })
    const rest = await select(
      DATABASE_URL,
      `SELECT count(*) AS n FROM organization_members WHERE organization_id = '${id}'`,
    )
    t.equal(Number(rest[0]?.n), 0)
    t.strictSame(await select(DATABASE_URL, `SELECT id FROM organizations WHERE id = '${id}'`), [])
    errorsOf(t, await adminCall(app, 'GET', `/admin/organizations/${id}`), 404)
  })
})
