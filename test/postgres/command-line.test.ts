/**
 * Revocations by the command line, a process of its own, beside services on one PostgreSQL: once a command has reported, no service accepts
 * the token (`src/storage/postgres/process-leases.ts`), not even one that is cut off from the database and has cached it.
 */
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import pg from 'pg'
import t from 'tap'
import { accountStatus, asAdmin, build, signUp } from '../support/build.ts'
import { runCli } from '../support/cli.ts'
import { newDatabase, query } from '../support/postgres.ts'
import { createProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'

/** Milliseconds: a generous bound for polling. */
const BOUND = 60_000

/** What a command revokes. */
interface Revocable {
  readonly args: readonly string[]
  /** Whether a service accepts it, without the database if it is cached. @returns the status of a rejection. */
  use(app: FastifyInstance): Promise<'accepted' | number>
}

const userWith =
  (...command: string[]) =>
  async (app: FastifyInstance): Promise<Revocable> => {
    const { id, token } = await signUp(app)
    const use = async (other: FastifyInstance) => {
      const status = await accountStatus(other, token)
      return status === 200 ? 'accepted' : status
    }
    return { args: [...command, id], use }
  }

const adminKey = async (app: FastifyInstance): Promise<Revocable> => {
  const payload = { name: 'reads', scopes: ['users:read'] }
  const created = await app.inject({ method: 'POST', url: '/admin/keys', headers: asAdmin, payload })
  const { adminKey, key } = created.json() as { adminKey: string; key: { id: string } }
  const use = async (other: FastifyInstance) => {
    // 403 for a key that is valid: the route needs another scope.
    const { statusCode } = await other.inject({ url: '/admin/metrics', headers: { 'x-admin-key': adminKey } })
    return statusCode === 403 ? 'accepted' : statusCode
  }
  return { args: ['keys', 'revoke', key.id], use }
}

const kinds = {
  'users disable': userWith('users', 'disable'),
  'users delete': userWith('users', 'delete'),
  'sessions revoke': userWith('sessions', 'revoke'),
  'keys revoke': adminKey,
}

t.test('what a command has revoked is refused at once, everywhere', async t => {
  const url = await newDatabase(t)
  const proxy = await createProxy(t, url)
  const connected = await build(t, { env: { DATABASE_URL: url } })
  const cutOff = await build(t, { env: { DATABASE_URL: proxy.url } })
  const locker = new pg.Client({ connectionString: url })
  await locker.connect()
  t.teardown(() => locker.end())

  const leases = () => query(url, 'SELECT id, renewals FROM process_leases')
  /** Waits until both services have renewed their leases from now on, so that they cache. */
  const cache = async (): Promise<void> => {
    const before = new Map((await leases()).map(({ id, renewals }) => [id, Number(renewals)]))
    const renewed = async () =>
      (await leases()).filter(({ id, renewals }) => Number(renewals) > (before.get(id) ?? 0) + 1).length
    await until(renewed, count => count === 2, BOUND)
  }
  /** Waits until a command of this database, the newest of its processes, waits for a lock. */
  const isWaiting = (startedAt: Date) =>
    until(
      () =>
        query(
          url,
          `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
            AND backend_start > '${startedAt.toISOString()}'`,
        ),
      rows => rows.length > 0,
      BOUND,
    )

  for (const [name, create] of Object.entries(kinds)) {
    await cache()
    const { args, use } = await create(connected)
    for (const app of [connected, cutOff]) t.equal(await use(app), 'accepted', `${name}: cached`)

    // The command waits before it writes, and the service loses its database in this moment: its lease lasts.
    await locker.query('BEGIN; LOCK TABLE users, sessions, admin_keys IN EXCLUSIVE MODE')
    const startedAt = new Date()
    const command = runCli(args, { DATABASE_URL: url, NODE_ENV: 'test' })
    // Earlier than the exit of the process, by which a busy machine may have ended the lease anyway.
    const reported = Promise.race([once(command.process.stdout as Readable, 'data'), command.ended])
    await isWaiting(startedAt)
    t.equal(await use(cutOff), 'accepted', `${name}: cached, before the command writes`)
    proxy.set('silent')
    await locker.query('COMMIT')
    t.equal(await use(cutOff), 'accepted', `${name}: still cached without the database`)

    await reported
    const after = [connected, cutOff].map(use)
    proxy.set('none')
    proxy.cut()
    const [here, there] = await Promise.all(after)
    t.match(await command.ended, { code: 0, stderr: '' })
    t.equal(here, 401, `${name}: refused`)
    t.ok(there === 401 || there === 503, `${name}: not accepted without the database, but ${there}`)
  }
})
