/** The console (docs/console.md) in a browser without script: signing in, lists, items, actions. */
import t from 'tap'
import { ADMIN_KEY, asAdmin, build, confirmedUser, signIn, signUp } from '../support/build.ts'
import { signedInTo } from '../support/console.ts'
import { FormClient } from '../support/form-client.ts'
import { organizationOf } from '../support/organizations.ts'

t.test('without CONSOLE there is no console', async t => {
  const app = await build(t)
  t.equal((await app.inject('/console')).statusCode, 404)
  t.equal((await app.inject('/pages/console.js')).statusCode, 404)
})

t.test('the console', async t => {
  const app = await build(t, { env: { CONSOLE: 'on', ORGANIZATION_MAX_CREATED: '60' } })

  t.test('a page leads to the sign-in, and the sign-in back to the page', async t => {
    const client = new FormClient(app)
    await client.open('/console/users?search=zo%C3%AB+q&role=')
    t.equal(client.path, '/console/sign-in')
    await client.submit('sign-in', { adminKey: 'not-an-admin-key-000' })
    t.equal(client.status, 401)
    t.match(client.page, 'The admin key is not valid.')
    await client.submit('sign-in', { adminKey: ADMIN_KEY })
    t.equal(client.path, '/console/users')
    t.match(client.page, 'value="zoë q"', 'with its filters')
    await client.submit('sign-out')
    t.equal(client.path, '/console/sign-in')
    await client.open('/console?range=month')
    t.equal(client.path, '/console/sign-in')
    await client.submit('sign-in', { adminKey: ADMIN_KEY })
    t.equal(client.path, '/console')
    t.match(client.page, 'href="./console?range=month" aria-current="true"')
  })

  t.test('users are found by filters, whose URL can be shared', async t => {
    const { email } = await signUp(app, { firstName: 'Zoë' })
    const { email: other } = await signUp(app, { firstName: 'Yves' })
    const client = await signedInTo(app)
    await client.open('/console/users?search=zo&role=&disabled=')
    t.ok(client.page.includes(email))
    t.notOk(client.page.includes(other))
    await client.open('/console/users?role=no%20role!')
    t.equal(client.status, 400)
    t.match(client.page, 'class="notice bad"')
    await client.open('/console/users?cursor=forged')
    t.equal(client.status, 400)
    await client.open('/console/users?admin=1')
    t.equal(client.status, 400)
  })

  t.test('a head of the table changes the order, and keeps the filters', async t => {
    const { email: first } = await signUp(app, { firstName: 'Sorted' })
    const { email: second } = await signUp(app, { firstName: 'Sorted' })
    const client = await signedInTo(app)
    const order = () => client.page.indexOf(first) < client.page.indexOf(second)
    await client.open('/console/users?search=sorted')
    t.equal(order(), false, 'the newest first')
    const [head = ''] = /<th[^>]*aria-sort="descending".*?<\/th>/.exec(client.page) ?? []
    await client.open(/href="([^"]*)"/.exec(head)?.[1]?.replaceAll('&amp;', '&') ?? '')
    t.equal(client.status, 200)
    t.equal(order(), true)
    t.match(client.page, 'aria-sort="ascending"')
    t.match(client.page, 'value="sorted"')
    await client.open('/console/users?sort=email')
    t.equal(client.status, 400)
    await client.open('/console/admin-keys?sort=name')
    t.equal(client.status, 400)
  })

  t.test('long lists have pages', async t => {
    for (let user = 0; user < 51; user += 1) await signUp(app, { firstName: 'Paged' })
    const client = await signedInTo(app)
    await client.open('/console/users?search=paged')
    const next = /href="([^"]*)" rel="next"/.exec(client.page)?.[1]?.replaceAll('&amp;', '&') ?? ''
    t.match(next, 'search=paged')
    await client.open(next)
    t.equal(client.page.match(/<tr><td class="pick"/g)?.length, 1)
    t.notMatch(client.page, 'rel="next"')
  })

  t.test('sections have pages, and their rows actions', async t => {
    const owner = await confirmedUser(app)
    const ids: string[] = []
    for (let each = 0; each < 45; each += 1) ids.push((await organizationOf(app, owner)).id)
    const client = await signedInTo(app)
    const next = () => /href="([^"]*)" rel="next"/.exec(client.page)?.[1]?.replaceAll('&amp;', '&') ?? ''
    const removal = (id = '') => new RegExp(`href="([^"]*/${id}/remove[^"]*)"`).exec(client.page)?.[1] ?? ''
    await client.open(`/console/users/${owner.id}/organizations`)
    t.equal(removal(ids[30]), '', 'the first page has twenty')
    await client.open(next())
    const link = removal(ids[30])
    await client.open(link)
    t.equal(client.heading, 'Remove from it')
    await client.submit(link.split('/').at(-1) ?? '')
    // The last owner stays: the API refuses, and the form is shown again.
    t.equal(client.status, 409)
    t.equal(client.heading, 'Remove from it')
    await client.open(`/console/users/${owner.id}/organizations/${ids[44]}/remove`)
    t.equal(client.heading, 'Remove from it', 'a URL without the page of the section')
    await client.open(`/console/users/${owner.id}/organizations/${owner.id}/remove`)
    t.equal(client.status, 404)
    await client.open(`/console/users/${owner.id}/organizations?cursor=forged`)
    t.equal(client.status, 200)
    t.match(client.page, 'class="notice bad"')
  })

  t.test('a user is disabled and enabled after a confirmation, by events that name the key', async t => {
    const { id, email } = await signUp(app)
    const client = await signedInTo(app)
    await client.open(`/console/users/${id}/disable`)
    t.match(client.page, email)
    await client.submit('disable')
    t.equal(client.path, `/console/users/${id}`)
    t.match(client.page, 'The user is disabled.')
    t.equal((await signIn(app, email)).statusCode, 403)
    await client.open(`/console/users/${id}/enable`)
    await client.submit('enable')
    t.equal((await signIn(app, email)).statusCode, 200)
    const { results } = (
      await app.inject({ url: `/admin/events?userId=${id}&type=user.disabled`, headers: asAdmin })
    ).json()
    t.match(results, [{ actor: { type: 'adminKey', id: /^[\da-f]{8}$/ }, ip: '127.0.0.1' }])
  })

  t.test('deleting needs the key again', async t => {
    const { id, email } = await signUp(app)
    const client = await signedInTo(app)
    await client.open(`/console/users/${id}/delete`)
    for (const adminKey of ['', ' ', `${ADMIN_KEY}0`]) {
      await client.submit('delete', { adminKey })
      t.equal(client.status, 403, `"${adminKey}"`)
      t.match(client.page, 'This is not the admin key that you have signed in with.')
    }
    await client.submit('delete', { adminKey: ADMIN_KEY })
    t.equal(client.path, '/console/users')
    t.match(client.page, 'The user is deleted.')
    t.equal((await signIn(app, email)).statusCode, 401)
    await client.open(`/console/users/${id}`)
    t.equal(client.status, 404)
  })

  t.test('the audit log has the sign-in to the console, and filters', async t => {
    const client = await signedInTo(app)
    await client.open('/console/events?type=console.signed-in&after=2026-01-01')
    t.match(client.page, '<code>console.signed-in</code>')
    await client.open('/console/events?after=tomorrow')
    t.equal(client.status, 400)
  })

  t.test('the overview and the status', async t => {
    const client = await signedInTo(app)
    await client.open('/console')
    t.equal(client.heading, 'Overview')
    await client.open('/console/status')
    t.match(client.page, '<bdi>sqlite</bdi>')
  })
})
