/** Durable consumers whose process is too slow for its lease (docs/design.md, "Features"). */
import t from 'tap'
import type { ConsumerStore } from '#feature/consumers/stored-consumers'
import type { LoggedEvent } from '#feature/declaration'
import { build, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { until } from '../support/until.ts'
import { watching } from './watching.ts'

const PACE = { startWithin: 1, maxWait: 20 }
const WAIT = 30_000
const NAME = 'watching.watch'

await onEnginesOfRun(t, async (t, { newDatabase }) => {
  t.test('an instance takes over from one whose handler is slow', async t => {
    const env = { DATABASE_URL: await newDatabase(t) }
    const slow: LoggedEvent[] = []
    const quick: LoggedEvent[] = []
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const first = await build(t, {
      env,
      features: [watching(event => (slow.push(event) === 1 ? released : undefined))],
      jobPace: PACE,
    })
    const { id } = await signUp(first)
    await signUp(first)
    await until(
      () => slow.length,
      length => length === 1,
      WAIT,
    )
    const heldAt = performance.now()
    // A clock that is ahead: the lease has ended for it, although the first instance renews it.
    let ahead = 30_000
    const second = await build(t, {
      env,
      features: [watching(event => void quick.push(event))],
      clock: () => Date.now() + ahead,
      jobPace: PACE,
    })
    await until(
      () => quick.length,
      length => length === 2,
      WAIT,
    )
    ahead = 0
    t.equal(quick[0]?.userId, id, 'it begins with the event that is being handled')
    const store = second.services.storage.features.consumers as ConsumerStore
    const stored = await until(
      async () => store.findConsumer(NAME),
      consumer => consumer?.eventId === quick[1]?.id,
      WAIT,
    )
    // A cursor is stored every half second, which is when a lease that was lost is noticed. A lease lasts fifteen.
    await until(
      () => performance.now() - heldAt,
      milliseconds => milliseconds > 600,
      WAIT,
    )
    release()
    await signUp(second)
    await until(
      () => quick.length,
      length => length === 3,
      WAIT,
    )
    const after = await until(
      async () => store.findConsumer(NAME),
      consumer => consumer?.eventId === quick[2]?.id,
      WAIT,
    )
    t.ok(Number(after?.position) > Number(stored?.position))
    t.equal(after?.failures, 0)
    t.equal(slow.length, 1, 'the slow one handles nothing more')

    await second.close()
    await signUp(first)
    await until(
      () => slow.length,
      length => length === 2,
      WAIT,
    )
    const { events } = await first.services.storage.events.follow({ filter: {}, after: null, limit: 10 })
    t.same(
      slow.map(({ id }) => id),
      [events[0]?.id, events[3]?.id],
      'until it has the lease again',
    )
    t.equal(quick.length, 3)
  })
})
