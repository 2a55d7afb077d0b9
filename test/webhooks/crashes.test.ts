/** Followers of events whose process is killed (docs/design.md, "Features", "Webhooks"). */
import t from 'tap'
import { onEnginesOfRun } from '../support/engines.ts'
import { createRandom } from '../support/random.ts'
import { killFollowers } from '../system/crash/follower-kills.ts'

await onEnginesOfRun(t, async (t, { newDatabase }) => {
  t.test('W6: kill -9 after a 2xx and under load: every event at least once, in order', async t => {
    const { failures, events, sentAgain } = await killFollowers(t, await newDatabase(t), createRandom(1), 3)
    t.same(failures, [])
    t.ok(events > 10, `${events} events`)
    t.ok(sentAgain > 0, 'what was accepted before the cursor was stored has the same id again')
  })
})
