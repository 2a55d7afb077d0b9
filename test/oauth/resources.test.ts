/** `/admin/resources`: APIs beside the service that accept tokens which it issues (RFC 8707). */
import t from 'tap'
import { asAdmin } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt } from '../support/error-response.ts'
import {
  adminStatus,
  basic,
  buildOAuth,
  claimsOf,
  ownToken,
  postForm,
  registerMachine,
  requestOwnToken,
} from '../support/oauth.ts'

const API = 'https://api.example.test'
const REPORTS = { identifier: API, name: 'Reports', scopes: { 'reports:read': 'Read your reports' } }

await onEnginesOfRun(t, async (t, engine) => {
  const service = async (t: Parameters<typeof buildOAuth>[1]) => {
    const app = await buildOAuth(engine, t)
    const post = (payload: object) =>
      app.inject({ method: 'POST', url: '/admin/resources', headers: asAdmin, payload })
    const put = (id: string, payload: object) =>
      app.inject({ method: 'PUT', url: `/admin/resources/${id}`, headers: asAdmin, payload })
    return { app, post, put }
  }

  t.test('a resource is added, changed and deleted', async t => {
    const { app, post, put } = await service(t)
    const created = await post(REPORTS)
    t.equal(created.statusCode, 201, created.body)
    const resource = created.json()
    t.match(resource, { ...REPORTS, clientIds: [] })
    t.match((await put(resource.id, { name: 'Papers' })).json(), { ...REPORTS, name: 'Papers' })
    const list = await app.inject({ url: '/admin/resources', headers: asAdmin })
    t.match(list.json().results, [{ id: resource.id, name: 'Papers' }])
    const url = `/admin/resources/${resource.id}`
    t.equal((await app.inject({ method: 'DELETE', url, headers: asAdmin })).statusCode, 204)
    errorsAt(t, await app.inject({ url, headers: asAdmin }), 404, ['global'])
  })

  t.test('input that is not valid is a 400 with the field', async t => {
    const { post } = await service(t)
    await post(REPORTS)
    const other = { ...REPORTS, identifier: `${API}/2` }
    const wrong: [number, string[], object][] = [
      [409, ['identifier'], REPORTS],
      [400, ['identifier'], { ...other, identifier: 'api' }],
      [400, ['identifier'], { ...other, identifier: `${API}/#x` }],
      [400, ['identifier'], { ...other, identifier: 'gatehouse' }],
      [400, ['name'], { ...other, name: '' }],
      [400, ['clientIds.0'], { ...other, clientIds: ['x'] }],
      [400, ['identifier', 'name'], {}],
    ]
    for (const [status, fields, payload] of wrong)
      errorsAt(t, await post(payload), status, fields, JSON.stringify(payload))
    t.equal((await post({ ...other, scopes: { 'a b': 'x' } })).statusCode, 400)
  })

  t.test('P27: a token is for the resource that it names, and for nothing else', async t => {
    const { app, post } = await service(t)
    await post(REPORTS)
    const client = await registerMachine(app, { adminScopes: ['users:read'], scopes: ['reports:read'] })
    const token = await ownToken(app, client, { resource: API })
    t.match(claimsOf(token), { aud: API, scope: 'reports:read', client_id: client.id })
    t.equal(await adminStatus(app, token), 401, 'the audience is another one')
    t.match(claimsOf(await ownToken(app, client)), { aud: 'gatehouse', scope: 'users:read' })
    const unknown = await requestOwnToken(app, client, { resource: 'https://other.example.test' })
    t.equal(unknown.statusCode, 400)
    t.match(unknown.json(), { error: 'invalid_target', errors: { resource: [String] } })
    const foreign = await requestOwnToken(app, client, { resource: API, scope: 'users:read' })
    t.match(foreign.json(), { error: 'invalid_scope' }, 'an admin scope is no scope of the resource')
  })

  t.test('P42: the client of a resource learns of its tokens, every other client of none', async t => {
    const { app, post, put } = await service(t)
    const { id } = (await post(REPORTS)).json()
    const client = await registerMachine(app, { scopes: ['reports:read'] })
    const api = await registerMachine(app)
    const token = await ownToken(app, client, { resource: API })
    const introspect = async (asking: typeof api, presented = token) =>
      (await postForm(app, 'introspect', { token: presented }, basic(asking))).json()
    t.strictSame(await introspect(api), { active: false })
    await put(id, { clientIds: [api.id] })
    const expected = { active: true, client_id: client.id, sub: client.id, aud: API, scope: 'reports:read' }
    for (const asking of [api, client]) t.match(await introspect(asking), expected)
    for (const invented of ['x', `${token}x`, `${token.slice(0, -8)}AAAAAAAA`])
      t.strictSame(await introspect(api, invented), { active: false })
  })
})
