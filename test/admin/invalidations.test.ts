/** GET /admin/invalidations: what verifiers in other services must ask again (docs/verifying.md). */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { call } from '../support/account-routes.ts'
import { asAdmin, bearer, signUp, updateUser } from '../support/build.ts'
import { onEveryEngine } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { isPrivateJson } from '../support/response-shapes.ts'

const askOnce = (app: FastifyInstance, after?: string, headers: Record<string, string> = asAdmin) =>
  app.inject({
    url: `/admin/invalidations${after === undefined ? '' : `?after=${encodeURIComponent(after)}`}`,
    headers,
  })

/** Asks again while a busy machine delays notifications of PostgreSQL. */
const ask = async (...question: Parameters<typeof askOnce>): ReturnType<typeof askOnce> => {
  const response = await askOnce(...question)
  return response.statusCode === 503 ? ask(...question) : response
}

const OTHER = '1b4e28ba-2fa1-4c6e-9d2f-0c8a5f1f3c11:7'

await onEveryEngine(t, async (t, { name, build, newDatabase }) => {
  const app = await build(t)

  /** The cursor after everything that has ended so far. */
  const cursorNow = async (): Promise<string> => (await ask(app)).json().cursor

  t.test(
    'the first question, and one with an unknown cursor, is answered at once: forget everything',
    async t => {
      for (const after of [undefined, '', OTHER, `${OTHER},${OTHER}`]) {
        const response = await ask(app, after)
        isPrivateJson(t, response, 200)
        t.match(response.json(), { cursor: /^[0-9a-f-]{36}:\d+$/, ids: [], reset: true })
      }
      if (name === 'sqlite') {
        const waits = new Promise<string>(resolve => setImmediate(resolve, 'waits'))
        t.match(await Promise.race([app.services.invalidationJournal.since(OTHER), waits]), { reset: true })
      }
      const cursor = await cursorNow()
      const [instance, position] = cursor.split(':')
      const later = await ask(app, `${instance}:${Number(position) + 1}`)
      t.match(later.json(), { cursor, reset: true }, 'a position that has not been')
    },
  )

  t.test('a question waits 400 ms at most, and is answered when something ends', async t => {
    const user = await signUp(app)
    const cursor = await cursorNow()
    const started = performance.now()
    t.same((await ask(app, cursor)).json(), { cursor, ids: [], reset: false })
    const waited = performance.now() - started
    t.ok(waited >= 390, String(waited))
    const asked = ask(app, `${OTHER},${cursor}`)
    await updateUser(app, user.id, { disabled: true })
    const { ids, reset, cursor: next } = (await asked).json()
    t.same(ids, [user.id])
    t.equal(reset, false)
    t.not(next, cursor)
    t.same((await ask(app, cursor)).json().ids, [user.id], 'again, for a lost response')
  })

  t.test('what ended between two questions is in the next one, with each id once', async t => {
    const [one, two] = [await signUp(app), await signUp(app)]
    const cursor = await cursorNow()
    await call(app, 'POST', '/account/sign-out', undefined, bearer(one.token))
    await updateUser(app, two.id, { firstName: 'A' })
    await updateUser(app, two.id, { firstName: 'B' })
    const { ids } = (await ask(app, cursor)).json()
    t.same([...ids].sort(), [one.id, two.id].sort())
  })

  t.test('when unknown ids have ended, every cursor is unknown', async t => {
    const cursor = await cursorNow()
    const asked = ask(app, cursor)
    app.services.invalidationJournal.invalidateAll()
    t.match((await asked).json(), { ids: [], reset: true })
  })

  t.test('a cursor that is further behind than the ids that are kept is unknown', async t => {
    const cursor = await cursorNow()
    for (let count = 0; count < 4_096; count += 1) app.services.invalidationJournal.invalidate(`id-${count}`)
    t.equal((await ask(app, cursor)).json().ids.length, 4_096)
    app.services.invalidationJournal.invalidate('id')
    t.match((await ask(app, cursor)).json(), { ids: [], reset: true })
  })

  t.test('while changes may arrive late, there is no answer', async t => {
    const cursor = await cursorNow()
    const late = askOnce(app, cursor)
    app.services.invalidationJournal.setFeedLate(true)
    globalErrorOf(t, await late, 503)
    app.services.invalidationJournal.setFeedLate(false)
    t.equal((await ask(app, cursor)).statusCode, 200, 'nothing was missed')
  })

  t.test('it needs tokens:introspect, and ends with its key', async t => {
    const newKey = async (scopes: string[]) => {
      const response = await call(app, 'POST', '/admin/keys', { name: 'A verifier', scopes }, asAdmin)
      return response.json()
    }
    const other = await newKey(['users:read'])
    globalErrorOf(t, await ask(app, '', { 'x-admin-key': other.adminKey }), 403)
    globalErrorOf(t, await ask(app, '', {}), 401)
    const { adminKey, key } = await newKey(['tokens:introspect'])
    const headers = { 'x-admin-key': adminKey }
    const { cursor } = (await ask(app, '', headers)).json()
    const asked = ask(app, cursor, headers)
    await call(app, 'DELETE', `/admin/keys/${key.id}`, undefined, asAdmin)
    globalErrorOf(t, await asked, 401)
  })

  t.test('bad input is 400', async t => {
    for (const after of [
      'x',
      `${OTHER},`,
      `${OTHER};`,
      'a:-1',
      `${OTHER}1234567890123456`,
      `${OTHER},`.repeat(65),
    ])
      errorsAt(t, await ask(app, after), 400, ['after'], after)
    const query = '/admin/invalidations?since=1'
    errorsAt(t, await app.inject({ url: query, headers: asAdmin }), 400, ['since'])
  })

  t.test('a change on another instance is in the answers of this one', async t => {
    const DATABASE_URL = await newDatabase(t)
    if (DATABASE_URL.startsWith('sqlite:')) return
    const [one, two] = [await build(t, { env: { DATABASE_URL } }), await build(t, { env: { DATABASE_URL } })]
    const user = await signUp(one)
    const { cursor } = (await ask(two)).json()
    await updateUser(one, user.id, { disabled: true })
    t.match((await ask(two, cursor)).json().ids, [user.id])
  })
})
