/** Organizations in the console (docs/console.md). */
import t from 'tap'
import { createKey } from '../support/admin-keys.ts'
import { ADMIN_KEY, build, signUp } from '../support/build.ts'
import { signedInTo } from '../support/console.ts'
import { adminCall, team } from '../support/organizations.ts'

t.test('organizations in the console', async t => {
  const app = await build(t, { env: { CONSOLE: 'on' } })
  const { organization, owner, member } = await team(app, { name: '<b>Müller & Söhne</b>' })
  const path = `/console/organizations/${organization.id}`
  const api = `/admin/organizations/${organization.id}`

  t.test('they are found by name, and shown with their members', async t => {
    const client = await signedInTo(app)
    await client.open('/console/organizations?name=%3Cb%3Em')
    t.match(client.page, '&lt;b&gt;Müller &amp; Söhne&lt;/b&gt;')
    t.match(client.page, `organizations/${organization.id}"`)
    await client.open('/console/organizations?name=nobody')
    t.match(client.page, 'No organization is found.')
    await client.open('/console/organizations?name=a&slug=a')
    t.match(client.page, 'Fill in the name or the short name, not both.')
    await client.open(`${path}/members`)
    for (const { email, id } of [owner, member]) {
      t.match(client.page, email)
      t.match(client.page, `/console/users/${id}"`)
    }
  })

  t.test('names and seats are changed, with the errors of the API', async t => {
    const client = await signedInTo(app)
    await client.open(`${path}/edit`)
    await client.submit('edit', { name: 'Works', slug: 'works', maxMembers: 'many' })
    t.equal(client.status, 400)
    await client.submit('edit', { name: 'Works', slug: 'works', maxMembers: '5' })
    t.equal(client.path, path)
    t.match((await adminCall(app, 'GET', api)).json(), { name: 'Works', slug: 'works', maxMembers: 5 })
    await client.open(`${path}/edit`)
    await client.submit('edit', { name: 'Works', slug: 'works', maxMembers: '' })
    t.match((await adminCall(app, 'GET', api)).json(), { maxMembers: null })
  })

  t.test('members are added, and removed on the page of the user', async t => {
    const { id } = await signUp(app)
    const rolesThere = async () =>
      (await adminCall(app, 'GET', `/admin/users/${id}/organizations`))
        .json()
        .results.map(({ roles }: { roles: string[] }) => roles)
    const client = await signedInTo(app)
    await client.open(`${path}/put-member`)
    await client.submit('put-member', { userId: id, roles: 'no role', adminKey: ADMIN_KEY })
    t.equal(client.status, 400)
    await client.submit('put-member', { userId: id, roles: 'member, admin', adminKey: ADMIN_KEY })
    t.same((await rolesThere()).flat().sort(), ['admin', 'member'])
    await client.open(`/console/users/${id}/organizations`)
    t.match(client.page, 'Works')
    await client.open(`/console/users/${id}/organizations/${organization.id}/remove`)
    await client.submit('remove')
    t.equal(client.path, `/console/users/${id}/organizations`)
    t.same(await rolesThere(), [])
  })

  t.test('deleting needs the key again', async t => {
    const client = await signedInTo(app)
    await client.open(`${path}/delete`)
    await client.submit('delete', { adminKey: 'another' })
    t.equal(client.status, 403)
    await client.submit('delete', { adminKey: ADMIN_KEY })
    t.equal(client.path, '/console/organizations')
    t.equal((await adminCall(app, 'GET', api)).statusCode, 404)
  })

  t.test('G8: a key without the scopes sees and does nothing', async t => {
    const { text } = await createKey(app, ['users:read'])
    const other = await team(app)
    const client = await signedInTo(app, text)
    await client.open('/console/users')
    t.notMatch(client.page, 'console/organizations"')
    await client.open('/console/organizations')
    t.equal(client.status, 403)
    await client.open(`/console/users/${other.owner.id}`)
    t.notMatch(client.page, `${other.owner.id}/organizations`)
    await client.open(`/console/users/${other.owner.id}/organizations`)
    t.equal(client.status, 403)
    t.notMatch(client.page, other.organization.name)
    await client.open(`/console/organizations/${other.organization.id}/delete`)
    t.equal(client.status, 403)
  })
})
