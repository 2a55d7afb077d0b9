/** The scopes of the console: what it shows and does needs those of the API (docs/console.md). */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { consoleModulesOf } from '#features/console/console-modules'
import { placedActions } from '#features/console/routes/actions'
import type { ApiCall } from '#http/pages/feature-pages'
import { createKey } from '../support/admin-keys.ts'
import { ADMIN_KEY, asAdmin, build, signUp } from '../support/build.ts'
import { signedInTo } from '../support/console.ts'
import { adminCall, team } from '../support/organizations.ts'

const anyName = (path: string): string => (path.split('?', 1)[0] ?? '').replaceAll(/:\w+/g, ':')

/** The scopes that the API needs for a call. */
const scopesOf = (app: FastifyInstance, { method, path, body }: ApiCall): readonly string[] => {
  const route = app.routeTable.find(
    ({ url, methods }) => anyName(url) === anyName(path) && methods.includes(method),
  )
  const { scope = `no scope: ${method} ${path}`, fieldScopes = {} } = route?.options.config ?? {}
  const fields = Object.keys(body ?? {})
  return fields.length === 0 ? [scope] : [...new Set(fields.map(name => fieldScopes[name] ?? scope))]
}

t.test('D6: the console', async t => {
  const app = await build(t, { env: { CONSOLE: 'on' } })
  const { organization, owner } = await team(app)
  const { features, eventSchemas, adminScopes } = app.services
  const { pages, plots } = await consoleModulesOf(features, {
    eventTypes: Object.keys(eventSchemas),
    adminScopes,
    featureSettings: app.config.featureSettings,
  })

  t.test('D6: every list, item, section and action declares the scope of its route', async t => {
    for (const page of pages) {
      const shown = [page.list, page.item, ...(page.item?.sections ?? [])]
      for (const part of shown) {
        if (part === undefined) continue
        t.same([part.scope], scopesOf(app, { method: 'GET', path: part.api }), part.api)
      }
      for (const { action, path } of placedActions(page)) {
        const inputs = action.inputs ?? []
        const entered = Object.fromEntries(
          inputs.map(({ name, kind }) => [name, kind === 'choices' || kind === 'lines' ? [] : '1']),
        )
        const call = action.call({ id: 'x', rowId: 'y' }, entered)
        t.same([action.scope], scopesOf(app, call), path)
      }
    }
    t.same(
      plots.filter(({ scope }) => scope !== undefined).map(({ metric }) => metric),
      ['active users'],
      'metrics do not have the others',
    )
  })

  t.test('D6: a key of one scope sees what this scope allows', async t => {
    const user = `/console/users/${owner.id}`
    const shown: readonly (readonly [path: string, text: RegExp, ...scopes: string[]])[] = [
      ['/console', /<h2>Requests<\/h2>/, 'metrics:read'],
      ['/console', /<h2>Active users<\/h2>/, 'metrics:read', 'users:read'],
      ['/console', /Active in the last day/, 'metrics:read', 'users:read'],
      ['/console', /<h2>Latest events<\/h2>/, 'events:read'],
      ['/console/users', new RegExp(owner.email), 'users:read'],
      [user, new RegExp(owner.email), 'users:read'],
      [`${user}/events`, /user\.signed-up/, 'users:read', 'events:read'],
      [`${user}/organizations`, new RegExp(organization.name), 'users:read', 'organizations:read'],
      ['/console/organizations', new RegExp(organization.name), 'organizations:read'],
      [`/console/organizations/${organization.id}/members`, new RegExp(owner.email), 'organizations:read'],
      ['/console/events', /organization\.created/, 'events:read'],
      ['/console/admin-keys', /<bdi>of a test<\/bdi><\/strong><span class="also/, 'keys:write'],
      ['/console/webhooks', /<h1>Webhooks/, 'webhooks:write'],
      ['/console/status', /argon2id/, 'status:read'],
      ['/console/settings', /SESSION_LIFETIME/, 'settings:read'],
      ['/console/providers', /OIDC_PROVIDERS/, 'settings:read'],
      ['/console/status', /Users, about<[^–]*\d/, 'status:read', 'users:read'],
    ]
    const pairs = new Set(shown.map(([, , ...scopes]) => scopes.join(' ')))
    const held = new Set([...Object.keys(adminScopes), ...pairs])
    const paths = [...new Set(shown.map(([path]) => path))]
    for (const scopes of [...held].map(each => each.split(' '))) {
      const client = await signedInTo(app, (await createKey(app, scopes)).text)
      for (const path of paths) {
        await client.open(path)
        for (const [, text, ...needed] of shown.filter(([each]) => each === path))
          t.equal(
            text.test(client.page),
            needed.every(scope => scopes.includes(scope)),
            `${scopes}: ${path} ${text}`,
          )
      }
    }
  })

  t.test('D6: what somebody enters reaches no other path of the API', async t => {
    const { id } = await signUp(app)
    const client = await signedInTo(app)
    const path = `/console/organizations/${organization.id}/put-member`
    const before = (await adminCall(app, 'GET', `/admin/organizations/${organization.id}`)).json()
    const entered = [
      '..',
      '.',
      '%2e%2e',
      '%2E.',
      `../members/${id}`,
      `${id}/..`,
      '?',
      '#',
      '..#',
      '\\..',
      '../../users',
    ]
    for (const userId of entered) {
      await client.open(path)
      await client.submit('put-member', { userId, roles: 'member', adminKey: ADMIN_KEY })
      t.equal(client.status, 400, userId)
      t.match(client.page, 'Add a member or change roles', `${userId}: the form is shown again`)
    }
    t.strictSame((await adminCall(app, 'GET', `/admin/organizations/${organization.id}`)).json(), before)
    const start = await app.inject({ method: 'POST', url: '/sign-in/providers/%2e%2e', payload: '' })
    t.not(start.statusCode, 200)
  })

  t.test('D6: an export has organizations for keys with organizations:read', async t => {
    const organizationsIn = async (headers: Readonly<Record<string, string>>) => {
      const { body } = await app.inject({ url: '/admin/users/export', headers })
      const lines = body.trim().split('\n')
      return lines.some(line => 'organizations' in JSON.parse(line))
    }
    const keyWith = async (...scopes: string[]) => (await createKey(app, scopes)).headers
    t.equal(await organizationsIn(await keyWith('users:export')), false)
    t.equal(await organizationsIn(await keyWith('users:export', 'organizations:write')), false)
    t.equal(await organizationsIn(await keyWith('users:export', 'organizations:read')), true)
    t.equal(await organizationsIn(asAdmin), true)
  })
})
