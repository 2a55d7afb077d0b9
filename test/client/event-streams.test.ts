/** Streams of events as async iterators (docs/design.md, "OpenAPI and client"). */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { newEvent, OPERATOR } from '#core/audit-log/event'
import { createAdminClient, createClient, type StreamedEvent } from '../../client/client.ts'
import { EventStreamParser } from '../../client/event-stream.ts'
import { createKey, revokeKey } from '../support/admin-keys.ts'
import { ADMIN_KEY, bearer, type build as buildApp, signUp, updateUser } from '../support/build.ts'
import { clientsOf, rejection, scripted } from '../support/clients.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { readLog } from '../support/event-log.ts'
import { until } from '../support/until.ts'

const WAIT = 20_000

type App = Awaited<ReturnType<typeof buildApp>>

const logOf = async (app: App) => (await readLog(app)).map(({ id }) => id)

/** The first events of a stream. Leaving the loop ends the request. */
const first = async <Event>(
  count: number,
  stream: AsyncIterable<StreamedEvent<Event>>,
): Promise<StreamedEvent<Event>[]> => {
  const all: StreamedEvent<Event>[] = []
  for await (const streamed of stream) if (all.push(streamed) === count) break
  return all
}

const idsOf = (all: readonly StreamedEvent<{ readonly id: string }>[]) => all.map(({ event }) => event.id)

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const env = { DATABASE_URL: await newDatabase(t) }
  const app = await build(t, { env })
  const { baseUrl, admin } = await clientsOf(app)
  // `fetch` connects again after an abort, before it has a request. To a server that stops, such a connection is not idle for a minute.
  t.teardown(() => app.server.closeAllConnections())
  const streams = () => app.services.eventStreams.size
  /** The end of the log, where a test begins. */
  const cursor = async () => {
    await readLog(app)
    return app.services.auditLog.end()
  }

  t.test('events arrive typed, with their cursors, by the filters of the list', async t => {
    const from = await cursor()
    const { id, token } = await signUp(app)
    await signUp(app)
    await updateUser(app, id, { firstName: 'Ann' })
    await updateUser(app, id, { lastName: 'Lee' })
    const all = await first(4, admin.streamEvents({ cursor: from }))
    t.same(idsOf(all), (await logOf(app)).slice(-4))
    t.same(idsOf(await first(2, admin.streamEvents({ cursor: String(all[1]?.cursor) }))), idsOf(all).slice(2))
    const [changed] = await first(1, admin.streamEvents({ cursor: from, type: 'user.changed', userId: id }))
    t.match(changed?.event, { type: 'user.changed', userId: id, actor: { type: 'adminKey' } })
    const own = createClient({ baseUrl, accessToken: token }).streamOwnEvents({ cursor: from })
    t.match(await first(3, own), [
      { event: { type: 'user.signed-up' } },
      { event: { type: 'user.changed', actor: { id: null }, details: { fields: ['firstName'] } } },
      { event: { details: { fields: ['lastName'] } } },
    ])
    t.equal(await until(streams, size => size === 0, WAIT), 0, 'a reader that stops ends the request')
  })

  t.test('a stream goes on when the service starts again: no gap, no event twice', async t => {
    const first = await build(t, { env })
    const url = await first.listen({ host: '127.0.0.1', port: 0 })
    const { port } = first.server.address() as AddressInfo
    const before = (await logOf(app)).length
    const controller = new AbortController()
    const ids: string[] = []
    const reading = (async () => {
      const stream = createAdminClient({ baseUrl: url, adminKey: ADMIN_KEY }).streamEvents(
        {},
        { signal: controller.signal },
      )
      for await (const { event } of stream) ids.push(event.id)
    })()
    await until(
      () => first.services.eventStreams.size,
      size => size === 1,
      WAIT,
    )
    // The client has the cursor of the beginning, and no event, when its connection ends.
    await first.close()
    for (let count = 0; count < 3; count += 1) await signUp(app)
    const second = await build(t, { env })
    await second.listen({ host: '127.0.0.1', port })
    await until(
      () => ids.length,
      length => length === 3,
      WAIT,
    )
    await signUp(second)
    await until(
      () => ids.length,
      length => length === 4,
      WAIT,
    )
    controller.abort('enough')
    t.equal(await rejection(reading), 'enough')
    t.same(ids, (await logOf(app)).slice(before))
  })

  t.test('an aborted stream ends at once, whether it waits or its reader works', async t => {
    await cursor()
    const waiting = new AbortController()
    const next = admin.streamEvents({}, { signal: waiting.signal }).next()
    await until(streams, size => size === 1, WAIT)
    waiting.abort('left')
    t.equal(await rejection(next), 'left')
    t.equal(await until(streams, size => size === 0, WAIT), 0)

    const working = new AbortController()
    const from = await cursor()
    for (let count = 0; count < 3; count += 1) await signUp(app)
    const stream = admin.streamEvents({ cursor: from }, { signal: working.signal })
    await stream.next()
    working.abort('done')
    t.equal(await rejection(stream.next()), 'done', 'although there is another event')
    t.same(await stream.next(), { done: true, value: undefined })
    t.equal(await until(streams, size => size === 0, WAIT), 0)
  })

  t.test('what the service refuses is an error', async t => {
    const error = (stream: AsyncIterator<unknown>) => rejection(stream.next())
    t.match(await error(admin.streamEvents({ cursor: 'nonsense' })), {
      status: 400,
      errors: { cursor: [String] },
    })
    t.match(await error(createClient({ baseUrl }).streamOwnEvents()), { status: 401 })
    const { text } = await createKey(app, ['users:read'])
    t.match(await error(createAdminClient({ baseUrl, adminKey: text }).streamEvents()), { status: 403 })
  })

  t.test('a stream ends with 401 when its credential is revoked', async t => {
    const key = await createKey(app, ['events:read'])
    const ofKey = createAdminClient({ baseUrl, adminKey: key.text }).streamEvents()
    const { token } = await signUp(app)
    const ofSession = createClient({ baseUrl, accessToken: token }).streamOwnEvents()
    const ended = Promise.all([
      rejection(first(Number.POSITIVE_INFINITY, ofKey)),
      rejection(first(Number.POSITIVE_INFINITY, ofSession)),
    ])
    await until(streams, size => size === 2, WAIT)
    await revokeKey(app, key.id)
    await app.inject({ method: 'POST', url: '/account/sign-out', headers: bearer(token) })
    t.match(await ended, [{ status: 401 }, { status: 401 }])
  })

  t.test('the eleventh stream of a credential is repeated, and then an error', async t => {
    const key = await createKey(app, ['events:read'])
    const own = createAdminClient({ baseUrl, adminKey: key.text })
    await cursor()
    const controller = new AbortController()
    const { signal } = controller
    const open = Array.from({ length: 10 }, () => rejection(own.streamEvents({}, { signal }).next()))
    await until(streams, size => size === 10, WAIT)
    const at = performance.now()
    t.match(await rejection(own.streamEvents({}, { retries: 1 }).next()), { status: 429, retryAfter: 1 })
    t.ok(performance.now() - at >= 1_000, 'after Retry-After')
    controller.abort()
    await Promise.all(open)
  })

  t.test('a reader that is slow reads nothing ahead, and loses nothing', async t => {
    const { events } = app.services.storage
    const stream = admin.streamEvents({ cursor: await cursor() })
    const { id: userId } = await signUp(app)
    const ids = [String((await stream.next()).value?.event.id)]
    const fields = Array.from({ length: 200 }, (_, index) => `field ${index} of a long list`)
    let sent = 1
    // The service closes the stream of a client that reads nothing. One that read ahead would keep it.
    await until(
      async () => {
        const added = Array.from({ length: 100 }, () =>
          newEvent('user.changed', OPERATOR, userId, Date.now(), { fields }),
        )
        await Promise.all(added.map(event => events.record(event)))
        sent += added.length
        // Twice what the buffers of both sockets hold; then the client has two seconds.
        if (sent > 3_000) await sleep(500)
        return streams()
      },
      size => size === 0,
      WAIT * 2,
    )
    t.equal(streams(), 0)
    ids.push(...idsOf(await first(sent - 1, stream)))
    t.same(ids, (await logOf(app)).slice(-sent))
  })
})

