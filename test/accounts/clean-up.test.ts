/** Clean-up of expired sessions, e-mail tokens and old events (Sessions; docs/design.md, "Account life cycle"). */
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { newEmailToken } from '#core/accounts/email-token'
import { newEvent, OPERATOR } from '#core/audit-log/event'
import { newSession } from '#core/auth/session'
import { newUser } from '../storage/contract/fixtures.ts'
import { connect, fileOf } from '../storage/sqlite-support.ts'
import {
  accountStatus,
  asAdmin,
  build,
  logCapture,
  manualClock,
  type SignedUp,
  signIn,
  signUp,
} from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { newDatabase, query } from '../support/postgres.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

/** One pass a second: instances run whole passes in turn. */
const OFTEN = { startWithin: 1, interval: 10, pause: 1 }

const until = async (isSo: () => Promise<boolean> | boolean): Promise<void> => {
  while (!(await isSo())) await sleep(10)
}

const allEvents = ({ services }: FastifyInstance) =>
  services.storage.events.list({ filter: {}, beforeId: null, limit: 1_000 })

/**
 * Adds an event that is just too old and waits until it is removed. Events are last in a pass, so everything else is done
 * too.
 */
const pass = async (app: FastifyInstance): Promise<void> => {
  const { storage, clock } = app.services
  const user = newUser()
  const old = newEvent('user.created', OPERATOR, user.id, clock() - app.config.eventsKept - 1)
  await storage.accounts.addUser(user, old, {})
  await until(async () => (await allEvents(app)).every(({ id }) => id !== old.id))
}

/** The stored sessions of a user, valid or expired. */
const sessionsOf = async ({ services }: FastifyInstance, userId: string): Promise<number> =>
  (await services.storage.sessions.list(userId, 0, 0, 1_000)).length

/** Makes a request and waits until its timestamp is stored: the test clock advances by days within a second. */
const use = async (app: FastifyInstance, { id, token }: SignedUp): Promise<void> => {
  const { storage, clock } = app.services
  await accountStatus(app, token)
  await until(async () => {
    const [session] = await storage.sessions.list(id, 0, 0, 1)
    return session?.lastRequestAt === clock()
  })
}

/** Adds sessions that expired long ago. */
const addExpired = async (app: FastifyInstance, count: number): Promise<string> => {
  const { id } = await signUp(app)
  const { storage, clock } = app.services
  const sessions = Array.from({ length: count }, () =>
    newSession(id, clock() - 2 * DAY, { lifetime: HOUR, idle: HOUR }, { method: 'password', amr: ['pwd'] }),
  )
  await Promise.all(
    sessions.map(session =>
      storage.sessions.open(
        session,
        null,
        newEvent('user.signed-in', OPERATOR, id, clock(), { session: session.id }),
      ),
    ),
  )
  return id
}

