/** Event streams over real sockets: `Accept: text/event-stream` at the lists of events (docs/design.md, "Event streams"). */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { newEvent, OPERATOR } from '#core/audit-log/event'
import { EVENT_STREAM_LIMITS, EventStreams } from '#core/audit-log/event-streams'
import { call } from '../support/account-routes.ts'
import { createKey, revokeKey } from '../support/admin-keys.ts'
import { createKey as createApiKey, revokeKey as revokeApiKey } from '../support/api-keys.ts'
import { asAdmin, bearer, build as buildApp, manualClock, signUp, updateUser } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { readLog } from '../support/event-log.ts'
import { listening, openStream, requestStream } from '../support/event-stream.ts'
import { until } from '../support/until.ts'

const WAIT = 20_000
const ADMIN = '/admin/events'
const OWN = '/account/events'

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const DATABASE_URL = await newDatabase(t)
  const env = { DATABASE_URL }
  const app = await build(t, { env })
  const log = async (instance = app) => (await readLog(instance)).map(({ id }) => id)
  /** A new user, whose sign-up a stream from now on does not send. */
  const signUpBefore = async () => {
    const user = await signUp(app)
    await log()
    return user
  }

  t.test(
    'events arrive in order, those of other instances too, and a stream continues where it ended',
    async t => {
      const other = await build(t, { env })
      const stream = await openStream(t, app, ADMIN, asAdmin)
      const before = await log()
      for (const instance of [app, other, app, other]) {
        const { id } = await signUp(instance)
        await updateUser(instance, id, { disabled: true })
      }
      const expected = (await log()).slice(before.length)
      t.same(await stream.ids(expected.length), expected)
      stream.close()
      const third = stream.events[2]?.id ?? ''
      await signUp(other)
      const rest = (await log()).slice(before.length + 3)
      const resumed = await openStream(t, other, ADMIN, { ...asAdmin, 'last-event-id': third })
      t.same(await resumed.ids(rest.length), rest)
      const byQuery = await openStream(t, app, `${ADMIN}?cursor=${third}`, asAdmin)
      t.same(await byQuery.ids(rest.length), rest)
    },
  )

  t.test('a stream that ends before its first event can be continued', async t => {
    const stream = await openStream(t, app, ADMIN, asAdmin)
    const cursor = await until(
      () => stream.lastEventId,
      id => id !== '',
      WAIT,
    )
    stream.close()
    const before = await log()
    await signUp(app)
    const expected = (await log()).slice(before.length)
    const resumed = await openStream(t, app, ADMIN, { ...asAdmin, 'last-event-id': cursor })
    t.same(await resumed.ids(expected.length), expected)
  })

  t.test('the response is what proxies and browsers need', async t => {
    const { headers } = await requestStream(t, app, ADMIN, { ...asAdmin, 'accept-encoding': 'br, gzip' })
    t.match(headers, {
      'content-type': /^text\/event-stream/,
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
    })
    t.equal(headers['content-encoding'], undefined)
    for (const accept of [
      '*/*',
      'application/json',
      'application/json, text/event-stream;q=0.1',
      'text/event-stream, application/json',
      'text/event-stream;q=0, */*',
      'text/event-stream;q=0.5, application/*',
      'text/event-stream;q=0.000',
    ]) {
      const page = await fetch(`${await listening(app)}${ADMIN}`, { headers: { ...asAdmin, accept } })
      t.match(page.headers.get('content-type'), /^application\/json/)
    }
    for (const accept of [
      'text/event-stream',
      'text/event-stream, */*',
      'Text/Event-Stream;charset=utf-8;q=0.9, application/json;q=0.8',
      'text/*, application/json;q=0',
    ])
      t.match((await requestStream(t, app, ADMIN, { ...asAdmin, accept })).headers, {
        'content-type': /^text\/event-stream/,
      })
    const head = await fetch(`${await listening(app)}${ADMIN}`, {
      method: 'HEAD',
      headers: { ...asAdmin, accept: 'text/event-stream' },
    })
    t.match(head.headers.get('content-type'), /^application\/json/, 'HEAD opens no stream')
  })

  t.test('the filters of the list apply', async t => {
    const { id } = await signUpBefore()
    const [disabled, ofUser] = [
      await openStream(t, app, `${ADMIN}?type=user.disabled`, asAdmin),
      await openStream(t, app, `${ADMIN}?userId=${id}`, asAdmin),
    ]
    await signUp(app)
    await updateUser(app, id, { disabled: true })
    await updateUser(app, id, { disabled: false })
    await Promise.all([ofUser.ids(2), disabled.ids(1)])
    t.same(
      ofUser.events.map(({ data }) => data.type),
      ['user.disabled', 'user.enabled'],
    )
    t.same(
      disabled.events.map(({ data }) => data.type),
      ['user.disabled'],
    )
  })

  t.test('users get the events of their own account, and not who acted for the operator', async t => {
    const { id, token, email } = await signUpBefore()
    const stream = await openStream(t, app, OWN, bearer(token))
    await signUp(app)
    await updateUser(app, id, { firstName: 'Ada' })
    await app.inject({ method: 'PUT', url: '/account', headers: bearer(token), payload: { lastName: 'L' } })
    await stream.ids(2)
    t.match(stream.events, [
      { data: { type: 'user.changed', actor: { type: 'adminKey', id: null }, ip: null } },
      { data: { type: 'user.changed', actor: { type: 'user', id }, ip: '127.0.0.1' } },
    ])
    t.notOk(stream.text.includes(email))
    const page = await call(app, 'GET', `${OWN}?sort=at`, undefined, bearer(token))
    t.same(
      page.json().results.map((event: { type: string }) => event.type),
      ['user.signed-up', 'user.changed', 'user.changed'],
    )
  })

  t.test('API keys need the scope account:read', async t => {
    const { token } = await signUp(app)
    const reader = await createApiKey(app, token, { scopes: ['account:read'] })
    const other = await createApiKey(app, token, { scopes: ['users:read'] })
    t.equal((await requestStream(t, app, OWN, bearer(reader.token))).status, 200)
    t.equal((await requestStream(t, app, OWN, bearer(other.token))).status, 403)
    t.equal((await requestStream(t, app, ADMIN, bearer(token))).status, 401)
  })

  t.test('W13: a stream ends within a second when its credential is revoked or expires', async t => {
    const endsSoon = async (stream: { readonly ended: Promise<void> }, what: string) => {
      const at = performance.now()
      await stream.ended
      t.ok(performance.now() - at < WAIT, what)
    }
    const key = await createKey(app, ['events:read'])
    const ofKey = await openStream(t, app, ADMIN, key.headers)
    await revokeKey(app, key.id)
    await endsSoon(ofKey, 'an admin key')

    const { id, token } = await signUp(app)
    const ofSession = await openStream(t, app, OWN, bearer(token))
    await app.inject({ method: 'POST', url: '/account/sign-out', headers: bearer(token) })
    await endsSoon(ofSession, 'a session')
    await updateUser(app, id, { disabled: true })

    const { id: disabledId, token: disabledToken } = await signUp(app)
    const ofDisabled = await openStream(t, app, OWN, bearer(disabledToken))
    await updateUser(app, disabledId, { disabled: true })
    await endsSoon(ofDisabled, 'a disabled user')

    const { id: deletedId, token: deletedToken } = await signUp(app)
    const apiKey = await createApiKey(app, deletedToken, { scopes: ['account:read'] })
    const ofApiKey = await openStream(t, app, OWN, bearer(apiKey.token))
    const ofDeleted = await openStream(t, app, OWN, bearer(deletedToken))
    await revokeApiKey(app, deletedToken, apiKey.apiKey.id)
    await endsSoon(ofApiKey, 'an API key')
    await app.inject({ method: 'DELETE', url: `/admin/users/${deletedId}`, headers: asAdmin })
    await endsSoon(ofDeleted, 'a user who is deleted (S10)')

    const clock = manualClock(Date.now())
    const aging = await build(t, {
      env: { ...env, SESSION_LIFETIME: '1h', SESSION_IDLE: '1h' },
      clock: clock.now,
    })
    const { token: agingToken } = await signUp(aging)
    const ofAging = await openStream(t, aging, OWN, bearer(agingToken))
    const expiresAt = new Date(clock.now() + 3_600_000).toISOString()
    const agingKey = await createKey(aging, ['events:read'], { expiresAt })
    const ofAgingKey = await openStream(t, aging, ADMIN, agingKey.headers)
    clock.advance(3_600_001)
    await endsSoon(ofAging, 'a session at its end')
    await endsSoon(ofAgingKey, 'an admin key at its end')
  })

  t.test(
    'W14: a cursor that is forged, or whose event was removed, is 400 before the stream begins',
    async t => {
      const of = (text: string) => Buffer.from(text).toString('base64url')
      const { positionKind: kind } = app.services.storage.events
      const unknown = of(`at ${kind} 1 0193a1c8-4f10-7000-8000-000000000000`)
      for (const cursor of ['nonsense', of('at elsewhere 1 '), of(`at ${kind} x `), unknown, 'a, b']) {
        const response = (await requestStream(t, app, ADMIN, { ...asAdmin, 'last-event-id': cursor })).read()
        t.equal(response.status, 400, cursor)
        await response.ended
        t.match(JSON.parse(response.text), { errors: { cursor: [String] } })
      }
    },
  )

  t.test('W14: a cursor of another filter leaves out nothing of the new one', async t => {
    const user = await signUpBefore()
    const ofType = await openStream(t, app, `${ADMIN}?type=user.disabled`, asAdmin)
    for (const disabled of [true, false, true]) await updateUser(app, user.id, { disabled })
    await ofType.ids(2)
    const cursor = ofType.events[0]?.id ?? ''
    const ofUser = await openStream(t, app, `${ADMIN}?userId=${user.id}`, {
      ...asAdmin,
      'last-event-id': cursor,
    })
    await ofUser.ids(2)
    t.same(
      ofUser.events.map(({ data }) => data.type),
      ['user.enabled', 'user.disabled'],
    )
  })

  t.test('W14: a cursor with a position that there is not holds back no stream', async t => {
    const alone = await build(t)
    await signUp(alone)
    const { positionKind: kind } = alone.services.storage.events
    const [first = '', ...later] = await log(alone)
    const resumed = (position: string, id: string) => ({
      ...asAdmin,
      'last-event-id': Buffer.from(`at ${kind} ${position} ${id}`).toString('base64url'),
    })
    const far = '999999999999999'
    t.equal((await requestStream(t, alone, ADMIN, resumed(far, ''))).status, 400)
    const ofEvent = await openStream(t, alone, ADMIN, resumed(far, first))
    t.same(await ofEvent.ids(later.length), later, 'it begins after the event')
    const fromStart = await openStream(t, alone, ADMIN, resumed('-5', ''))
    t.same(await fromStart.ids(later.length + 1), [first, ...later])
    await signUp(alone)
    const all = await log(alone)
    t.same(await fromStart.ids(all.length), all)
    t.same(await ofEvent.ids(all.length - 1), all.slice(1))
  })

  t.test('W15: a client that does not read loses its stream, and others keep theirs', async t => {
    const { events } = app.services.storage
    const stuck = await requestStream(t, app, ADMIN, asAdmin)
    t.equal(stuck.status, 200)
    const reading = await openStream(t, app, ADMIN, asAdmin)
    const before = app.services.eventStreams.size
    const at = Date.now()
    const { id: userId } = await signUp(app)
    const fields = Array.from({ length: 200 }, (_, index) => `field ${index} of a long list`)
    let sent = 0
    await until(
      async () => {
        const added = Array.from({ length: 100 }, () =>
          newEvent('user.changed', OPERATOR, userId, at, { fields }),
        )
        await Promise.all(added.map(event => events.record(event)))
        sent += added.length
        // Twice what the buffers of both sockets hold; then the client has two seconds.
        if (sent > 3_000) await sleep(500)
        return app.services.eventStreams.size
      },
      size => size < before,
      WAIT * 2,
    )
    t.equal(app.services.eventStreams.size, before - 1)
    t.equal((await reading.ids(sent + 1)).length, sent + 1)
  })

  t.test('a credential has ten streams', async t => {
    const key = await createKey(app, ['events:read'])
    const opened = await Promise.all(
      Array.from({ length: 12 }, () => requestStream(t, app, ADMIN, key.headers)),
    )
    t.same(opened.map(({ status }) => status).sort(), [...Array(10).fill(200), 429, 429])
    const rejected = opened.find(({ status }) => status === 429)?.read()
    t.equal(rejected?.headers['retry-after'], '1')
    await rejected?.ended
    t.match(JSON.parse(rejected?.text ?? ''), { errors: { global: [String] } })
    await revokeKey(app, key.id)
  })

  t.test('D5: streams of users never take the places of administrators, or of users elsewhere', async t => {
    const eventStreamLimits = { ...EVENT_STREAM_LIMITS, streams: 5, share: 0.6, perNetwork: 2 }
    const small = await build(t, { env: { TRUST_PROXY: 'loopback' }, eventStreamLimits })
    const open = async (address: string) => {
      const { token } = await signUp(small)
      return requestStream(t, small, OWN, { ...bearer(token), 'x-forwarded-for': address })
    }
    const from = (address: string) => ({ ...asAdmin, 'x-forwarded-for': address })
    t.equal((await open('2001:db8::1')).status, 200)
    const second = await open('2001:db8::2')
    t.equal(second.status, 200)
    const third = (await open('2001:db8::ffff:3')).read()
    t.equal(third.status, 429, 'an IPv6 /64 is one network')
    t.equal(third.headers['retry-after'], '1')
    await third.ended
    t.match(JSON.parse(third.text), { errors: { global: [/from your network/] } })
    t.equal((await open('2001:db8:0:1::1')).status, 200, 'another network has places')
    t.equal((await open('192.0.2.1')).status, 503, 'users have no more than their share')
    t.equal((await requestStream(t, small, ADMIN, from('2001:db8::1'))).status, 200)
    t.equal((await requestStream(t, small, ADMIN, from('2001:db8::1'))).status, 200)
    t.equal((await requestStream(t, small, ADMIN, from('192.0.2.1'))).status, 503, 'all places are taken')
    second.close()
    await until(
      () => small.services.eventStreams.size,
      size => size === 4,
      WAIT,
    )
    t.equal((await requestStream(t, small, ADMIN, asAdmin)).status, 200)
    t.equal((await requestStream(t, small, ADMIN, asAdmin)).status, 503, 'nor have administrators more')
  })

  t.test('a client that disconnects frees its place at once', async t => {
    const quiet = await build(t)
    await listening(quiet)
    const open = () => quiet.services.eventStreams.size
    const opened = await Promise.all(Array.from({ length: 10 }, () => openStream(t, quiet, ADMIN, asAdmin)))
    t.equal(open(), 10)
    for (const stream of opened) stream.close()
    // Less than the time until the next comment.
    t.equal(await until(open, size => size === 0, 5_000), 0)
    await openStream(t, quiet, ADMIN, asAdmin)
  })

  t.test('a graceful stop ends streams', async t => {
    const stopping = await build(t, { env })
    const stream = await openStream(t, stopping, ADMIN, asAdmin)
    await stopping.close()
    await stream.ended
    t.match(stream.text, /^id: [\w-]+\nretry: \d+\n\n/)
  })
})

