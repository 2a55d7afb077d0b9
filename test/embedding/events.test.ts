import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import type { LoggedEvent } from '../../src/gatehouse.ts'
import { asAdmin, bearer, logCapture } from '../support/build.ts'
import { runCli } from '../support/cli.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { buildHost, hostConfig, tokenAt } from '../support/host.ts'
import { until } from '../support/until.ts'

/** Milliseconds until an event must have been handled, on a busy machine. */
const LIMIT = 5_000

const logged = async (host: FastifyInstance): Promise<LoggedEvent[]> =>
  (await host.inject({ url: '/auth/admin/events?sort=at&limit=100', headers: asAdmin })).json().results

const atLeast = (events: readonly unknown[], count: number) =>
  until(
    () => events.length,
    length => length >= count,
    LIMIT,
  )

t.test('onEvent gets each event once, in order, also of other instances', t =>
  onEnginesOfRun(t, async (t, engine) => {
    const config = { ...hostConfig(t), DATABASE_URL: await engine.newDatabase(t) }
    const events: LoggedEvent[] = []
    const visible: boolean[] = []
    const host = await buildHost(t, {
      config,
      async onEvent(event) {
        visible.push((await logged(host)).some(({ id }) => id === event.id))
        events.push(event)
      },
    })
    const other = await buildHost(t, { config })
    for (let count = 0; count < 5; count += 1) {
      const [token] = await Promise.all([tokenAt(host), tokenAt(other)])
      await host.inject({ method: 'POST', url: '/auth/account/sign-out', headers: bearer(token) })
    }
    t.equal(await atLeast(events, 15), 15)
    t.same(events, await logged(host))
    t.ok(visible.every(Boolean), 'after the commit')
  }),
)

t.test('a named onEvent gets what happened while no host ran it, once', t =>
  onEnginesOfRun(t, async (t, engine) => {
    const DATABASE_URL = await engine.newDatabase(t)
    const config = { ...hostConfig(t), DATABASE_URL }
    const events: LoggedEvent[] = []
    const onEvent = {
      name: 'searchIndex',
      handle: (event: LoggedEvent) => void events.push(event),
    }
    const first = await buildHost(t, { config, onEvent })
    await tokenAt(first)
    t.equal(await atLeast(events, 1), 1)
    await first.close()
    const without = await buildHost(t, { config })
    for (let count = 0; count < 3; count += 1) await tokenAt(without)
    const third = await buildHost(t, { config, onEvent })
    await tokenAt(third)
    t.equal(await atLeast(events, 5), 5)
    t.same(events, await logged(third), 'in order, those before the restart not again')
    await third.close()
    t.equal(events.length, 5)
    const { stdout } = await runCli(['consumers', 'list', '--json', '--database', DATABASE_URL]).ended
    t.match(JSON.parse(stdout), { results: [{ name: 'host.searchIndex', waiting: 0, failures: 0 }] })
  }),
)

t.test('a handler that throws, rejects or never ends has no other effect', async t => {
  const log = logCapture()
  const events: string[] = []
  const host = await buildHost(t, {
    server: { logger: { level: 'error', stream: log.stream } },
    onEvent({ type }) {
      events.push(type)
      if (events.length === 1) throw new Error('first')
      if (events.length === 2) return Promise.reject(new Error('second'))
      return undefined
    },
  })
  for (let count = 0; count < 3; count += 1) await tokenAt(host)
  await atLeast(events, 3)
  t.same(
    log.records().map(({ msg, err }) => [msg, (err as Error).message]),
    [
      ['the handler of the event user.signed-up failed', 'first'],
      ['the handler of the event user.signed-up failed', 'second'],
    ],
  )

  const handling = Promise.withResolvers<void>()
  const stuck = await buildHost(t, {
    server: { logger: { level: 'error', stream: log.stream } },
    onEvent() {
      handling.resolve()
      return new Promise(() => undefined)
    },
  })
  t.ok(await tokenAt(stuck))
  await handling.promise
  t.ok(await tokenAt(stuck), 'responses do not wait')
  // Ends although the handler does not: closing waits for a limited time.
  await stuck.close()
  t.match(log.records().at(-1), { msg: 'the last events were not handled before the service closed' })
})

t.test('closing reads the log once more, and waits for the handlers of the last events', async t => {
  const events: string[] = []
  const begun = Promise.withResolvers<void>()
  const held = Promise.withResolvers<void>()
  const host = await buildHost(t, {
    async onEvent({ type }) {
      begun.resolve()
      await held.promise
      await sleep(50)
      events.push(type)
    },
  })
  await tokenAt(host)
  await begun.promise
  // The feed has read the log before this event.
  await tokenAt(host)
  const closed = host.close()
  held.resolve()
  await closed
  t.equal(events.length, 2)
})
