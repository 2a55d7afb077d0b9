import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { ServiceError } from '#base/errors'
import { openSqliteStorage } from '#core/store/sqlite'
import { bearer, build, signUp, temporaryFolder, updateUser } from '../support/build.ts'
import { routesTree } from '../support/project-copy.ts'
import { pooledWriter } from '../support/writer-pool.ts'

/** Loaded before every other plugin; records the steps of each request from its first hook on. */
const PROBE = `
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'

const watch = (request, name, seen) => {
  let current = request[name]
  Object.defineProperty(request, name, {
    get: () => current,
    set(value) {
      current = value
      seen.push([name, JSON.stringify(request.validatedData)])
    },
  })
}

const probe = async (app: FastifyInstance): Promise<void> => {
  app.addHook('onRequest', (request, reply, done) => {
    const seen = [['error facilities', typeof app.httpErrors.forbidden + ' ' + typeof reply.notFound]]
    globalThis.seenByProbe = seen
    for (const name of ['validatedData', 'accessToken', 'principal']) watch(request, name, seen)
    done()
  })
}

export default fp(probe, { name: 'a-probe' })
`

const GATED = `
export default async function late(app): Promise<void> {
  app.get('', (request, reply) => {
    globalThis.seenByProbe.push(['handler', JSON.stringify(request.validatedData)])
    reply.send({})
  })
}
`

t.test('every request passes the five steps in order, then gate, then handler (§1)', async t => {
  const tree = routesTree(t, { 'plugins/a-probe.ts': PROBE, 'routes/private/late/routes.ts': GATED })
  const app = await tree.build(t)
  const { token } = await signUp(app)
  const seen = () => (globalThis as unknown as { seenByProbe: [string, string][] }).seenByProbe

  t.equal((await app.inject({ url: '/late', headers: bearer(token) })).statusCode, 200)
  t.same(seen(), [
    ['error facilities', 'function function'],
    ['validatedData', '{}'],
    ['accessToken', '{}'],
    ['principal', '{}'],
    ['handler', '{"query":{},"params":{}}'],
  ])

  t.equal((await app.inject('/late')).statusCode, 401)
  t.same(
    seen().map(([step]) => step),
    ['error facilities', 'validatedData'],
    'without a token nothing is looked up, and the gate keeps the handler from running',
  )
})

t.test('a store failure during authentication is caught and formatted (§1.3, §5.1.3)', async t => {
  const app = await build(t)
  const { token } = await signUp(app)
  await app.services.storage.close()
  const rejected = await app.inject({ url: '/account', headers: bearer(token) })
  t.equal(rejected.statusCode, 503, 'not 401: the token may be valid')
  t.equal(rejected.headers['retry-after'], '1')
  t.same(rejected.json(), { errors: { global: ['The database is not available, try again'] } })
  t.equal(
    (await app.inject({ url: '/health', headers: bearer(token) })).statusCode,
    200,
    'public routes go on',
  )
  t.equal((await app.inject('/ready')).statusCode, 503)
})

t.test('a store that responds asynchronously identifies the same user (§5.1.2)', async t => {
  const store = await openSqliteStorage(join(temporaryFolder(t), 'later.db'), [], pooledWriter)
  let failing = false
  const find = async (id: string) => {
    await setImmediate()
    if (failing) throw new ServiceError('storeUnavailable')
    return store.sessions.find(id)
  }
  const app = await build(t, { storage: { ...store, sessions: { ...store.sessions, find } } })
  const { id, token } = await signUp(app)
  const first = await app.inject({ url: '/account', headers: bearer(token) })
  t.equal(first.json().id, id)
  t.equal((await app.inject({ url: '/account', headers: bearer('not.a.token') })).statusCode, 401)

  await updateUser(app, id, { firstName: 'Later' })
  failing = true
  t.equal((await app.inject({ url: '/account', headers: bearer(token) })).statusCode, 503)
  t.equal((await app.inject({ url: '/health', headers: bearer(token) })).statusCode, 200)
  failing = false
  const again = await app.inject({ url: '/account', headers: bearer(token) })
  t.equal(again.json().firstName, 'Later')
})
