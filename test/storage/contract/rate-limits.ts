/** Contract: counts by key and window. Counts that instances share: test/rate-limits/limits.test.ts. */
import { setTimeout as sleep } from 'node:timers/promises'
import { forEach, type Part } from './fixtures.ts'

const KEY = 'a key'

/** Seconds of a window whose end no test sees. */
const LONG = 600

export const rateLimits: Part = async (t, open) => {
  t.test('a limit admits its number of requests, concurrent ones too', async t => {
    const limit = (await open(t)).openRateLimit({ name: 'limit', points: 3, seconds: LONG })
    const first = await limit.consume(KEY)
    t.match(first, { allowed: true, remaining: 2 })
    t.ok(first.seconds > LONG - 60 && first.seconds <= LONG)
    const others = await forEach(Array.from({ length: 20 }), () => limit.consume(KEY))
    t.equal(others.filter(({ allowed }) => allowed).length, 2)
    const rejected = await limit.consume(KEY)
    t.match(rejected, { allowed: false, remaining: 0 })
    t.ok(rejected.seconds > LONG - 60 && rejected.seconds <= LONG)
    t.match(await limit.consume('another key'), { allowed: true, remaining: 2 })
  })

  t.test('limits of different names count separately', async t => {
    const storage = await open(t)
    const [one, other] = ['one', 'other'].map(name =>
      storage.openRateLimit({ name, points: 1, seconds: LONG }),
    )
    t.match(await one?.consume(KEY), { allowed: true })
    t.match(await other?.consume(KEY), { allowed: true })
    t.match(await one?.consume(KEY), { allowed: false })
  })

  t.test('one count can be returned, and all can be deleted', async t => {
    const limit = (await open(t)).openRateLimit({ name: 'limit', points: 1, seconds: LONG })
    t.equal(await limit.used(KEY), 0)
    await limit.consume(KEY)
    t.equal(await limit.used(KEY), 1)
    await limit.refund(KEY)
    t.match(await limit.consume(KEY), { allowed: true })
    t.match(await limit.consume(KEY), { allowed: false })
    await limit.delete(KEY)
    t.equal(await limit.used(KEY), 0)
    t.match(await limit.consume(KEY), { allowed: true })
  })

  t.test('a window can be restarted with an initial count', async t => {
    const limit = (await open(t)).openRateLimit({ name: 'limit', points: 5, seconds: LONG })
    for (const used of [9, 4]) {
      await limit.set(KEY, used, 2 * LONG)
      t.equal(await limit.used(KEY), used)
    }
    const last = await limit.consume(KEY)
    t.match(last, { allowed: true, remaining: 0 })
    t.ok(last.seconds > LONG, 'the time that was set')
    t.match(await limit.consume(KEY), { allowed: false })
  })

  for (const final of [true, false]) {
    t.test(`a window ends at the reported time, final: ${final}`, async t => {
      const limit = (await open(t)).openRateLimit({ name: 'limit', points: 1, seconds: LONG, final })
      t.match(await limit.consume(KEY, 2), { allowed: true, seconds: 2 })
      const { allowed, seconds } = await limit.consume(KEY, LONG)
      t.strictSame(
        { allowed, soon: seconds <= 2 },
        { allowed: false, soon: true },
        'the first one says how long',
      )
      await sleep(seconds * 1_000 + 1)
      t.equal(await limit.used(KEY), 0)
      t.match(await limit.consume(KEY), { allowed: true })
    })
  }
}