/** Streams of a scripted service, with the cursors of the requests. */
const streaming = async (
  t: Parameters<typeof scripted>[0],
  ...responses: ((response: ServerResponse, request: IncomingMessage) => void)[]
) => {
  const { baseUrl, requests } = await scripted(t, ...responses)
  const cursors = () =>
    requests.map(request => new URL(String(request.split(' ')[1]), baseUrl).searchParams.get('cursor'))
  return { admin: createAdminClient({ baseUrl, adminKey: 'key', maxRetryDelay: 50 }), requests, cursors }
}

/** A part of a stream, after which the connection ends. */
const part = (text: string) => (response: ServerResponse) =>
  response.writeHead(200, { 'content-type': 'text/event-stream' }).end(text)

/** A part of a stream, after which the connection stays open. */
const open = (text: string) => (response: ServerResponse) =>
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' }).write(text)

const event = (id: string) => `id: ${id}\ndata: {"id":"${id}"}\n\n`

t.test('each connection continues at the last id, also of a frame without an event', async t => {
  const { admin, cursors } = await streaming(
    t,
    part(`id: 0\nretry: 1\n\n`),
    part(`retry: 1\n\n${event('a')}${event('b')}data: {"id":"incomplete"}\n`),
    response => response.destroy(),
    part(`: nothing new\n\nretry: 1\n\n`),
    open(event('c')),
  )
  const all = await first(3, admin.streamEvents())
  t.same(idsOf(all), ['a', 'b', 'c'])
  t.same(
    all.map(({ cursor }) => cursor),
    ['a', 'b', 'c'],
  )
  t.same(cursors(), [null, '0', 'b', 'b', 'b'])
})

