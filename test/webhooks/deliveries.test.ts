/** Deliveries of webhooks to real receivers: in order, at least once, one at a time (docs/design.md, "Webhooks"). */
import t from 'tap'
import { newId } from '#base/ids'
import { OPERATOR } from '#core/audit-log/event'
import { LOG_START } from '#core/audit-log/listing'
import type { WebhookStore } from '#features/webhooks/stored-webhooks'
import type { WebhookAttempt } from '#features/webhooks/webhook'
import {
  build as buildApp,
  type Context,
  logCapture,
  manualClock,
  signUp,
  updateUser,
} from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { readLog } from '../support/event-log.ts'
import { mailbox } from '../support/mailbox.ts'
import { readMetrics } from '../support/metrics.ts'
import { execute } from '../support/stored-rows.ts'
import { until } from '../support/until.ts'
import {
  accept,
  allowing,
  asRoot,
  attemptsOf,
  createWebhook,
  getWebhook,
  type Received,
  type Receiver,
  receiver,
  status,
} from '../support/webhook-receiver.ts'

const WAIT = 20_000
const MINUTE = 60_000

type App = Awaited<ReturnType<typeof buildApp>>

const idsAfter = async (app: App, type: string, id: string) => {
  const events = await readLog(app)
  const first = events.findIndex(event => event.details?.webhook === id && event.type === type)
  return events.slice(first).map(event => event.id)
}

const positionOf = async (app: App, id: string) => {
  const store = app.services.storage.features.webhooks as WebhookStore
  return (await store.listWebhookStates()).find(state => state.id === id)?.cursor.position.position ?? -1
}

