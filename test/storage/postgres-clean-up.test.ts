/** Clean-up on PostgreSQL: shared counts, and rows that are being written. */
import pg from 'pg'
import t from 'tap'
import type { ExpiredSessions } from '#core/store/store'
import { add, NOW } from './contract/fixtures.ts'
import { ask, open, urlOf } from './postgres-support.ts'

const HOUR = 3_600_000

t.test('postgres: expired counts of limits are removed in slices', async t => {
  const storage = await open(t)
  const limit = storage.openRateLimit({ name: 'limit', points: 5, seconds: 60 })
  const keys = Array.from({ length: 12 }, (_, index) => `key ${index}`)
  for (const [index, key] of keys.entries()) await limit.set(key, 1, index % 3 === 0 ? 7_200 : 60)
  const left = async () => (await ask(t, 'SELECT key FROM rate_limits')).length
  const inAnHour = Date.now() + HOUR
  t.equal(await storage.cleanUp.removeRateLimits(Date.now(), '', 100), '')
  t.equal(await left(), keys.length, 'none has ended')
  const after = await storage.cleanUp.removeRateLimits(inAnHour, '', 5)
  t.not(after, '')
  t.equal(await left(), keys.length - 5)
  t.equal(await storage.cleanUp.removeRateLimits(inAnHour, after, 5), '')
  t.equal(await left(), 4, 'those that go on')
  t.equal(await limit.used('key 0'), 1)
})

t.test(
  'postgres: clean-up does not wait for a session that is being written, and uses its new value',
  async t => {
    const storage = await open(t)
    const { session } = await add(storage)
    const idle: ExpiredSessions = { endedBy: NOW, idleSince: NOW + HOUR }
    const client = new pg.Client({ connectionString: await urlOf(t) })
    await client.connect()
    try {
      await client.query('BEGIN')
      await client.query(`UPDATE sessions SET last_request_at = ${idle.idleSince + 1}`)
      t.equal(await storage.cleanUp.removeSessions(idle, '', 100), '')
      await client.query('COMMIT')
    } finally {
      await client.end()
    }
    t.equal(await storage.cleanUp.removeSessions(idle, '', 100), '')
    t.ok(await storage.sessions.find(session.id))
    await storage.cleanUp.removeSessions({ ...idle, idleSince: idle.idleSince + 1 }, '', 100)
    t.equal(await storage.sessions.find(session.id), undefined)
  },
)
