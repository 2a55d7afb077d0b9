/**
 * An instance that is frozen inside a transaction, as by a paused machine: the server ends the transaction within seconds, so that the
 * locks of its user do not keep the others from revoking access (docs/design.md, "Storage").
 */
import t from 'tap'
import { accountStatus, asAdmin, bearer, build, signUp, updateUser } from '../support/build.ts'
import { newDatabase } from '../support/postgres.ts'
import { startServer } from '../support/process.ts'
import { createProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'

/** Milliseconds: a generous bound for polling. */
const BOUND = 60_000

t.test('a user is disabled elsewhere while an instance is frozen with a lock on that user', async t => {
  const direct = await newDatabase(t)
  /** Called with the COMMIT of a change, which then does not reach the server. That of a new connection's set-up does. */
  let onCommit: (() => void) | null = null
  const proxy = await createProxy(t, direct, chunk => {
    if (onCommit === null || !/NOTIFY .*COMMIT\0/s.test(chunk.toString('latin1'))) return true
    onCommit()
    onCommit = null
    return false
  })
  const frozen = await startServer(t, { env: { DATABASE_URL: proxy.url } })
  const app = await build(t, { env: { DATABASE_URL: direct } })
  const [user, other] = [await signUp(app, { firstName: 'Ada' }), await signUp(app)]
  const statusOf = async (token: string) =>
    (await fetch(`${frozen.url}/account`, { headers: bearer(token) }).catch(() => null))?.status
  t.same([await statusOf(user.token), await statusOf(other.token)], [200, 200])

  const { promise: isFrozen, resolve } = Promise.withResolvers<void>()
  onCommit = () => {
    frozen.process.kill('SIGSTOP')
    resolve()
  }
  const change = fetch(`${frozen.url}/account`, {
    method: 'PUT',
    headers: { ...bearer(user.token), 'content-type': 'application/json' },
    body: JSON.stringify({ firstName: 'Grace' }),
  })
  await isFrozen
  const disable = async () => (await updateUser(app, user.id, { disabled: true })).statusCode
  t.equal(await disable(), 200, 'the first attempt waits for the end of the transaction, and succeeds')
  t.equal(await accountStatus(app, user.token), 401)

  const waiting = statusOf(user.token)
  frozen.process.kill('SIGCONT')
  t.not(await waiting, 200, 'its first request does not use what it had cached')
  t.equal((await change).status, 503, 'the change of the frozen instance was not made')
  t.equal(
    await until(
      () => statusOf(user.token),
      status => status === 401,
      BOUND,
    ),
    401,
  )
  t.equal(
    await until(
      () => statusOf(other.token),
      status => status === 200,
      BOUND,
    ),
    200,
    'it recovers',
  )
  const found = await app.inject({ url: `/admin/users/${user.id}`, headers: asAdmin })
  t.match(found.json(), { firstName: 'Ada', disabled: true })
})