const call = (app: App, id: string, action: string, payload?: object) =>
  asRoot(app, { method: 'POST', url: `/admin/webhooks/${id}/${action}`, ...(payload && { payload }) })

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  // Of tests that need no settings or clock of their own.
  const hooks = await Promise.all(Array.from({ length: 10 }, () => receiver(t)))
  const app = await build(t, { env: { ...allowing(...hooks), OPERATOR_EMAIL: 'ops@example.com' } })
  const takeHook = (respond = accept): Receiver => {
    const hook = hooks.pop()
    if (hook === undefined) throw new Error('more receivers are needed')
    hook.respondWith(respond)
    return hook
  }
  /** Creates a webhook of the shared app, for one test. */
  const create = async (t: Context, payload: object) => {
    const webhook = await createWebhook(app, payload)
    t.teardown(() => asRoot(app, { method: 'DELETE', url: `/admin/webhooks/${webhook.id}` }))
    return webhook
  }

  t.test('every event from the creation on, in order, once; two instances share the work', async t => {
    const hook = await receiver(t)
    const options = { env: { DATABASE_URL: await newDatabase(t), ...allowing(hook) } }
    const apps = [await build(t, options), await build(t, options)] as const
    await signUp(apps[0])
    const { id } = await createWebhook(apps[0], { url: hook.url })
    for (const app of [...apps, ...apps]) {
      const user = await signUp(app)
      await updateUser(app, user.id, { disabled: true })
    }
    const expected = await idsAfter(apps[0], 'webhook.created', id)
    await hook.arrived(expected.length)
    t.same(hook.ids(), expected)
    const { body, headers } = hook.received[1] as (typeof hook.received)[number]
    t.match(body, { type: 'user.signed-up', data: { id: headers['webhook-id'], type: 'user.signed-up' } })
    t.equal(body.timestamp, body.data.at)
    t.notMatch(hook.received.map(({ text }) => text).join(''), /@example\.com/, 'no e-mail')
  })

  t.test(
    'an event that fails is sent again after 5 s, 5 min, … with the same id; later ones wait',
    async t => {
      const clock = manualClock()
      const hook = await receiver(t, status(500))
      const logged = logCapture()
      const app = await build(t, {
        env: { ...allowing(hook), LOG_LEVEL: 'warn' },
        clock: clock.now,
        logStream: logged.stream,
      })
      const { id } = await createWebhook(app, { url: `${hook.url}?token=hidden-secret` })
      await signUp(app)
      const waits: number[] = []
      for (let failures = 1; failures < 10; failures += 1) {
        await hook.arrived(failures)
        const state = await until(
          () => getWebhook(app, id),
          webhook => webhook.failures === failures,
          WAIT,
        )
        t.match(state, { state: 'enabled', failedEventId: hook.ids()[0] })
        const wait = Date.parse(state.retryAt) - clock.now()
        waits.push(wait)
        clock.advance(wait)
      }
      await hook.arrived(10)
      const disabled = await until(
        () => getWebhook(app, id),
        webhook => webhook.state === 'disabled',
        WAIT,
      )
      t.match(disabled, { disabledReason: 'failing', failures: 10, retryAt: null })
      t.equal(new Set(hook.ids()).size, 1)
      const least = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400].map(each => each * 1_000)
      t.ok(
        waits.every((wait, index) => wait >= (least[index] ?? 0) && wait <= (least[index] ?? 0) * 1.1),
        `${waits}`,
      )
      t.match((await readLog(app)).at(-1), {
        type: 'webhook.disabled',
        details: { webhook: id, reason: 'failing' },
      })
      t.notMatch(logged.text(), /hidden-secret|whsec_/)
      t.same(
        (await attemptsOf(app, id)).map(({ attempt, outcome, status }) => [attempt, outcome, status]),
        Array.from({ length: 10 }, (_, index) => [index + 1, 'rejected', 500]),
      )
      hook.respondWith(accept)
      t.match((await call(app, id, 'resume')).json(), { state: 'enabled', failures: 0, failedEventId: null })
      const expected = await idsAfter(app, 'webhook.created', id)
      await hook.arrived(10 + expected.length)
      t.same(hook.ids().slice(10), expected, 'nothing is lost')
    },
  )

  t.test(
    'W10: 410 disables at once, with an event and a mail to the operator; other webhooks go on',
    async t => {
      const [gone, other] = [takeHook(status(410)), takeHook()]
      const { id } = await create(t, { url: `${gone.url}?token=hidden-secret` })
      await create(t, { url: other.url })
      const [mail] = await mailbox(app).to('ops@example.com', 'webhookDisabled')
      t.match(mail?.text, id)
      t.match(mail?.text, gone.host)
      t.notMatch(mail?.text, /hidden-secret|\/hook/)
      t.match(await getWebhook(app, id), { state: 'disabled', disabledReason: 'gone', failures: 1 })
      t.match((await readLog(app)).at(-1), {
        type: 'webhook.disabled',
        userId: null,
        details: { reason: 'gone' },
      })
      await signUp(app)
      await other.arrived((await idsAfter(app, 'webhook.created', id)).length - 1)
      t.equal(gone.received.length, 1)
    },
  )

  t.test(
    'W7: a lease that ends during a slow attempt: one overlap, the same id, the cursor never moves back',
    async t => {
      const DATABASE_URL = await newDatabase(t)
      let slow = Promise.withResolvers<void>()
      const hook = await receiver(t, async (response, { headers }) => {
        if (hook.ids().filter(id => id === headers['webhook-id']).length === 1) await slow.promise
        response.writeHead(204).end()
      })
      const env = { DATABASE_URL, ...allowing(hook) }
      const first = await build(t, { env })
      const { id } = await createWebhook(first, { url: hook.url })
      await hook.arrived(1)
      // The clock of the other instance is two minutes ahead, so the lease has ended there.
      const second = await build(t, { env, clock: () => Date.now() + 2 * MINUTE })
      await hook.arrived(2)
      const moved = async () =>
        (
          await until(
            () => attemptsOf(second, id),
            each => each.length > 0,
            WAIT,
          )
        ).length
      t.equal(await moved(), 1)
      const position = await positionOf(second, id)
      slow.resolve()
      slow = Promise.withResolvers<void>()
      slow.resolve()
      await first.close()
      t.ok((await positionOf(second, id)) >= position)
      await signUp(second)
      const expected = await idsAfter(second, 'webhook.created', id)
      await until(
        async () => new Set(hook.ids()).size,
        size => size >= expected.length,
        WAIT,
      )
      t.same([...new Set(hook.ids())], expected)
      t.equal(hook.ids().filter(each => each === expected[0]).length, 2)
    },
  )

  t.test('a pause holds events back; resume delivers them, and can leave out the one that fails', async t => {
    const hook = takeHook()
    const { id } = await create(t, { url: hook.url, types: ['user.signed-up', 'user.disabled'] })
    t.match((await call(app, id, 'pause')).json(), { state: 'paused' })
    const witness = takeHook()
    await create(t, { url: witness.url, types: ['user.signed-up'] })
    const user = await signUp(app)
    await witness.arrived(1)
    t.equal(hook.received.length, 0)
    hook.respondWith(status(500))
    t.equal((await call(app, id, 'resume', { skip: true })).statusCode, 409, 'nothing fails yet')
    await call(app, id, 'resume')
    await updateUser(app, user.id, { disabled: true })
    const failing = await until(
      () => getWebhook(app, id),
      webhook => webhook.failures === 1,
      WAIT,
    )
    hook.respondWith(accept)
    t.match((await call(app, id, 'resume', { skip: true })).json(), { failures: 0, state: 'enabled' })
    await hook.arrived(2)
    t.same(hook.types(), ['user.signed-up', 'user.disabled'])
    const resumed = (await readLog(app)).findLast(({ type }) => type === 'webhook.resumed')
    t.match(resumed, {
      details: { webhook: id, skipped: failing.failedEventId },
      actor: { type: 'adminKey' },
    })
  })

  t.test(
    'W12: a replay begins with an event or a time; it has no address of a user who was deleted since',
    async t => {
      const hook = takeHook()
      const { id } = await create(t, { url: hook.url })
      const [user] = [await signUp(app), await signUp(app)]
      const before = await idsAfter(app, 'webhook.created', id)
      await hook.arrived(before.length)
      t.ok(hook.received[1]?.body.data.ip, 'the address of the first delivery')
      await asRoot(app, { method: 'DELETE', url: `/admin/users/${user.id}` })
      await hook.arrived(before.length + 1)
      const sent = hook.received.length
      const replayed = await call(app, id, 'replay', { from: before[1] ?? '' })
      t.match(replayed.json(), { id, removedBefore: null })
      const expected = (await idsAfter(app, 'webhook.created', id)).slice(1)
      await hook.arrived(sent + expected.length)
      t.same(hook.ids().slice(sent), expected)
      const ofUser = hook.received.slice(sent).filter(({ body }) => body.data.userId === user.id)
      t.ok(ofUser.length > 0)
      t.same(
        ofUser.filter(({ body }) => body.data.type !== 'user.deleted').map(({ body }) => body.data.ip),
        ofUser.slice(1).map(() => null),
      )
      const byTime = await call(app, id, 'replay', { from: '2020-01-01T00:00:00Z' })
      t.ok(Date.parse(byTime.json().removedBefore) > Date.parse('2020-01-01'), 'EVENTS_KEPT has removed some')
      const all = (await readLog(app)).map(event => event.id)
      await hook.arrived(sent + expected.length + all.length)
      t.same(hook.ids().slice(-all.length), all)
    },
  )

  t.test('a ping is sent also while a webhook is paused', async t => {
    const hook = takeHook()
    const { id } = await create(t, { url: hook.url, types: ['user.deleted'] })
    await call(app, id, 'pause')
    const response = await call(app, id, 'ping')
    t.equal(response.statusCode, 202)
    await hook.arrived(1)
    t.same(hook.ids(), [response.json().id])
    t.match(hook.received[0]?.body, { type: 'webhook.ping', data: {} })
    const [attempt] = await until(
      () => attemptsOf(app, id),
      attempts => attempts.length > 0,
      WAIT,
    )
    t.match(attempt, { eventId: response.json().id, type: 'webhook.ping', outcome: 'delivered', status: 204 })
  })

  t.test('an event that was accepted meanwhile cannot be skipped: the cursor stays', async t => {
    const hook = takeHook(status(500))
    const { id } = await create(t, { url: hook.url, types: ['user.signed-up'] })
    await signUp(app)
    const { failedEventId } = await until(
      () => getWebhook(app, id),
      ({ failures }) => failures === 1,
      WAIT,
    )
    hook.respondWith((response, { headers }) =>
      headers['webhook-id'] === failedEventId ? accept(response, hook.received[0] as Received) : undefined,
    )
    await signUp(app)
    await asRoot(app, { method: 'PUT', url: `/admin/webhooks/${id}`, payload: { description: 'again' } })
    await hook.arrived(3)
    t.match(await getWebhook(app, id), { failures: 0, failedEventId: null }, 'while the next one is sent')
    t.equal((await call(app, id, 'resume', { skip: true })).statusCode, 409)
    // Two administrators at once: the second one read what the first one changed.
    const store = app.services.storage.features.webhooks as WebhookStore
    const cursor = { kind: app.services.storage.events.positionKind, position: LOG_START }
    const at = Date.now()
    const event = { id: newId(at), at, type: 'webhook.resumed', actor: OPERATOR, userId: null, details: null }
    t.equal(await store.resumeWebhook(id, { eventId: failedEventId, cursor }, event), false)
  })

  t.test('the last hundred attempts of a webhook are kept', async t => {
    const hook = takeHook()
    const { id } = await create(t, { url: hook.url, types: ['user.signed-up'] })
    const { id: other } = await create(t, { url: hook.url, types: ['user.deleted'] })
    const store = app.services.storage.features.webhooks as WebhookStore
    const attempt = (eventId: string): WebhookAttempt => ({
      ...{ id: newId(Date.now()), eventId, type: 'webhook.ping', attempt: 1, at: Date.now(), duration: 1 },
      ...{ status: 204, outcome: 'delivered' },
    })
    const pings = Array.from({ length: 105 }, () => newId(Date.now()))
    await store.addAttempt(other, attempt(pings[0] ?? ''))
    for (const ping of pings) await store.addAttempt(id, attempt(ping))
    t.same(
      (await attemptsOf(app, id)).map(({ eventId }) => eventId),
      pings.slice(5),
    )
    t.equal((await attemptsOf(app, other)).length, 1)
  })

  t.test('failures of an event do not count for the next one', async t => {
    const hook = takeHook(status(500))
    const { id } = await create(t, { url: hook.url, types: ['user.signed-up'] })
    const user = await signUp(app)
    for (let failures = 1; failures <= 9; failures += 1) {
      await until(
        () => getWebhook(app, id),
        webhook => webhook.failures === failures,
        WAIT,
      )
      // A change repeats it at once.
      const payload = failures < 9 ? { description: `${failures}` } : { types: ['user.disabled'] }
      await asRoot(app, { method: 'PUT', url: `/admin/webhooks/${id}`, payload })
    }
    await updateUser(app, user.id, { disabled: true })
    await hook.arrived(10)
    const webhook = await until(
      () => getWebhook(app, id),
      ({ failures }) => failures !== 9,
      WAIT,
    )
    t.match(webhook, { state: 'enabled', failures: 1, failedEventId: hook.ids()[9] ?? '' })
  })

  t.test('a delivery that lasts long holds back no other one after a failure of the store', async t => {
    const DATABASE_URL = await newDatabase(t)
    const silent = await receiver(t, () => undefined)
    const hook = await receiver(t)
    const logged = logCapture()
    const app = await build(t, { env: { DATABASE_URL, ...allowing(silent, hook) }, logStream: logged.stream })
    const { id } = await createWebhook(app, { url: silent.url })
    await silent.arrived(1)
    await execute(DATABASE_URL, 'ALTER TABLE webhooks RENAME TO missing')
    await until(
      () => logged.text(),
      text => text.includes('webhooks could not be read'),
      WAIT,
    )
    await execute(DATABASE_URL, 'ALTER TABLE missing RENAME TO webhooks')
    await createWebhook(app, { url: hook.url })
    await hook.arrived(1)
    t.same(await attemptsOf(app, id), [], 'the first attempt is still under way')
  })

  t.test('a graceful stop stores the cursor: nothing is repeated, nothing is left out', async t => {
    const DATABASE_URL = await newDatabase(t)
    const hook = await receiver(t)
    const env = { DATABASE_URL, ...allowing(hook) }
    const first = await build(t, { env })
    const { id } = await createWebhook(first, { url: hook.url })
    for (let count = 0; count < 3; count += 1) await signUp(first)
    await hook.arrived(2)
    await first.close()
    const second = await build(t, { env })
    await signUp(second)
    const expected = await idsAfter(second, 'webhook.created', id)
    await hook.arrived(expected.length)
    t.same(hook.ids(), expected)
  })
})