t.test('the service says when to connect again', async t => {
  const { admin } = await streaming(t, part(`retry: 300\n\n${event('a')}`), open(event('b')))
  const at = performance.now()
  t.equal((await first(2, admin.streamEvents())).length, 2)
  t.ok(performance.now() - at >= 299)
})

t.test('an open stream waits out what passes, as long as Retry-After says', async t => {
  const refused = (status: number, seconds: string) => (response: ServerResponse) =>
    response.writeHead(status, { 'retry-after': seconds }).end('{}')
  const script = [
    part(`retry: 1\n\n${event('a')}`),
    ...[500, 502, 503, 504].map(status => refused(status, '0')),
    refused(429, '1'),
    open(event('b')),
  ]
  const { admin, requests } = await streaming(t, ...script)
  const at = performance.now()
  t.same(idsOf(await first(2, admin.streamEvents())), ['a', 'b'])
  t.equal(requests.length, script.length)
  t.ok(performance.now() - at >= 1_000)

  const impatient = await streaming(t, ...script)
  t.match(await rejection(first(2, impatient.admin.streamEvents({}, { retries: 1 }))), { status: 502 })

  const forbidden = await streaming(t, part(`retry: 1\n\n${event('a')}`), refused(403, '0'))
  t.match(await rejection(first(2, forbidden.admin.streamEvents())), { status: 403 })
  t.equal(forbidden.requests.length, 2)
})

t.test('a service that is not there is an error after the repetitions', async t => {
  const { admin, requests } = await streaming(t, response => response.destroy())
  t.match(await rejection(first(1, admin.streamEvents())), { name: 'NetworkError' })
  t.equal(requests.length, 3)
})

t.test('a silent connection is replaced', async t => {
  const { admin, cursors } = await streaming(t, open(`retry: 1\n\n${event('a')}`), open(event('b')))
  t.same(idsOf(await first(2, admin.streamEvents({}, { silence: 100 }))), ['a', 'b'])
  t.same(cursors(), [null, 'a'])
})

t.test('what is no stream of events is an error', async t => {
  const page = await streaming(t, response =>
    response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Sign in to the network</p>'),
  )
  t.match(await rejection(first(1, page.admin.streamEvents())), {
    name: 'NetworkError',
    message: /no stream of events/,
  })
  const damaged = await streaming(t, open('data: {\n\n'))
  t.match(await rejection(first(1, damaged.admin.streamEvents())), {
    name: 'NetworkError',
    cause: { name: 'SyntaxError' },
  })
  const endless = await streaming(t, open(`data: ${'x'.repeat(1_100_000)}`))
  t.match(await rejection(first(1, endless.admin.streamEvents())), { cause: { message: /longer than/ } })
})

t.test('a byte order mark, and characters in two chunks', async t => {
  const bytes = Buffer.from('\uFEFFid: ä\ndata: {"id":"€😀"}\n\n')
  const { admin } = await streaming(t, async response => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const byte of bytes) {
      response.write(Buffer.of(byte))
      await sleep(1)
    }
  })
  t.same(await first(1, admin.streamEvents()), [{ event: { id: '€😀' }, cursor: 'ä' }])
})

t.test('lines end with CR, LF and CRLF, wherever the chunks do', async t => {
  for (const end of ['\n', '\r', '\r\n']) {
    const lines = [
      ...[': comment', 'retry: 10', 'id: 1', 'data: one', 'data:two', 'data:  three', ''],
      ...['event: other', 'unknown: field', 'data', ''],
      ...['retry: 1s', 'id: a\0b', 'data: x:y', ''],
      ...['id', ''],
      ...['', 'data: never ended'],
    ]
    const text = lines.join(end)
    const expected = [
      { id: '1', data: 'one\ntwo\n three' },
      { id: '1', data: '' },
      { id: '1', data: 'x:y' },
      { id: '', data: null },
      { id: '', data: null },
    ]
    for (let at = 0; at <= text.length; at += 1) {
      const parser = new EventStreamParser()
      const blocks = [text.slice(0, at), '', text.slice(at)].flatMap(chunk => parser.blocks(chunk))
      t.same(blocks, expected, `${JSON.stringify(end)} at ${at}`)
      t.equal(parser.retry, 10)
    }
    const parser = new EventStreamParser()
    t.same(
      [...text].flatMap(chunk => parser.blocks(chunk)),
      expected,
    )
  }
})