/** Adds an e-mail token that expires a day after its creation. @returns its digest. */
const addEmailToken = async ({ services }: FastifyInstance, { id, email }: SignedUp, made: number) => {
  const { storage, clock } = services
  const { stored } = newEmailToken('verification', id, email, made)
  const requested = newEvent('email.verification-requested', OPERATOR, id, clock())
  await storage.emailTokens.add(stored, requested, null)
  return stored.digest
}

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  t.test('a session is removed an hour after it became invalid, and kept while it is used', async t => {
    const clock = manualClock()
    const env = { SESSION_IDLE: '10d', SESSION_LIFETIME: '30d' }
    const app = await build(t, { env, clock: clock.now, cleanUpPace: OFTEN })
    const [ann, bob] = [await signUp(app), await signUp(app)]
    const mailed = await addEmailToken(app, bob, clock.now() + 9 * DAY - 1)
    const isKept = async () => (await app.services.storage.emailTokens.find(mailed, 0)) !== undefined

    clock.advance(10 * DAY - 1)
    await use(app, ann)
    clock.advance(HOUR)
    await pass(app)
    t.equal(await accountStatus(app, bob.token), 401, 'idle')
    t.equal(
      await sessionsOf(app, bob.id),
      1,
      'an instance may know better than the store: it is kept a while',
    )
    t.ok(await isKept())
    clock.advance(1)
    await pass(app)
    t.equal(await sessionsOf(app, bob.id), 0)
    t.notOk(await isKept())
    t.equal(await sessionsOf(app, ann.id), 1)
    t.equal(await accountStatus(app, ann.token), 200)

    for (const days of [9, 9]) {
      clock.advance(days * DAY)
      await pass(app)
      await use(app, ann)
    }
    clock.advance(3 * DAY)
    const { accessToken } = (await signIn(app, ann.email)).json()
    await pass(app)
    t.equal(await accountStatus(app, ann.token), 401)
    t.equal(await accountStatus(app, accessToken), 200)
    t.equal(await sessionsOf(app, ann.id), 1, 'that of the sign-in')
    t.ok(
      (await allEvents(app)).every(({ type }) => !type.startsWith('session')),
      'no event tells of it',
    )
  })

  t.test('events are kept for EVENTS_KEPT', async t => {
    const clock = manualClock()
    const app = await build(t, { env: { EVENTS_KEPT: '2d' }, clock: clock.now, cleanUpPace: OFTEN })
    const { id } = await signUp(app)
    const types = async () => {
      const { results } = (await app.inject({ url: `/admin/events?userId=${id}`, headers: asAdmin })).json()
      return results.map(({ type }: { type: string }) => type)
    }
    const [first] = await types()
    t.ok(first)
    clock.advance(2 * DAY)
    await pass(app)
    t.strictSame((await types()).at(-1), first)
    clock.advance(1)
    await pass(app)
    t.strictSame(await types(), [])
  })

  t.test('close() waits for the current slice, not for the whole pass; the next start continues', async t => {
    const env = { DATABASE_URL: await newDatabase(t) }
    const log = logCapture()
    const first = await build(t, { env, logStream: log.stream })
    const id = await addExpired(first, 450)
    await first.close()
    const second = await build(t, { env, logStream: log.stream, cleanUpPace: { ...OFTEN, pause: HOUR } })
    await until(async () => (await sessionsOf(second, id)) < 451)
    t.equal(await sessionsOf(second, id), 351, 'a hundred at a time, then a pause')
    await second.close()
    const third = await build(t, { env, logStream: log.stream, cleanUpPace: OFTEN })
    await until(async () => (await sessionsOf(third, id)) < 351)
    await third.close()
    const fourth = await build(t, { env, logStream: log.stream, cleanUpPace: OFTEN })
    await until(async () => (await sessionsOf(fourth, id)) === 1)
    t.notMatch(log.text(), /expired rows/, 'nothing failed')
  })
})

t.test('a failure is logged once per pass and the other removals still run', async t => {
  const log = logCapture()
  const clock = manualClock()
  const env = { DATABASE_URL: `sqlite:${fileOf(t)}`, EVENTS_KEPT: '30d' }
  const app = await build(t, { env, clock: clock.now, logStream: log.stream, cleanUpPace: OFTEN })
  const user = await signUp(app)
  await addEmailToken(app, user, clock.now())
  const db = connect(t)
  for (const table of ['sessions', 'email_tokens'])
    db.exec(
      `CREATE TRIGGER keep_${table} BEFORE DELETE ON ${table} BEGIN SELECT RAISE(ABORT, 'kept by a test'); END`,
    )
  clock.advance(60 * DAY)
  const failures = () => log.records().filter(({ msg }) => /expired rows/.test(String(msg)))
  await until(() => failures().length > 0)
  t.equal(failures().length, 1)
  t.match(failures()[0], { level: 50, err: { message: /database is not available/ } })
  t.equal(await sessionsOf(app, user.id), 1)
  t.strictSame(await allEvents(app), [], 'events are gone')
  db.exec('DROP TRIGGER keep_sessions; DROP TRIGGER keep_email_tokens')
  await until(async () => (await sessionsOf(app, user.id)) === 0)
  t.equal((await signIn(app, user.email)).statusCode, 200)
})

t.test('only one of several instances on one PostgreSQL runs the pass', async t => {
  const DATABASE_URL = await newDatabase(t)
  const instance = () => build(t, { env: { DATABASE_URL }, cleanUpPace: { ...OFTEN, interval: HOUR } })
  const passes = (times: number) =>
    until(async () => {
      const [row] = await query(DATABASE_URL, `SELECT points FROM rate_limits WHERE key = 'clean-up:pass'`)
      return Number(row?.points) >= times
    })
  const first = await instance()
  await passes(1)
  await first.close()
  const watch = await build(t, { env: { DATABASE_URL } })
  const id = await addExpired(watch, 1)
  const second = await instance()
  await passes(2)
  // If it ran at all, it would have started by now.
  await second.close()
  t.equal(await sessionsOf(watch, id), 2)
})