t.test('W4: a redirect is a failure, and is not followed', async t => {
  const target = await receiver(t)
  const hook = await receiver(t, status(302, { location: target.url }))
  const app = await buildApp(t, { env: allowing(hook, target) })
  await createWebhook(app, { url: target.url, types: ['user.disabled'] })
  const { id } = await createWebhook(app, { url: hook.url })
  const user = await signUp(app)
  await updateUser(app, user.id, { disabled: true })
  const [attempt] = await until(
    () => attemptsOf(app, id),
    attempts => attempts.length > 0,
    WAIT,
  )
  t.match(attempt, { outcome: 'rejected', status: 302 })
  await target.arrived(1)
  t.same(target.types(), ['user.disabled'])
})

t.test('W10: Retry-After is respected, up to a day', async t => {
  const clock = manualClock()
  const hook = await receiver(t, status(429, { 'retry-after': '3600' }))
  const app = await buildApp(t, { env: allowing(hook), clock: clock.now })
  const { id } = await createWebhook(app, { url: hook.url })
  const waitAfter = async (failures: number) => {
    const state = await until(
      () => getWebhook(app, id),
      webhook => webhook.failures === failures,
      WAIT,
    )
    return Date.parse(state.retryAt) - clock.now()
  }
  t.equal(await waitAfter(1), 60 * MINUTE)
  const inThreeDays = new Date(clock.now() + 4_320 * MINUTE).toUTCString()
  hook.respondWith(status(503, { 'retry-after': inThreeDays }))
  clock.advance(60 * MINUTE)
  t.equal(await waitAfter(2), 1_440 * MINUTE)
  hook.respondWith(status(503, { 'retry-after': 'soon' }))
  clock.advance(1_440 * MINUTE)
  t.ok((await waitAfter(3)) >= 30 * MINUTE)
})