t.test(
  'a process has so many streams; comments have the cursor; a client that does not read does not keep an end waiting',
  async t => {
    const app = await buildApp(t)
    const { auditLog, storage } = app.services
    const deps = { auditLog, eventLog: storage.events, onFailure: () => undefined }
    const streams = new EventStreams(deps, { ...EVENT_STREAM_LIMITS, streams: 2, comments: 1 })
    const open = (credential: string, network: string | null = null) =>
      streams.open({
        ...{
          filter: { type: 'user.disabled' },
          cursor: undefined,
          credential,
          network,
          isAuthenticated: () => true,
        },
        ...{ disconnected: new AbortController().signal, serialize: event => event },
      })
    const stream = await open('a')
    let text = ''
    stream.setEncoding('utf8').on('data', chunk => {
      text += chunk
    })
    await open('b')
    const refusal = await open('c').catch(error => error)
    t.equal(refusal.statusCode, 503)
    await signUp(app)
    await readLog(app)
    const cursor = await auditLog.end()
    await until(
      () => text,
      read => read.includes(`id: ${cursor}\n: \n\n`),
      WAIT,
    )
    t.match(text, `id: ${cursor}\n: \n\n`)
    t.notMatch(text, 'data:')
    // The next comment finds the stream that nobody reads at its end.
    streams.close()
    t.equal(
      await until(
        () => streams.size,
        size => size === 0,
        WAIT,
      ),
      0,
    )
  },
)
