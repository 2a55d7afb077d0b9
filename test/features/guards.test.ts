/** Guards, caches and removals of users: parts of a feature (docs/extending.md). */
import Fastify, { type FastifyInstance } from 'fastify'
import t from 'tap'
import { FeatureCaches } from '#core/auth/feature-caches'
import gatehouse from '../../src/gatehouse.ts'
import { asAdmin, bearer, newFile, PASSWORD, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsOf } from '../support/error-response.ts'
import { desks, loads, told } from './desks.ts'

type DesksStore = { hold(id: string, userId: string): Promise<void> }

const addRoute = (app: FastifyInstance): void => {
  app.register(async scoped => {
    scoped.addHook('onRequest', scoped.requestAuthentication.authenticateUser)
    scoped.addHook('onRoute', route => {
      route.config = { ...route.config, gate: 'user' }
    })
    scoped.get('/desk', { config: { desk: true } }, async request => ({ desk: request.desk }))
    scoped.get('/no-desk', async request => ({ desk: request.desk }))
  })
}

let ids = 0
const freshId = (): string => {
  ids += 1
  return `desk-${ids}`
}

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const env = { DATABASE_URL: await newDatabase(t) }
  const app = await build(t, { features: [desks], extend: addRoute, env })
  const { hold } = (app.services as unknown as { desks: DesksStore }).desks
  const get = (token: string, url = '/desk') => app.inject({ url, headers: bearer(token) })

  t.test(
    'a guard refuses, admits, and sets the property of the request; what it caches is evicted',
    async t => {
      const { id, token } = await signUp(app)
      errorsOf(t, await get(token), 403)
      const desk = freshId()
      await hold(desk, id)
      t.strictSame((await get(token)).json(), { desk })
      loads.length = 0
      t.equal((await get(token)).statusCode, 200)
      t.strictSame(loads, [], 'warm')
      t.equal(
        (await get(token, '/no-desk')).statusCode,
        500,
        'a route without the guard has no such property',
      )
      for (let each = 0; each < 12; each += 1) await get((await signUp(app)).token)
      loads.length = 0
      await get(token)
      t.strictSame(loads, [id], 'the least used are forgotten')
    },
  )

  t.test(
    'a removal that the feature refuses changes nothing; that of others tells it afterwards',
    async t => {
      const { id, token } = await signUp(app)
      const desk = freshId()
      await hold(desk, id)
      const payload = { password: PASSWORD }
      const own = await app.inject({ method: 'DELETE', url: '/account', headers: bearer(token), payload })
      t.strictSame(errorsOf(t, own, 409), { global: ['Give your desk back first'] })
      t.equal((await get(token)).statusCode, 200)
      const removed = await app.inject({ method: 'DELETE', url: `/admin/users/${id}`, headers: asAdmin })
      t.equal(removed.statusCode, 204)
      t.strictSame(told.splice(0), [desk])
      const free = await signUp(app)
      const headers = bearer(free.token)
      t.equal((await app.inject({ method: 'DELETE', url: '/account', headers, payload })).statusCode, 204)
      t.strictSame(told, [])
    },
  )
})

t.test('a host guards its own routes', async t => {
  const host = Fastify()
  t.teardown(() => host.close())
  const config = { DATABASE_URL: await newFile(t), NODE_ENV: 'test', MAIL_URL: 'off', RATE_LIMIT: 'off' }
  await host.register(gatehouse, { prefix: '/auth', config, features: [desks] })
  host.get('/own', { onRequest: host.gatehouse.requireGuards({ desk: true }) }, async ({ desk }) => ({
    desk,
  }))
  t.throws(() => host.gatehouse.requireGuards({ chair: true } as object), /chair is none of the guards/)
  t.throws(() => host.gatehouse.requireGuards({ desk: 5 } as object), /declares a desk that is not true/)
  const { hold } = (host.gatehouse.services as unknown as { desks: DesksStore }).desks
  const payload = { email: 'host@example.com', password: PASSWORD }
  const signedUp = await host.inject({ method: 'POST', url: '/auth/account/sign-up', payload })
  const { accessToken, user } = signedUp.json()
  const get = () => host.inject({ url: '/own', headers: bearer(accessToken) })
  t.equal((await host.inject('/own')).statusCode, 401)
  t.equal((await get()).statusCode, 403)
  const desk = freshId()
  await hold(desk, user.id)
  t.strictSame((await get()).json(), { desk })
})

t.test('a value that was read before it was invalidated is not cached', async t => {
  const caches = new FeatureCaches({ deliverInvalidations: () => undefined })
  caches.setFeedConnected(true)
  const answers: ((value: string) => void)[] = []
  const cache = caches.open({ load: () => new Promise<string>(resolve => answers.push(resolve)), max: 10 })
  const first = cache.get('a')
  caches.invalidate('a')
  answers.shift()?.('old')
  await new Promise(setImmediate)
  t.equal(answers.length, 1, 'it is read again')
  answers.shift()?.('new')
  t.equal(await first, 'new')
  t.equal(cache.get('a'), 'new', 'cached')
  caches.setFeedLate(true)
  const late = cache.get('a')
  answers.shift()?.('newest')
  t.equal(await late, 'newest', 'bypassed while notifications are late')
  caches.setFeedLate(false)
  t.equal(cache.get('a'), 'new', 'kept, because nothing was missed')
  caches.setFeedConnected(false)
  const lost = cache.get('a')
  answers.shift()?.('after')
  t.equal(await lost, 'after')
  t.ok(cache.get('a') instanceof Promise, 'nothing is cached without a feed')
})
