/** Deliveries of a process that is killed (docs/design.md, "Webhooks"). */
import t from 'tap'
import { killDeliveries } from '../crash/webhook-kills.ts'
import { onEveryEngine } from '../support/engines.ts'
import { createRandom } from '../support/random.ts'

await onEveryEngine(t, async (t, { newDatabase }) => {
  t.test('W6 kill -9 under load: every event arrives at least once, in order', async t => {
    const { failures, events, repeated } = await killDeliveries(t, await newDatabase(t), createRandom(1), 4)
    t.same(failures, [])
    t.ok(events > 10, `${events} events, ${repeated} arrived again`)
  })
})
