/** A table with `owner: null`: its rows belong to no user (docs/design.md, "Features"). */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { firstIdAt, newId, type ServicesOf } from '#feature/declaration'
import { asAdmin, manualClock, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { until } from '../support/until.ts'
import { announcements } from './announcements.ts'

const servicesOf = (app: FastifyInstance) =>
  app.services as typeof app.services & ServicesOf<[typeof announcements]>

await onEnginesOfRun(t, async (t, { build }) => {
  t.test('rows that belong to no user stay when users are deleted', async t => {
    const app = await build(t, { features: [announcements] })
    const store = servicesOf(app).announcements
    const { id } = await signUp(app)
    await store.announce('a', 'open', Date.now())
    const removed = await app.inject({ method: 'DELETE', url: `/admin/users/${id}`, headers: asAdmin })
    t.equal(removed.statusCode, 204)
    t.strictSame(await store.listAnnouncements(), ['open'])
  })

  t.test('rows that belong to no user are cleaned up', async t => {
    const clock = manualClock()
    const cleanUpPace = { startWithin: 1, interval: 20, pause: 1 }
    const app = await build(t, { features: [announcements], clock: clock.now, cleanUpPace })
    const store = servicesOf(app).announcements
    await store.announce('a', 'old', clock.now())
    await store.announce('b', 'new', clock.now() + 1)
    clock.advance(1_001)
    const texts = await until(
      async () => store.listAnnouncements(),
      ({ length }) => length < 2,
      10_000,
    )
    t.strictSame(texts, ['new'])
  })

  t.test('rows are cleaned up by the time that their ids begin with', async t => {
    const cleanUp = { column: 'id', after: 1_000, firstAt: firstIdAt }
    const tables = { announcements: { owner: null, key: 'id', cleanUp } }
    const clock = manualClock()
    const cleanUpPace = { startWithin: 1, interval: 20, pause: 1 }
    const app = await build(t, { features: [{ ...announcements, tables }], clock: clock.now, cleanUpPace })
    const store = servicesOf(app).announcements
    await store.announce(newId(clock.now()), 'old', 0)
    await store.announce(newId(clock.now() + 1), 'new', 0)
    clock.advance(1_001)
    const texts = await until(
      async () => store.listAnnouncements(),
      ({ length }) => length < 2,
      10_000,
    )
    t.strictSame(texts, ['new'])
  })
})
