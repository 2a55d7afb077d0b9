/** examples/notes: a feature with every part of a declaration (docs/design.md, "Features"). */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { SettingError } from '#base/settings/readers'
import { FeatureMetrics } from '#base/statistics/feature-metrics'
import { counter, gauge } from '#base/statistics/metric'
import type { ServicesOf } from '#feature/declaration'
import { allFeatures } from '#features/built-in'
import { html } from '#http/pages/layout'
import { loadConfig } from '#process/config/config'
import { notes } from '../../examples/notes/notes.ts'
import { createKey, SCOPES } from '../support/api-keys.ts'
import { asAdmin, bearer, build, logCapture, manualClock, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { unlessTaken } from '../support/examples.ts'
import { readMetrics } from '../support/metrics.ts'
import { storedRows } from '../support/stored-rows.ts'
import { until } from '../support/until.ts'

const YEAR = 365 * 86_400_000

const servicesOf = (app: FastifyInstance) => app.services as typeof app.services & ServicesOf<[typeof notes]>

await onEnginesOfRun(
  t,
  async (t, { build, newDatabase }) => {
    const options = { features: [notes] }
    const env = { DATABASE_URL: await newDatabase(t) }
    const app = await build(t, { ...options, env })
    const add = (token: string, text: string) =>
      app.inject({ method: 'POST', url: '/notes', headers: bearer(token), payload: { text } })

    t.test('notes are added, listed, read, changed and removed', async t => {
      const ada = await signUp(app)
      const eve = await signUp(app)
      const created = await add(ada.token, ' one ')
      t.equal(created.statusCode, 201, created.body)
      const note = created.json()
      t.match(note, { text: 'one', createdAt: note.updatedAt })
      t.equal(created.headers.location, `/notes/${note.id}`)
      const second = (await add(ada.token, 'two')).json()
      const list = await app.inject({ url: '/notes', headers: bearer(ada.token) })
      t.strictSame(list.json(), { results: [second, note], nextCursor: null })

      const url = `/notes/${note.id}`
      t.strictSame((await app.inject({ url, headers: bearer(ada.token) })).json(), note)
      const changed = await app.inject({
        method: 'PUT',
        url,
        headers: bearer(ada.token),
        payload: { text: 'three' },
      })
      t.match(changed.json(), { id: note.id, text: 'three', createdAt: note.createdAt })
      for (const method of ['GET', 'PUT', 'DELETE'] as const) {
        const payload = method === 'PUT' ? { payload: { text: 'mine' } } : {}
        globalErrorOf(t, await app.inject({ method, url, headers: bearer(eve.token), ...payload }), 404)
      }
      t.equal((await app.inject({ method: 'DELETE', url, headers: bearer(ada.token) })).statusCode, 204)
      globalErrorOf(t, await app.inject({ url, headers: bearer(ada.token) }), 404)
      globalErrorOf(t, await app.inject({ url: '/notes' }), 401)
    })

    t.test('API keys need the scopes of the feature, which are part of the default', async t => {
      const { token } = await signUp(app)
      const keyWith = async (scopes?: string[]) => (await createKey(app, token, scopes && { scopes })).token
      const [reading, writing, other] = [
        await keyWith(['notes:read']),
        await keyWith(['notes:write']),
        await keyWith(['account:read']),
      ]
      const read = (key: string) => app.inject({ url: '/notes', headers: bearer(key) })
      t.same(
        await Promise.all([reading, writing, other].map(async key => (await read(key)).statusCode)),
        [200, 403, 403],
      )
      t.same(
        await Promise.all([reading, writing, other].map(async key => (await add(key, 'one')).statusCode)),
        [403, 201, 403],
      )
      const refused = await read(other)
      t.equal(refused.headers['www-authenticate'], 'Bearer error="insufficient_scope", scope="notes:read"')
      const full = await createKey(app, token)
      t.same(full.apiKey.scopes, [...SCOPES, 'notes:read', 'notes:write'])
      t.equal((await add(full.token, 'two')).statusCode, 201)
      t.equal((await read(full.token)).json().results.length, 2)
    })

    t.test('an event is recorded with the note, and can be filtered by its type', async t => {
      const { id, token } = await signUp(app)
      const note = (await add(token, 'one')).json()
      const events = await app.inject({
        url: `/admin/events?type=note.created&userId=${id}`,
        headers: asAdmin,
      })
      t.match(events.json().results, [{ type: 'note.created', userId: id, details: { note: note.id } }])
    })

    t.test('one of simultaneous notes above the limit is refused', async t => {
      const { token } = await signUp(app)
      const codes: number[] = []
      for (let batch = 0; batch < 5; batch += 1)
        codes.push(
          ...(await Promise.all(Array.from({ length: 21 }, (_, n) => add(token, `note ${n}`)))).map(
            r => r.statusCode,
          ),
        )
      t.equal(codes.filter(code => code === 201).length, 100)
      t.equal(codes.filter(code => code === 409).length, 5)
    })

    t.test('the notes of a deleted user are deleted', async t => {
      const { id, token } = await signUp(app)
      await add(token, 'one')
      t.equal(
        (await app.inject({ method: 'DELETE', url: `/admin/users/${id}`, headers: asAdmin })).statusCode,
        204,
      )
      t.strictSame((await servicesOf(app).notes.list({ id }, 10)).results, [])
    })

    t.test('a list has pages', async t => {
      const { token } = await signUp(app)
      for (const text of ['one', 'two', 'three']) await add(token, text)
      const page = async (query: string) => app.inject({ url: `/notes?${query}`, headers: bearer(token) })
      const texts = ({ results }: { results: { text: string }[] }) => results.map(({ text }) => text)
      const first = await page('limit=2')
      t.same(texts(first.json()), ['three', 'two'])
      const { nextCursor } = first.json()
      t.equal(first.headers.link, `</notes?limit=2&cursor=${nextCursor}>; rel="next"`)
      const last = await page(`limit=2&cursor=${nextCursor}`)
      t.same(texts(last.json()), ['one'])
      t.equal(last.json().nextCursor, null)
      t.equal(last.headers.link, undefined)
      t.equal((await page('limit=3')).json().nextCursor, null, 'a page that is just full is the last one')
      for (const cursor of ['x', Buffer.from('none').toString('base64url'), ''])
        errorsAt(t, await page(`cursor=${cursor}`), 400, ['cursor'])
      for (const limit of ['0', '101', 'x']) errorsAt(t, await page(`limit=${limit}`), 400, ['limit'])
    })

    t.test('a code shows a note to anybody once', async t => {
      const [ada, eve] = [await signUp(app), await signUp(app)]
      const { id } = (await add(ada.token, 'shared')).json()
      const share = (token: string) =>
        app.inject({ method: 'POST', url: `/notes/${id}/codes`, headers: bearer(token) })
      globalErrorOf(t, await share(eve.token), 404)
      const { code } = (await share(ada.token)).json()
      const read = (presented = code) =>
        app.inject({ method: 'POST', url: '/shared-notes', payload: { code: presented } })
      errorsAt(t, await read(`${code}x`), 404, ['code'])
      const responses = await Promise.all([read(), read(), read()])
      t.same(responses.map(({ statusCode }) => statusCode).sort(), [200, 404, 404])
      t.same(responses.find(({ statusCode }) => statusCode === 200)?.json(), { text: 'shared' })
      t.notMatch(await storedRows(env.DATABASE_URL), code, 'only a digest is stored')
    })

    t.test('a setting bounds the notes, a metric counts them', async t => {
      const own = await build(t, { ...options, env: { NOTES_MAX: '2' } })
      const { token } = await signUp(own)
      const add = () =>
        own.inject({ method: 'POST', url: '/notes', headers: bearer(token), payload: { text: 'one' } })
      t.equal((await add()).statusCode, 201)
      t.equal((await add()).statusCode, 201)
      t.equal(globalErrorOf(t, await add(), 409), 'You have too many notes: remove one first')
      const metrics = await own.inject({ url: '/admin/metrics', headers: asAdmin })
      t.match(metrics.body, '# TYPE gatehouse_notes_added_total counter\n')
      t.match(metrics.body, 'gatehouse_notes_added_total{actor="user"} 2\n')
      t.throws(() => loadConfig({ NOTES_MAX: '0' }, [...allFeatures(), notes]), {
        message: /NOTES_MAX must be an integer from 1 to 10000, not "0"/,
      })
      const { warnings } = loadConfig({ NOTES_MAXX: '1' }, [...allFeatures(), notes])
      t.ok(warnings.includes('NOTES_MAXX is not a setting; did you mean NOTES_MAX?'))
    })

    t.test('a section that fails takes nothing else from the security page', async t => {
      const rows = () => [html`of the feature`]
      const pages = async () => ({
        default: { security: { path: '/nope', section: 'signIn', rows } as const },
      })
      const own = await build(t, { features: [{ ...notes, pages }] })
      const { token } = await signUp(own)
      const page = await own.inject({ url: '/security', headers: { cookie: `ACCESS_TOKEN=${token}` } })
      t.equal(page.statusCode, 200)
      t.match(page.body, '>Devices</h2>')
      t.notMatch(page.body, 'of the feature')
    })

    t.test('a limit of the feature is in headers and metrics', async t => {
      const own = await build(t, { ...options, env: { RATE_LIMIT: 'on' } })
      const { token } = await signUp(own)
      const add = () =>
        own.inject({ method: 'POST', url: '/notes', headers: bearer(token), payload: { text: 'one' } })
      t.match((await add()).headers['ratelimit-policy'], '"new-notes";q=60;w=60')
      const read = () => own.inject({ method: 'POST', url: '/shared-notes', payload: { code: 'x' } })
      for (let request = 0; request < 20; request += 1) t.equal((await read()).statusCode, 404)
      t.equal(globalErrorOf(t, await read(), 429), 'Too many requests')
      const metrics = await own.inject({ url: '/admin/metrics', headers: asAdmin })
      t.match(metrics.body, 'gatehouse_rate_limited_requests_total{limit="shared-notes"} 1\n')
    })

    t.test(
      'pages: a section of the security page, a page of its own, and its errors in both languages',
      async t => {
        const { token } = await signUp(app)
        const { id } = (await add(token, '<b>hay</b>')).json()
        const asBrowser = (language = 'en') => ({
          cookie: `ACCESS_TOKEN=${token}`,
          'accept-language': language,
          accept: 'text/html',
          'sec-fetch-site': 'same-origin',
        })
        const page = (url: string, language?: string) => app.inject({ url, headers: asBrowser(language) })
        t.match(
          (await page('/security')).body,
          '<a class="button" href="./security/notes">Show your notes</a>',
        )
        t.match(
          (await page('/security', 'de')).body,
          '<a class="button" href="./security/notes">Notizen zeigen</a>',
        )
        t.match((await page('/security/notes')).body, '&lt;b&gt;hay&lt;/b&gt;')
        t.equal((await app.inject('/security/notes')).headers.location, '../sign-in')
        const remove = (language?: string) =>
          app.inject({
            method: 'POST',
            url: '/security/notes/remove',
            headers: { ...asBrowser(language), 'content-type': 'application/x-www-form-urlencoded' },
            payload: `id=${id}`,
          })
        const removed = await remove()
        t.equal(removed.statusCode, 303, removed.body)
        const notice = removed.cookies.find(({ name }) => name === 'PAGE_NOTICE')
        t.equal(notice?.value, 'noteRemoved')
        const headers = { ...asBrowser('de'), cookie: `${asBrowser().cookie}; PAGE_NOTICE=noteRemoved` }
        t.match((await app.inject({ url: '/security', headers })).body, 'Die Notiz ist entfernt.')
        t.match((await remove('de')).body, 'Diese Notiz ist schon entfernt.')
      },
    )

    t.test('a job removes a note a year after its last change, with an event', async t => {
      const clock = manualClock()
      const own = await build(t, { ...options, clock: clock.now, jobPace: { startWithin: 1, maxWait: 20 } })
      const { id, token } = await signUp(own)
      const add = (text: string) =>
        own.inject({ method: 'POST', url: '/notes', headers: bearer(token), payload: { text } })
      const old = (await add('old')).json()
      clock.advance(1_000)
      await add('new')
      const texts = async () => (await servicesOf(own).notes.list({ id }, 10)).results.map(({ text }) => text)
      clock.advance(YEAR - 999)
      t.strictSame(await until(texts, ({ length }) => length < 2, 10_000), ['new'])
      const url = `/admin/events?type=note.expired&userId=${id}`
      const { results } = (await own.inject({ url, headers: asAdmin })).json()
      t.match(results, [{ actor: { type: 'system', id: null }, details: { note: old.id } }])
      t.equal(results.length, 1)
      const metrics = await own.inject({ url: '/admin/metrics', headers: asAdmin })
      t.match(metrics.body, /gatehouse_job_runs_total\{job="notes.removeOld",outcome="succeeded"\} [1-9]/)
    })
  },
  unlessTaken('notes'),
)

t.test('a key of a feature is in no message', t => {
  const refuse = (text: string) => {
    throw new SettingError('must be another one', text)
  }
  const load = (read: (text: string) => unknown) => () => {
    const setting = { read, default: null, description: 'a key', isKey: true } as const
    return loadConfig({ NOTES_KEY: 'a-secret-value' }, [
      ...allFeatures(),
      { ...notes, settings: { NOTES_KEY: setting } },
    ])
  }
  t.throws(load(refuse), { message: /NOTES_KEY must be another one$/ })
  t.throws(load(JSON.parse), { message: /NOTES_KEY is not valid$/ })
  t.end()
})

t.test('a metric takes any label as text, a counter also several at once, and a gauge only numbers', t => {
  const metrics = new FeatureMetrics({
    a_total: counter('A', 'kind', 'constructor'),
    b: gauge('sum', 'B'),
    c_total: counter('C'),
  })
  const { a_total, b, c_total } = metrics.recorders as Readonly<
    Record<string, { add(...args: unknown[]): void; set(value: unknown): void }>
  >
  a_total?.add({ kind: 5 })
  a_total?.add({ kind: 5 }, 4)
  c_total?.add()
  c_total?.add(2)
  for (const count of [-1, Number.NaN, '2'])
    t.throws(() => c_total?.add(count), { message: 'a counter adds a number that is not negative' })
  t.throws(() => b?.set(undefined), { message: 'the value of a gauge must be a number' })
  t.same(metrics.values, {
    a_total: [{ labels: { kind: '5', constructor: '' }, value: 5 }],
    b: [{ labels: {}, value: 0 }],
    c_total: [{ labels: {}, value: 3 }],
  })
  t.end()
})

t.test(
  'further combinations of labels than 1,000 count as other, and are logged once',
  unlessTaken('notes'),
  async t => {
    const log = logCapture()
    const feature = {
      ...notes,
      metrics: { a_total: counter('A', 'kind', 'size'), b: gauge('sum', 'B', 'kind') },
      services: { notes: ({ metrics }: { metrics: unknown }) => metrics },
    } as unknown as typeof notes
    const app = await build(t, { features: [feature], logStream: log.stream })
    const { a_total, b } = servicesOf(app).notes as unknown as Readonly<
      Record<string, { add(labels: object): void; set(value: number, labels: object): void }>
    >
    for (let index = 0; index < 1_500; index += 1) {
      a_total?.add({ kind: index, size: 'small' })
      b?.set(index, { kind: index })
    }
    a_total?.add({ kind: 999, size: 'small' })
    const { series, sum } = await readMetrics(app)
    for (const name of ['a_total', 'b'])
      t.equal(series.filter(each => each.name === name).length, 1_001, name)
    t.equal(sum('a_total', { kind: 'other', size: 'other' }), 500)
    t.equal(sum('a_total', { kind: '999' }), 2)
    t.equal(sum('a_total'), 1_501)
    t.equal(sum('b', { kind: 'other' }), 1_499)
    const message = 'a metric has too many combinations of label values: further ones count as other'
    t.match(log.problems(), [
      { level: 40, metric: 'a_total', msg: message },
      { level: 40, metric: 'b', msg: message },
    ])
    t.equal(log.problems().length, 2)
  },
)
