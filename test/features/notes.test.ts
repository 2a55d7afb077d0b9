/** examples/notes: a feature with a table, an event, a mail, a clean-up rule and a command (DESIGN §11). */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { notes } from '../../examples/notes/notes.ts'
import notesRoutes from '../../examples/notes/routes/private/notes/routes.ts'
import userGate from '../../routes/private/autohooks.ts'
import type { ServicesOf } from '../../src/feature.ts'
import { createKey, SCOPES } from '../support/api-keys.ts'
import { asAdmin, bearer, manualClock, signUp } from '../support/build.ts'
import { onEveryEngine } from '../support/engines.ts'
import { globalErrorOf } from '../support/error-response.ts'
import { until } from '../support/until.ts'

const YEAR = 365 * 86_400_000

const servicesOf = (app: FastifyInstance) => app.services as typeof app.services & ServicesOf<[typeof notes]>

/** As autoload registers them in `routes/private`. */
const withRoutes = (app: FastifyInstance): void => {
  app.register(async scope => {
    await userGate(scope)
    scope.register(notesRoutes, { prefix: '/notes' })
  })
}

await onEveryEngine(t, async (t, { build, newDatabase }) => {
  const options = { features: [notes], extend: withRoutes }
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
    t.strictSame(list.json(), { results: [second, note] })

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

  t.test('API keys need the scopes of the feature, which are part of the default (DESIGN §13)', async t => {
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
    const events = await app.inject({ url: `/admin/events?type=note.created&userId=${id}`, headers: asAdmin })
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
    t.strictSame(await servicesOf(app).notes.list({ id }), [])
  })

  t.test('a note is removed a year after its last change', async t => {
    const clock = manualClock()
    const cleanUpPace = { startWithin: 1, interval: 20, pause: 1 }
    const own = await build(t, { ...options, clock: clock.now, cleanUpPace })
    const { id, token } = await signUp(own)
    const add = (text: string) =>
      own.inject({ method: 'POST', url: '/notes', headers: bearer(token), payload: { text } })
    await add('old')
    clock.advance(1_000)
    await add('new')
    const texts = async () => (await servicesOf(own).notes.list({ id })).map(({ text }) => text)
    clock.advance(YEAR - 999)
    t.strictSame(await until(texts, ({ length }) => length < 2, 10_000), ['new'])
    clock.advance(1_000)
    t.strictSame(await until(texts, ({ length }) => length < 1, 10_000), [])
  })
})
