/**
 * A 503 is a state of the instance: however many requests meet it, it is logged once a second for each kind (docs/design.md,
 * "Observability").
 */
import { join } from 'node:path'
import t from 'tap'
import { ServiceError } from '#base/errors'
import { API_KEY_PREFIX, newOpaqueKey } from '#core/auth/opaque-key'
import { openSqliteStorage } from '#core/store/sqlite'
import { bearer, build, logCapture, manualClock, temporaryFolder } from '../support/build.ts'
import { pooledWriter } from '../support/writer-pool.ts'

const REQUESTS = 200

const setUp = async (env: Record<string, string>) => {
  const log = logCapture()
  const clock = manualClock()
  const store = await openSqliteStorage(join(temporaryFolder(t), 'test.db'), [], pooledWriter)
  let cause: unknown
  const find = async (): Promise<never> => {
    throw new ServiceError('storeUnavailable', { cause })
  }
  const storage = { ...store, apiKeys: { ...store.apiKeys, find } }
  const app = await build(t, { storage, clock: clock.now, logStream: log.stream, env })
  /** Requests with invented keys. */
  const flood = (count: number, reason?: unknown) => {
    cause = reason
    return Promise.all(
      Array.from({ length: count }, async () => {
        const { text } = newOpaqueKey(API_KEY_PREFIX)
        t.equal((await app.inject({ url: '/account', headers: bearer(text) })).statusCode, 503)
      }),
    )
  }
  const lines = () => log.records().filter(({ status }) => status === 503)
  return { clock, flood, lines }
}

const failure = (code: string): Error => Object.assign(new Error(`failed with ${code}`), { code })

t.test(
  'the first of each kind is logged in full, then one a second with the number of the others',
  async t => {
    const { clock, flood, lines } = await setUp({})
    await flood(REQUESTS, failure('ECONNREFUSED'))
    const first = { level: 50, msg: 'The database is not available, try again', err: { stack: String } }
    t.match(lines(), [
      { ...first, err: { code: 'ECONNREFUSED' }, suppressed: 0, ip: '127.0.0.1', userId: null },
    ])
    t.equal(lines().length, 1)

    await flood(2, failure('57P01'))
    await flood(2, undefined)
    t.match(lines().slice(1), [
      { ...first, err: { code: '57P01' }, suppressed: 0 },
      { level: 40, suppressed: 0 },
    ])
    t.equal(lines().length, 3, 'kinds are counted separately; without a cause it is a warning')

    clock.advance(1_000)
    await flood(3, failure('ECONNREFUSED'))
    t.match(lines().slice(3), [{ ...first, err: { code: 'ECONNREFUSED' }, suppressed: REQUESTS - 1 }])
    t.equal(lines().length, 4)
  },
)

t.test('at debug every one is logged, with its own id', async t => {
  const { flood, lines } = await setUp({ LOG_LEVEL: 'debug' })
  await flood(3, failure('ECONNREFUSED'))
  t.strictSame(
    lines().map(({ level }) => level),
    [50, 20, 20],
  )
  t.equal(new Set(lines().map(({ reqId }) => reqId)).size, 3)
})
