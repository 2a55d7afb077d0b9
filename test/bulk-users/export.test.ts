/** GET /admin/users/export (docs/design.md, "Account life cycle"): every user, in order, at the client's pace. */
import { once } from 'node:events'
import { request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { ServiceError } from '#base/errors'
import type { BulkUserStore } from '#core/store/store'
import { accountStatus, asAdmin, bearer, freshEmail, logCapture, signIn, signUp } from '../support/build.ts'
import { EXPORT, exportAll, importAll } from '../support/bulk-users.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { ADMIN_USER, hasShape } from '../support/response-shapes.ts'

/** What follows the first page: an error of the store, or an endless list. */
const afterFirstPage = (app: FastifyInstance, next: BulkUserStore['exportUsers']): void => {
  const store = app.services.storage.bulkUsers as { exportUsers: BulkUserStore['exportUsers'] }
  const real = store.exportUsers
  store.exportUsers = after => (after === null ? real(after) : next(after))
}

const listen = async (app: FastifyInstance): Promise<number> => {
  await app.listen({ host: '127.0.0.1', port: 0 })
  return (app.server.address() as AddressInfo).port
}

await onEnginesOfRun(t, async (t, { build }) => {
  t.test('an export imported into an empty service restores every user, and they sign in', async t => {
    const [from, to] = [await build(t), await build(t)]
    const people = []
    for (const fields of [{ firstName: 'Ada' }, { lastName: 'Zoë' }, {}])
      people.push(await signUp(from, fields))
    await importAll(from, [
      { email: freshEmail(), createdAt: '2001-02-03T04:05:06.007Z', disabled: true, emailVerified: true },
      { email: freshEmail(), createdAt: '2001-02-03T05:05:06+01:00', updatedAt: '2030-01-01T00:00:00Z' },
    ])
    // 0 in milliseconds, and times before it.
    const early = ['0000-01-01', '1969-12-31', '1970-01-01'].map(day => `${day}T00:00:00.000Z`)
    await importAll(
      from,
      early.map(at => ({ email: freshEmail(), createdAt: at, updatedAt: at, lastRequestAt: at })),
    )
    await accountStatus(from, people[0]?.token ?? '')
    const exported = await exportAll(from, '?passwordHashes=true')
    t.equal(exported.length, 8)
    t.same(
      exported
        .slice(0, 3)
        .map(({ createdAt, updatedAt, lastRequestAt }) => [createdAt, updatedAt, lastRequestAt]),
      early.map(at => [at, at, at]),
    )
    t.match(
      exported.slice(3, 5).map(({ createdAt }) => createdAt),
      ['2001-02-03T04:05:06.000Z', '2001-02-03T04:05:06.007Z'],
    )
    t.match(exported.at(5), { firstName: 'Ada', lastRequestAt: /^2/ }, 'also what is not on disk yet')
    const results = await importAll(to, exported)
    t.strictSame(
      results.slice(0, -1).map(({ line, status, id }) => ({ line, status, id })),
      exported.map(({ id }, index) => ({ line: index + 1, status: 'created', id })),
    )
    t.strictSame(await exportAll(to, '?passwordHashes=true'), exported)
    for (const { email, token } of people) {
      t.equal((await signIn(to, email)).statusCode, 200)
      t.equal(await accountStatus(to, token), 401, 'sessions do not go along')
    }
  })

  t.test('each user is exported once, in order of creation, as AdminUser; hashes on request', async t => {
    const app = await build(t)
    const { token } = await signUp(app)
    const day = 86_400_000
    const users = Array.from({ length: 1_100 }, (_, index) => ({
      email: freshEmail(),
      createdAt: new Date(((index * 7) % 11) * day).toISOString(),
    }))
    await importAll(app, users)
    const exported = await exportAll(app)
    t.equal(new Set(exported.map(({ email }) => email)).size, 1_101)
    const order = exported.map(({ createdAt, id }) => `${createdAt} ${id}`)
    t.ok(order.join() === order.toSorted().join())
    for (const user of [exported[0], exported.at(-1)]) hasShape(t, user ?? {}, ADMIN_USER)
    const hashed = await exportAll(app, '?passwordHashes=true')
    t.strictSame(Object.keys(hashed.at(-1) ?? {}).sort(), [...ADMIN_USER, 'passwordHash'].sort())
    t.notOk('passwordHash' in (hashed[0] ?? {}), 'a user without a password has no hash')
    t.notOk('passwordHash' in ((await exportAll(app, '?passwordHashes=false'))[0] ?? {}))
    const rejected = { url: `${EXPORT}?passwordHashes=1&limit=5`, headers: asAdmin }
    errorsAt(t, await app.inject(rejected), 400, ['limit', 'passwordHashes'])
    globalErrorOf(t, await app.inject({ url: EXPORT, headers: bearer(token) }), 401)
  })

  t.test('an export is a downloadable, uncacheable NDJSON file; HEAD reads no users', async t => {
    const app = await build(t)
    await signUp(app)
    const expected = {
      'content-type': 'application/x-ndjson',
      'content-disposition': 'attachment; filename="users.ndjson"',
      'cache-control': 'no-store',
    }
    const get = await app.inject({ url: EXPORT, headers: asAdmin })
    t.match(get.headers, expected)
    afterFirstPage(app, () => Promise.reject(new Error('HEAD read another page')))
    const head = await app.inject({ method: 'HEAD', url: EXPORT, headers: asAdmin })
    t.match(head.headers, expected)
    t.equal(head.headers['content-length'], undefined)
    t.strictSame([head.statusCode, head.body], [200, ''])
    const elsewhere = await app.inject({ method: 'POST', url: EXPORT, headers: asAdmin })
    t.equal(elsewhere.statusCode, 405)
    t.equal(elsewhere.headers.allow, 'GET, HEAD')
  })

  t.test('no users: an empty response; no store: 503 with the error body', async t => {
    const app = await build(t)
    t.match(await app.inject({ url: EXPORT, headers: asAdmin }), { statusCode: 200, body: '' })
    await app.services.storage.close()
    const response = await app.inject({ url: EXPORT, headers: asAdmin })
    globalErrorOf(t, response, 503)
    t.equal(response.headers['content-disposition'], undefined)
  })

  t.test('an error midway closes the connection, and is logged once (§7.2)', async t => {
    const logs = logCapture()
    const app = await build(t, { logStream: logs.stream })
    await signUp(app)
    const failure = new ServiceError('storeUnavailable', { cause: new Error('the disk is gone') })
    afterFirstPage(app, () => Promise.reject(failure))
    const port = await listen(app)
    const response = await fetch(`http://127.0.0.1:${port}${EXPORT}`, { headers: asAdmin })
    t.equal(response.status, 200)
    await t.rejects(response.text(), 'the half is not taken for the whole')
    const lines = logs.records().filter(({ route }) => route === EXPORT)
    t.match(lines, [{ level: 50, method: 'GET', status: 200, err: { message: 'the disk is gone' } }])
    t.equal(lines.length, 1)
  })

  t.test('pages are read at the pace of the client, and not after it disconnects', async t => {
    const logs = logCapture()
    const app = await build(t, { logStream: logs.stream })
    await importAll(
      app,
      Array.from({ length: 200 }, () => ({ email: freshEmail() })),
    )
    const [first] = [await app.services.storage.bulkUsers.exportUsers(null)]
    let pages = 0
    afterFirstPage(app, async () => {
      pages += 1
      await setImmediate()
      return first
    })
    const port = await listen(app)
    const ended = once(app.server, 'request').then(([, response]) => once(response, 'close'))
    const sent = request({ port, path: EXPORT, headers: asAdmin }).end()
    sent.on('error', () => undefined)
    const [response] = await once(sent, 'response')
    response.pause()
    // The socket buffers of both sides fill, then nothing moves.
    let seen = -1
    for (let still = 0; still < 200; still = pages === seen ? still + 1 : 0) {
      seen = pages
      await setImmediate()
    }
    t.ok(pages > 0 && pages < 1_000, `${pages} pages without a reader`)
    response.resume()
    await once(response, 'data')
    while (pages <= seen) await setImmediate()
    sent.destroy()
    await ended
    const last = pages
    for (let round = 0; round < 100; round += 1) await setImmediate()
    t.ok(pages <= last + 1, 'nothing is read after the disconnect')
    t.strictSame(logs.problems(), [], 'which is no error')
  })
})