t.test(
  'W5: a receiver that hangs, drips or floods is cut; other webhooks, and a stop, do not wait',
  async t => {
    const silent = await receiver(t, () => undefined)
    const dripping = await receiver(t, response => {
      response.writeHead(200)
      const timer = setInterval(() => response.write('.'), 50)
      response.once('close', () => clearInterval(timer))
    })
    const flooding = await receiver(t, response => {
      response.writeHead(200)
      const pour = () => {
        while (!response.destroyed && response.write('x'.repeat(65_536)));
        if (!response.destroyed) response.once('drain', pour)
      }
      pour()
    })
    const healthy = await receiver(t)
    const app = await buildApp(t, {
      env: { ...allowing(silent, dripping, flooding, healthy), WEBHOOK_TIMEOUT: '1s' },
    })
    const outcomeOf = async (id: string) => {
      const [attempt] = await until(
        () => attemptsOf(app, id),
        attempts => attempts.length > 0,
        WAIT,
      )
      return attempt?.outcome
    }
    const ids: string[] = []
    for (const { url } of [silent, dripping, flooding, healthy])
      ids.push((await createWebhook(app, { url })).id)
    t.same(await Promise.all(ids.map(outcomeOf)), ['timeout', 'timeout', 'delivered', 'delivered'])
    const before = healthy.received.length
    await asRoot(app, { method: 'POST', url: `/admin/webhooks/${ids[0]}/resume` })
    await silent.arrived(2)
    t.ok(healthy.received.length >= before)
    const start = performance.now()
    await app.close()
    t.ok(performance.now() - start < 900, 'the attempt that hangs is aborted')
  },
)

