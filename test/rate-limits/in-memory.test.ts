/** The memory of in-memory counters (rate limits; docs/design.md, "Account life cycle"). */
import t from 'tap'
import { fromLimiter, memoryLimiter } from '#storage/rate-limits'

t.test('the least recently used key is evicted when there are too many', async t => {
  const limit = fromLimiter(memoryLimiter({ name: 'limit', points: 10, seconds: 600 }, 3))
  for (const key of ['a', 'b', 'c', 'a', 'd']) await limit.consume(key)
  t.strictSame(await Promise.all(['a', 'b', 'c', 'd'].map(limit.used)), [2, 0, 1, 1])
  await limit.set('e', 7, 600)
  t.strictSame(await Promise.all(['a', 'c', 'd', 'e'].map(limit.used)), [2, 0, 1, 7])
  await limit.delete('d')
  await limit.refund('f')
  t.strictSame(await Promise.all(['a', 'd', 'e'].map(limit.used)), [2, 0, 7], 'what was deleted leaves room')
})

t.test('many keys take no more memory than the limit allows', async t => {
  const limiter = memoryLimiter({ name: 'limit', points: 10, seconds: 600 }, 100)
  const limit = fromLimiter(limiter)
  for (let index = 0; index < 10_000; index += 1) await limit.consume(`key ${index}`)
  const kept = await Promise.all(Array.from({ length: 10_000 }, (_, index) => limit.used(`key ${index}`)))
  t.equal(kept.filter(used => used > 0).length, 100)
})
