/** Import and export as streams, on both engines (docs/design.md, "OpenAPI and client"). */
import t from 'tap'
import {
  createAdminClient,
  type ExportedUser,
  type ImportedLine,
  isServiceError,
  NetworkError,
} from '../../client/client.ts'
import { createKey } from '../support/admin-keys.ts'
import { ADMIN_KEY, freshEmail } from '../support/build.ts'
import { clientsOf, rejection, scripted } from '../support/clients.ts'
import { onEnginesOfRun } from '../support/engines.ts'

const collect = async <T>(values: AsyncIterable<T>): Promise<T[]> => {
  const all: T[] = []
  for await (const value of values) all.push(value)
  return all
}

const users = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ email: freshEmail(`import-${index}`), firstName: 'Ann' }))

for (const streamsRequests of [true, false])
  t.test(streamsRequests ? 'one streaming request' : 'several requests, as in browsers', t =>
    onEnginesOfRun(t, async (t, { build }) => {
      const app = await build(t)
      const urls: string[] = []
      app.server.on('request', ({ url }) => urls.push(String(url)))
      const { baseUrl } = await clientsOf(app)
      const admin = createAdminClient({ baseUrl, adminKey: ADMIN_KEY, streamsRequests })

      t.test('1,000 users have 1,000 results and a summary, and are exported', async t => {
        const all = users(1_000)
        all[498] = { email: 'wrong', firstName: 'Ann' }
        async function* source() {
          yield* all
        }
        const results = await collect(admin.importUsers(source()))
        t.same(results.at(-1), { status: 'finished', created: 999, exists: 0, failed: 1 })
        t.same(
          results.slice(0, -1).map(({ line }) => line),
          all.map((_, index) => index + 1),
        )
        t.match(results[498], {
          line: 499,
          status: 'failed',
          errors: { email: ['must be a valid e-mail address'] },
        })
        t.equal(urls.splice(0).length, streamsRequests ? 1 : 2)

        const exported = await collect(admin.exportUsers({ passwordHashes: true }))
        t.same(
          exported.map(({ email }) => email),
          all.map(({ email }) => email).filter(email => email !== 'wrong'),
        )
        const ids = results.flatMap(({ id }) => id ?? [])
        t.same(
          exported.map(({ id }) => id),
          ids,
        )
        const again = await collect(admin.importUsers(exported))
        t.match(again.at(-1), { status: 'finished', created: 0, exists: 999, failed: 0 })
        urls.length = 0
      })

      t.test('an empty import', async t => {
        t.same(await collect(admin.importUsers([])), [
          { status: 'finished', created: 0, exists: 0, failed: 0 },
        ])
      })

      t.test('an error of the source is the error of the import', async t => {
        const failure = new Error('the file is damaged')
        const broken = function* () {
          yield* users(3)
          throw failure
        }
        t.equal(await rejection(collect(admin.importUsers(broken()))), failure)
      })

      t.test('a refused import closes its source', async t => {
        let isClosed = false
        const source = function* () {
          try {
            for (;;) yield* users(1)
          } finally {
            isClosed = true
          }
        }
        const { text } = await createKey(app, ['users:read'])
        const reader = createAdminClient({ baseUrl, adminKey: text, streamsRequests })
        t.ok(isServiceError(await rejection(collect(reader.importUsers(source()))), 403))
        t.ok(isClosed)
      })

      t.test('an import is aborted while its source is silent', async t => {
        const controller = new AbortController()
        const reason = new Error('enough')
        const source = async function* () {
          yield* users(1)
          controller.abort(reason)
          await new Promise(() => undefined)
        }
        t.equal(await rejection(collect(admin.importUsers(source(), { signal: controller.signal }))), reason)
      })

      t.test('a reader that stops ends the import and its source', async t => {
        let isClosed = false
        const source = function* () {
          try {
            for (;;) yield* users(1)
          } finally {
            isClosed = true
          }
        }
        let read = 0
        for await (const { status } of admin.importUsers(source())) {
          t.equal(status, 'created')
          read += 1
          if (read === 3) break
        }
        t.ok(isClosed)
      })
    }),
  )

t.test('results arrive while lines are still to come', async t =>
  onEnginesOfRun(t, async (t, { build }) => {
    const { admin } = await clientsOf(await build(t))
    const results: ImportedLine[] = []
    const waiting: (() => void)[] = []
    // Each line is sent only when the line before it has its result.
    const source = async function* () {
      for (const user of users(3)) {
        yield user
        await new Promise<void>(resolve => waiting.push(resolve))
      }
    }
    for await (const result of admin.importUsers(source())) {
      results.push(result)
      waiting.shift()?.()
    }
    t.same(
      results.map(({ status }) => status),
      ['created', 'created', 'created', 'finished'],
    )
  }),
)

t.test('an export is aborted halfway', async t =>
  onEnginesOfRun(t, async (t, { build }) => {
    const { admin } = await clientsOf(await build(t))
    await collect(admin.importUsers(users(2_000)))
    const controller = new AbortController()
    const reason = new Error('enough')
    const exported: ExportedUser[] = []
    const read = async () => {
      for await (const user of admin.exportUsers({}, { signal: controller.signal })) {
        exported.push(user)
        if (exported.length === 10) controller.abort(reason)
      }
    }
    t.equal(await rejection(read()), reason)
    t.ok(exported.length < 2_000, `${exported.length}`)
  }),
)

t.test('streams that break off are errors', async t => {
  const { baseUrl } = await scripted(t, (response, { url }) => {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' })
    if (url === '/admin/users/export?passwordHashes=true') response.end('{"id":"1"}\n{"id"')
    else if (url === '/admin/users/export')
      response.write('{"id":"1"}\n', () => setImmediate(() => response.destroy()))
    else response.end('{"line":1,"status":"created","id":"1"}\n')
  })
  for (const streamsRequests of [true, false]) {
    const admin = createAdminClient({ baseUrl, adminKey: 'k', streamsRequests })
    for (const stream of [
      admin.exportUsers(),
      admin.exportUsers({ passwordHashes: true }),
      admin.importUsers(users(1)),
    ]) {
      const read: unknown[] = []
      const error = await rejection(
        (async () => {
          for await (const line of stream) read.push(line)
        })(),
      )
      t.ok(error instanceof NetworkError, String(error))
      t.match(read, [{ id: '1' }])
    }
  }
})

t.test('a response without line ends is an error before it fills the memory', async t => {
  const closed = Promise.withResolvers<void>()
  const { baseUrl } = await scripted(t, response => {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' })
    const write = (): void => {
      while (!response.destroyed && response.write('x'.repeat(65_536)));
    }
    response.on('drain', write).on('close', closed.resolve)
    write()
  })
  const error = await rejection(collect(createAdminClient({ baseUrl, adminKey: 'k' }).exportUsers()))
  t.ok(error instanceof NetworkError, String(error))
  t.match((error as NetworkError).cause, { message: 'A line is longer than 1048576 characters' })
  await closed.promise
})

t.test('an import that the service stops is an error with its reason', async t => {
  const { baseUrl } = await scripted(t, response =>
    response.end(
      '{"line":1,"status":"created","id":"1"}\n' +
        '{"status":"stopped","created":1,"exists":0,"failed":0,"errors":{"global":["This instance is shutting down"]}}\n',
    ),
  )
  for (const streamsRequests of [true, false]) {
    const admin = createAdminClient({ baseUrl, adminKey: 'k', streamsRequests })
    t.match(await rejection(collect(admin.importUsers(users(2)))), {
      name: 'ServiceError',
      status: 200,
      errors: { global: ['This instance is shutting down'] },
    })
  }
})