t.test('metrics count attempts, and measure what waits: nothing, once the webhook is deleted', async t => {
  const [hook, failing] = [await receiver(t), await receiver(t, status(500))]
  const app = await buildApp(t, { env: allowing(hook, failing) })
  const { id } = await createWebhook(app, { url: hook.url })
  const { id: deletedId } = await createWebhook(app, { url: failing.url })
  const metrics = await until(
    () => readMetrics(app),
    ({ sum }) =>
      sum('gatehouse_webhook_attempts_total', { outcome: 'delivered' }) > 0 &&
      sum('gatehouse_webhook_attempts_total', { outcome: 'rejected' }) === 1 &&
      sum('gatehouse_webhook_waiting_events', { webhook: deletedId }) > 0,
    WAIT,
  )
  t.ok(metrics.sum('gatehouse_webhook_waiting_events', { webhook: deletedId }) > 0)
  for (const name of ['waiting_events', 'lag_seconds'])
    t.ok(metrics.text.includes(`gatehouse_webhook_${name}{webhook="${id}"}`), name)
  await asRoot(app, { method: 'DELETE', url: `/admin/webhooks/${deletedId}` })
  const waiting = async () =>
    (await readMetrics(app)).sum('gatehouse_webhook_waiting_events', { webhook: deletedId })
  t.equal(await until(waiting, count => count === 0, WAIT), 0)
})
