/** Clients and resources in the console. */
import t from 'tap'
import { ADMIN_KEY, build } from '../support/build.ts'
import { signedInTo } from '../support/console.ts'
import { OAUTH_ENV, ownToken, registerClient, registerMachine, requestOwnToken } from '../support/oauth.ts'

const ENV = { ...OAUTH_ENV, CONSOLE: 'on' }

t.test('clients are created with a secret that is shown once, changed, blocked and deleted', async t => {
  const app = await build(t, { env: ENV })
  const console = await signedInTo(app)
  await console.open('/console/clients')
  t.match(console.page, 'There is no client.')
  await console.open('/console/clients/create')
  await console.submit('create', {
    ...{ kind: 'web', name: 'Planner', adminKey: ADMIN_KEY },
    redirectUris: 'https://app.example.test/callback\r\n\r\n https://app.example.test/other ',
    ...{ 'scopes:openid': '', 'scopes:account:read': '', resourceScopes: 'reports:read' },
  })
  const secret = /gate_cls_[0-9A-Za-z]{49}/.exec(console.page)?.[0] ?? ''
  t.not(secret, '')
  const { results } = await app.services.clients.list(10)
  const [{ id } = { id: '' }] = results
  t.match(results[0], {
    redirectUris: ['https://app.example.test/callback', 'https://app.example.test/other'],
    scopes: ['openid', 'account:read', 'reports:read'],
    authMethod: 'client_secret_basic',
  })
  await console.open('/console/clients')
  t.match(console.page, 'Planner')
  t.notMatch(console.page, secret)
  await console.open(`/console/clients/${id}`)
  t.match(console.page, 'Know who you are')
  await console.open(`/console/clients/${id}/edit`)
  t.match(console.page, /name="scopes:openid"[^>]* checked/)
  t.notMatch(console.page, /name="scopes:profile"[^>]* checked/)
  t.match(console.page, 'reports:read</textarea>')
  await console.submit('edit', {
    ...{ name: 'Fleet', redirectUris: 'https://app.example.test/callback', 'scopes:email': '' },
    adminKey: ADMIN_KEY,
  })
  t.match(await app.services.clients.get(id), {
    name: 'Fleet',
    redirectUris: ['https://app.example.test/callback'],
  })
  await console.open(`/console/clients/${id}/rotate-secret`)
  await console.submit('rotate-secret', { adminKey: ADMIN_KEY })
  t.match(console.page, /gate_cls_/)
  for (const action of ['trust', 'block']) {
    await console.open(`/console/clients/${id}/${action}`)
    await console.submit(action, action === 'trust' ? { adminKey: ADMIN_KEY } : {})
  }
  t.match(await app.services.clients.get(id), { firstParty: true, blocked: true })
  await console.open(`/console/clients/${id}`)
  t.match(console.page, 'Blocked')
  t.match(console.page, 'Ours')
  await console.open(`/console/clients/${id}/delete`)
  await console.submit('delete', { adminKey: ADMIN_KEY })
  t.match(console.page, 'There is no client.')
})

t.test('a service gets scopes of its own, and what is wrong is said at its field', async t => {
  const app = await build(t, { env: ENV })
  const console = await signedInTo(app)
  await console.open('/console/clients/create')
  const service = { kind: 'service', name: 'Report', 'adminScopes:users:read': '', adminKey: ADMIN_KEY }
  await console.submit('create', { ...service, redirectUris: 'https://app.example.test/' })
  t.match(console.page, 'A service has no address where users return to.')
  await console.open('/console/clients/create')
  await console.submit('create', service)
  const [id = '', secret = ''] = [...console.page.matchAll(/<code[^>]*>([^<]+)<\/code>/g)].map(
    ([, text]) => text ?? '',
  )
  t.equal((await requestOwnToken(app, { id, secret })).statusCode, 200, console.page)
})

t.test('resources are added, changed and deleted', async t => {
  const app = await build(t, { env: ENV })
  const console = await signedInTo(app)
  await console.open('/console/resources/create')
  await console.submit('create', {
    ...{ identifier: 'https://api.example.test', name: 'Reports' },
    scopes: 'reports:read Read your reports\nreports:write Change them',
  })
  const [{ id, scopes } = { id: '', scopes: {} }] = await app.services.resources.list()
  t.strictSame(scopes, { 'reports:read': 'Read your reports', 'reports:write': 'Change them' })
  await console.open(`/console/resources/${id}`)
  t.match(console.page, 'Change them')
  await console.open(`/console/resources/${id}/edit`)
  t.match(console.page, 'reports:write Change them</textarea>')
  await console.open(`/console/resources/${id}/delete`)
  await console.submit('delete', {})
  t.match(console.page, 'There is no resource.')
})

t.test('the console calls a client by its name', async t => {
  const app = await build(t, { env: ENV })
  const client = await registerMachine(app, {
    ...{ name: 'Night shift', adminScopes: ['events:read', 'clients:read', 'clients:write', 'users:write'] },
  })
  const token = await ownToken(app, client)
  await app.inject({
    method: 'POST',
    url: '/admin/clients',
    headers: { 'x-admin-key': token },
    payload: {
      ...{ name: 'Other', authMethod: 'none', redirectUris: ['https://app.example.test/'] },
    },
  })
  const own = await signedInTo(app, token)
  t.match(own.page, 'Night shift')
  t.notMatch(own.page, 'ADMIN_KEY')
  const console = await signedInTo(app)
  await console.open('/console/events')
  t.match(console.page, /Key <strong><bdi>Night shift<\/bdi><\/strong> registered a client/)
})

t.test('without OAuth the console has no pages of clients', async t => {
  const app = await build(t, { env: { CONSOLE: 'on' } })
  const console = await signedInTo(app)
  t.notMatch(console.page, 'console/clients')
  await console.open('/console/clients')
  t.equal(console.status, 404)
})

t.test('metadata documents and registrations are marked', async t => {
  const app = await build(t, { env: { ...ENV, OAUTH_REGISTRATION: 'loopback' } })
  const payload = { redirect_uris: ['http://127.0.0.1/cb'], client_name: '<b>Terminal' }
  const { client_id: id } = (await app.inject({ method: 'POST', url: '/oauth/register', payload })).json()
  await registerClient(app, { redirectUris: ['https://app.example.test/'] })
  const console = await signedInTo(app)
  await console.open('/console/clients')
  t.equal(console.page.split('Unverified').length, 2)
  t.match(console.page, '&lt;b&gt;Terminal')
  await console.open(`/console/clients/${id}`)
  t.match(console.page, 'registered itself')
})
