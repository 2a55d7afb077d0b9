/** The Fastify plugin and the Express middleware of the verifier. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Fastify from 'fastify'
import t from 'tap'
import {
  type Needs,
  requireUser,
  type Verifier,
  VerifierError,
  verifierPlugin,
} from '../../verifier/exports.ts'

const IDENTITY = { active: true, sub: 'u', scope: 'notes:read notes:write', roles: ['editor'] } as const

/** Knows one token. */
const verifier = {
  async verify(token: string) {
    if (token === 'late') throw new VerifierError('Gatehouse responded too late')
    return token === 'good' ? IDENTITY : null
  },
  close: () => undefined,
} as unknown as Verifier

const CASES: readonly [authorization: string | undefined, status: number][] = [
  [undefined, 401],
  ['Basic good', 401],
  ['Bearer bad', 401],
  ['Bearer late', 503],
  ['Bearer good', 200],
  ['bearer  good', 200],
]

const NEEDS: readonly [Needs, number][] = [
  [{ role: 'editor' }, 200],
  [{ role: 'admin' }, 403],
  [{ scope: 'notes:read' }, 200],
  [{ scope: 'notes' }, 403],
  [{ scope: 'notes:read', role: 'admin' }, 403],
]

t.test('Fastify: every route needs a user, unless it is public', async t => {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(verifierPlugin as never, { verifier })
  app.get('/', async request => request.user)
  app.get('/open', { config: { access: 'public' } as object }, async request => request.user)
  for (const [index, [access]] of NEEDS.entries())
    app.get(`/${index}`, { config: { access } as object }, async () => 'ok')
  for (const [authorization, status] of CASES) {
    const headers = authorization === undefined ? {} : { authorization }
    const response = await app.inject({ url: '/', headers })
    t.equal(response.statusCode, status, String(authorization))
    if (status === 200) t.same(response.json(), IDENTITY)
    else t.match(response.json(), { errors: { global: [/./] } })
    if (status === 401) t.match(response.headers['www-authenticate'], /^Bearer/)
    if (status === 503) t.equal(response.headers['retry-after'], '1')
  }
  t.equal((await app.inject('/open')).statusCode, 200)
  for (const [index, [access, status]] of NEEDS.entries()) {
    const response = await app.inject({ url: `/${index}`, headers: { authorization: 'Bearer good' } })
    t.equal(response.statusCode, status, JSON.stringify(access))
  }
})

t.test('Express: the middleware sets the user or responds', async t => {
  let needs: Needs | undefined
  const server = createServer((request, response) =>
    requireUser(verifier, needs)(request, response, () =>
      response.end(JSON.stringify((request as { user?: unknown }).user)),
    ),
  ).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  for (const [authorization, status] of CASES) {
    const response = await fetch(url, authorization === undefined ? {} : { headers: { authorization } })
    t.equal(response.status, status, String(authorization))
    if (status === 200) t.same(await response.json(), IDENTITY)
    else t.match(await response.json(), { errors: { global: [/./] } })
  }
  for (const [each, status] of NEEDS) {
    needs = each
    const response = await fetch(url, { headers: { authorization: 'Bearer good' } })
    t.equal(response.status, status, JSON.stringify(each))
    await response.text()
  }
})
