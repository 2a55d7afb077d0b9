/** Organizations in exports and imports (docs/organizations.md). */
import t from 'tap'
import { confirmedUser, freshEmail } from '../support/build.ts'
import { exportAll, importAll } from '../support/bulk-users.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { readLog } from '../support/event-log.ts'
import { adminCall, call, team } from '../support/organizations.ts'

await onEnginesOfRun(t, async (t, { build: buildOn }) => {
  t.test('an export has the memberships; an import restores them, also when it is repeated', async t => {
    const app = await buildOn(t)
    const { organization, owner, admin, member } = await team(app)
    await adminCall(app, 'PUT', `/admin/organizations/${organization.id}`, { maxMembers: 2 + 1 })
    const lines = await exportAll(app, '?passwordHashes=true')
    const ofOwner = lines.find(({ id }) => id === owner.id)
    const { id, name, slug } = organization
    const own = { id, name, slug, maxMembers: 3, roles: ['owner'], joinedAt: /Z$/ }
    t.match(ofOwner?.organizations, [own])

    const other = await buildOn(t)
    // The member first: the organization has no owner until the line of one.
    const results = await importAll(other, lines.toReversed())
    t.match(results.at(-1), { status: 'finished', created: 3, failed: 0 })
    const members = async (on: typeof app) =>
      (await adminCall(on, 'GET', `/admin/organizations/${id}/members`)).json().results
    t.strictSame(await members(other), await members(app))
    t.match((await adminCall(other, 'GET', `/admin/organizations/${id}`)).json(), {
      name,
      slug,
      maxMembers: 3,
    })
    t.match((await importAll(other, lines)).at(-1), { status: 'finished', exists: 3, failed: 0 })
    t.strictSame(await members(other), await members(app))
    const types = (await readLog(other)).filter(({ details }) => details?.organization === id)
    t.strictSame(types.map(({ type }) => type).toSorted(), [
      'organization.created',
      ...Array(3).fill('organization.member-added'),
    ])
    t.ok([admin.id, member.id].every(each => types.some(({ userId }) => userId === each)))
  })

  t.test('what is not valid fails its line; an existing user of another id gets nothing', async t => {
    const app = await buildOn(t)
    const { organization, owner } = await team(app)
    const { id, name } = organization
    const membership = { id, name, slug: organization.slug, roles: ['member'] }
    const line = (fields: object, email = freshEmail()) => ({
      email,
      organizations: [{ ...membership, ...fields }],
    })
    const UNKNOWN = '01936b7e-4a5c-7d3e-9f10-2b3c4d5e6f70'
    const results = await importAll(app, [
      line({ roles: [] }),
      line({ roles: ['Not a role'] }),
      line({ slug: 'admin' }),
      line({ name: 'Win at www.evil.example' }),
      line({ id: UNKNOWN }),
      line({ id: 'x' }),
      line({ roles: ['owner'] }, owner.email),
    ])
    t.strictSame(
      results.slice(0, 7).map(({ status, errors = {} }) => [status, ...Object.keys(errors)]),
      [
        ['failed', 'organizations.0.roles'],
        ['failed', 'organizations.0.roles.0'],
        ['failed', 'organizations.0.slug'],
        ['failed', 'organizations.0.name'],
        ['failed', 'organizations.0.slug'],
        ['failed', 'organizations.0.id'],
        ['exists'],
      ],
    )
    const { results: members } = (await adminCall(app, 'GET', `/admin/organizations/${id}/members`)).json()
    t.equal(members.length, 3)
  })

  t.test('G8: a key that may import users makes nobody a member without organizations:write', async t => {
    const app = await buildOn(t)
    const { organization, owner } = await team(app)
    const stranger = await confirmedUser(app)
    const { id, name, slug } = organization
    const organizations = [{ id, name, slug, roles: ['owner'] }]
    const importBy = async (scopes: readonly string[]) => {
      const { adminKey } = (await adminCall(app, 'POST', '/admin/keys', { name: 'import', scopes })).json()
      const lines = [
        { id: stranger.id, email: stranger.email, organizations },
        { email: freshEmail(), organizations },
        { email: freshEmail() },
      ]
      const response = await app.inject({
        method: 'POST',
        url: '/admin/users/import',
        headers: { 'x-admin-key': adminKey, 'content-type': 'application/x-ndjson' },
        payload: lines.map(line => JSON.stringify(line)).join('\n'),
      })
      const results = response.body.trim().split('\n')
      return results.slice(0, 3).map(line => JSON.parse(line))
    }
    const members = async () => (await call(app, owner, 'GET', `/organizations/${id}/members`)).json().results
    const refused = {
      status: 'failed',
      errors: { organizations: ['needs an admin key with the scope organizations:write'] },
    }
    t.match(await importBy(['users:import']), [refused, refused, { status: 'created' }])
    t.equal((await members()).length, 3)
    t.match(await importBy(['users:import', 'organizations:write']), [
      { status: 'exists' },
      { status: 'created' },
      { status: 'created' },
    ])
    t.equal((await members()).length, 5)
  })
})
