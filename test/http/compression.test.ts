/** Compressed lists and exports (docs/design.md, "Contract"): which responses, by which coding, and that streams keep their pace. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable, type Transform } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { brotliDecompressSync, createBrotliDecompress, createGunzip, gunzipSync } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import { ServiceError } from '#base/errors'
import type { BulkUserStore } from '#core/store/store'
import gatehouse from '../../src/gatehouse.ts'
import { asAdmin, bearer, build, freshEmail, logCapture, signUp } from '../support/build.ts'
import { EXPORT, importAll, NDJSON } from '../support/bulk-users.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { globalErrorOf } from '../support/error-response.ts'
import { hostConfig } from '../support/host.ts'
import { until } from '../support/until.ts'

const DECODE = { br: brotliDecompressSync, gzip: gunzipSync }

type Coding = keyof typeof DECODE

const CODINGS = Object.keys(DECODE) as Coding[]

const importUsers = (app: FastifyInstance, count: number) =>
  importAll(
    app,
    Array.from({ length: count }, () => ({ email: freshEmail(), firstName: 'Ada' })),
  )

/** Names of properties that would be a credential, or part of one. */
const CREDENTIAL = /token|secret|password|code|prefix|^(?:admin)?key$|^private|^uri$|^qr$/i

/** Properties with such names that are none: in events the id of the key; the hash, which comes with the others, makes a response exempt. */
const EXCEPTIONS: Record<string, string[]> = {
  '/account/events': ['adminKey'],
  '/admin/events': ['adminKey'],
  [EXPORT]: ['passwordHash', 'totpSecret', 'recoveryCodes'],
}

/** Every name of a property in a schema. */
const namesIn = (schema: unknown): string[] => {
  if (typeof schema !== 'object' || schema === null) return []
  return Object.entries(schema).flatMap(([keyword, inner]) => [
    ...(keyword === 'properties' ? Object.keys(inner) : []),
    ...namesIn(inner),
  ])
}

await onEnginesOfRun(t, async (t, { build }) => {
  t.test('lists and exports are compressed as the client asks, with the same content', async t => {
    const app = await build(t)
    const { token } = await signUp(app)
    await importUsers(app, 30)
    const routes = {
      '/users?limit=30': bearer(token),
      '/admin/users?limit=30': asAdmin,
      '/admin/events': asAdmin,
      [EXPORT]: asAdmin,
    }
    for (const [url, headers] of Object.entries(routes)) {
      const plain = await app.inject({ url, headers })
      t.equal(plain.statusCode, 200)
      t.equal(plain.headers['content-encoding'], undefined)
      // A list of events can be a stream too.
      const vary = url === '/admin/events' ? 'accept, accept-encoding' : 'accept-encoding'
      t.equal(plain.headers.vary, vary, 'also without a coding')
      for (const coding of CODINGS) {
        const accepting = { url, headers: { ...headers, 'accept-encoding': coding } }
        const compressed = await app.inject(accepting)
        const title = `${coding} ${url}`
        t.equal(compressed.headers['content-encoding'], coding, title)
        t.equal(compressed.headers.vary, vary, title)
        t.equal(String(DECODE[coding](compressed.rawPayload)), plain.body, title)
        t.ok(compressed.rawPayload.length < plain.rawPayload.length / 2, title)
        /** Without those of a single response. */
        const lasting = ({ headers }: typeof plain) => {
          const { date: _date, 'x-request-id': _id, ...rest } = headers
          return rest
        }
        const others = (response: typeof plain) => {
          const { 'content-encoding': _coding, 'content-length': _length, ...rest } = lasting(response)
          return rest
        }
        t.same(others(compressed), others(plain), title)
        const head = await app.inject({ ...accepting, method: 'HEAD' })
        t.equal(head.body, '')
        const { 'transfer-encoding': _framing, ...known } = lasting(compressed)
        t.same(lasting(head), known, `HEAD, ${title}`)
      }
    }
  })
})

t.test('the coding is the one that the client likes best (RFC 9110 §12.5.3)', async t => {
  const app = await build(t)
  const { token } = await signUp(app)
  await importUsers(app, 20)
  const codingFor = async (accepted: string | undefined, limit = 20) => {
    const headers = { ...bearer(token), ...(accepted !== undefined && { 'accept-encoding': accepted }) }
    const response = await app.inject({ url: `/users?limit=${limit}`, headers })
    const coding = response.headers['content-encoding'] as Coding | undefined
    const body = coding === undefined ? response.body : String(DECODE[coding](response.rawPayload))
    t.equal(JSON.parse(body).results.length, limit, String(accepted))
    t.equal(response.headers['content-length'], String(response.rawPayload.length), String(accepted))
    return coding
  }
  const expected: [string | undefined, Coding | undefined][] = [
    [undefined, undefined],
    ['', undefined],
    ['gzip', 'gzip'],
    ['GZip', 'gzip'],
    ['x-gzip', 'gzip'],
    ['br', 'br'],
    ['gzip, deflate, br, zstd', 'br'],
    ['*', 'br'],
    ['gzip;q=1.0, br;q=0.9', 'gzip'],
    ['gzip;q=0.5, br;q=0.5', 'br'],
    ['gzip ; q=0.001', 'gzip'],
    ['gzip;q=0', undefined],
    ['br;q=0, *', 'gzip'],
    ['*;q=0', undefined],
    ['*;q=0, gzip', 'gzip'],
    ['gzip, *;q=0', 'gzip'],
    ['identity', undefined],
    ['identity, gzip', 'gzip'],
    ['identity, gzip;q=0.5', undefined],
    ['gzip;q=0.2, br;q=0, *;q=0.5', undefined],
    ['identity;q=0.5, gzip;q=0.6', 'gzip'],
    ['gzip,identity;q=0.5,x-gzip;q=0.3', 'gzip'],
    ['x-gzip;q=0.3,identity;q=0.5,gzip', 'gzip'],
    ['gzip;q=0, x-gzip', undefined],
    ['gzip;q', undefined],
    ['deflate, zstd, compress', undefined],
    ['gzip;q=2, br;q=-1, x;q', undefined],
    ['gzipp, xgzip, "gzip"', undefined],
    [',, ,gzip,', 'gzip'],
  ]
  for (const [accepted, coding] of expected) t.equal(await codingFor(accepted), coding, String(accepted))

  t.equal(await codingFor('gzip', 1), undefined, 'a small response is not compressed')
  t.equal(await codingFor('gzip, identity;q=0', 1), 'gzip', 'unless the client refuses it so')
  t.equal(await codingFor('br, *;q=0', 1), 'br')
  t.equal(await codingFor('identity;q=0'), undefined, 'no coding is acceptable: as if it had not asked')
})

t.test('no response with a token, a secret or a hash can be compressed', async t => {
  const app = await build(t)
  const compressed = app.routeTable.filter(({ options }) => options.config?.compress === true)
  t.same([...new Set(compressed.map(({ url }) => url))].sort(), [
    '/account/events',
    '/account/sessions',
    '/admin/events',
    '/admin/users',
    '/admin/users/export',
    '/users',
  ])
  for (const { url, methods, options } of compressed) {
    t.ok(
      methods.every(method => method === 'GET' || method === 'HEAD'),
      url,
    )
    const names = namesIn((options.schema?.response as Record<string, unknown> | undefined)?.[200])
    t.ok(names.includes('results') || names.includes('email'), 'the check sees the schema')
    const credentials = names.filter(name => CREDENTIAL.test(name) && name !== 'nextCursor')
    t.same([...new Set(credentials)], EXCEPTIONS[url] ?? [], url)
  }
  const issued = app.routeTable.filter(({ options }) =>
    namesIn(options.schema?.response).some(name => ['accessToken', 'token', 'adminKey'].includes(name)),
  )
  t.ok(issued.length >= 6, 'the check finds the routes that issue credentials')

  await importUsers(app, 20)
  const headers = { ...asAdmin, 'accept-encoding': 'br, gzip' }
  const hashes = await app.inject({ url: `${EXPORT}?passwordHashes=true`, headers })
  t.equal(hashes.headers['content-encoding'], undefined)
  t.equal(hashes.headers['cache-control'], 'no-store, no-transform', 'a proxy does not compress it either')
  t.match(hashes.body, /^\{"id":/)
})

t.test('routes that do not declare it are as before', async t => {
  const app = await build(t, {
    extend: app => app.get('/large', async () => ({ text: 'a'.repeat(5_000) })),
  })
  const { token } = await signUp(app)
  const headers = { ...bearer(token), 'accept-encoding': 'br, gzip' }
  for (const url of ['/account', '/large', '/account/api-keys', '/health']) {
    const response = await app.inject({ url, headers })
    t.equal(response.statusCode, 200, url)
    t.equal(response.headers['content-encoding'], undefined, url)
    t.equal(response.headers.vary, undefined, url)
  }
})

t.test('a route that is not a GET cannot declare it', async t => {
  const extend = (app: FastifyInstance) =>
    app.post('/large', { config: { compress: true } }, async () => ({ text: 'a' }))
  await t.rejects(build(t, { extend }), {
    message: /^POST \/large declares compress, but only GET routes may/,
  })
})

t.test('errors, encoded responses, ETags and no-transform stay as they are', async t => {
  const text = 'a'.repeat(5_000)
  const fails = async (): Promise<never> => {
    throw new Error(text)
  }
  const app = await build(t, {
    extend: app => {
      const config = { compress: true } as const
      app.get('/error', { config }, fails)
      app.get('/encoded', { config }, async (_request, reply) =>
        reply.header('content-encoding', 'zstd').send(text),
      )
      app.get('/tagged', { config }, async (_request, reply) => reply.header('etag', '"1"').send(text))
      app.get('/created', { config }, async (_request, reply) => reply.code(201).send(text))
      app.get('/exempt', { config }, async (_request, reply) =>
        reply.header('cache-control', 'private, no-transform').send(text),
      )
      app.get('/empty', { config }, async (_request, reply) => reply.send())
      app.get('/buffer', { config }, async (_request, reply) => reply.send(Buffer.from(text)))
      app.get('/plain', { config }, async () => text)
      app.get('/destroyed', { config }, (_request, reply) => {
        const source = new Readable({ read: () => source.destroy() })
        return reply.send(source)
      })
      app.get('/late-error', { config }, (_request, reply) =>
        reply.send(
          new Readable({
            read() {
              this.destroy(new ServiceError('storeUnavailable'))
            },
          }),
        ),
      )
    },
  })
  const headers = { 'accept-encoding': 'gzip' }
  for (const url of ['/encoded', '/tagged', '/created', '/exempt', '/buffer']) {
    const response = await app.inject({ url, headers })
    t.equal(response.headers['content-encoding'], url === '/encoded' ? 'zstd' : undefined, url)
    t.equal(response.body, text, url)
  }
  t.equal((await app.inject({ url: '/plain', headers })).headers['content-encoding'], 'gzip')
  t.match(await app.inject({ url: '/empty', headers }), { statusCode: 200, body: '' })
  globalErrorOf(t, await app.inject({ url: '/error', headers }), 500)
  globalErrorOf(
    t,
    await app.inject({ url: '/destroyed', headers }),
    500,
    'a stream that ends without its end',
  )
  const late = await app.inject({ url: '/late-error', headers })
  globalErrorOf(t, late, 503, 'a stream that fails before its first byte')
  t.equal(late.headers['content-encoding'], undefined)
})

/** What follows the first page of an export. */
const afterFirstPage = (app: FastifyInstance, next: BulkUserStore['exportUsers']): void => {
  const store = app.services.storage.bulkUsers as { exportUsers: BulkUserStore['exportUsers'] }
  const real = store.exportUsers
  store.exportUsers = after => (after === null ? real(after) : next(after))
}

const openExport = async (t: Test, app: FastifyInstance, coding: Coding): Promise<IncomingMessage> => {
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const headers = { ...asAdmin, 'accept-encoding': coding }
  const sent = request({ port, path: EXPORT, headers }).end()
  sent.on('error', () => undefined)
  const [response] = await once(sent, 'response')
  t.equal(response.headers['content-encoding'], coding)
  return response
}

const decoder = (coding: Coding): Transform => (coding === 'br' ? createBrotliDecompress() : createGunzip())

for (const coding of CODINGS) {
  t.test(`a slow export arrives batch by batch, ${coding}`, async t => {
    const app = await build(t)
    await importUsers(app, 5)
    const first = await app.services.storage.bulkUsers.exportUsers(null)
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    let pages = 0
    afterFirstPage(app, async () => {
      pages += 1
      await released
      return pages < 3 ? first : []
    })
    const response = await openExport(t, app, coding)
    const decoded = response.pipe(decoder(coding)).setEncoding('utf8')
    let text = ''
    decoded.on('data', chunk => {
      text += chunk
    })
    const lines = () => text.split('\n').length - 1
    while (lines() < 5) await once(decoded, 'data')
    t.equal(lines(), 5, 'the first batch is complete while the second one is not read yet')
    release()
    await once(decoded, 'end')
    t.equal(lines() % 5, 0)
    t.ok(lines() > 5)
  })

  t.test(`an export that fails midway is cut, and logged once, ${coding}`, async t => {
    const logs = logCapture()
    const app = await build(t, { logStream: logs.stream })
    await importUsers(app, 5)
    const { promise: failure, reject: fail } = Promise.withResolvers<never>()
    afterFirstPage(app, () => failure)
    const response = await openExport(t, app, coding)
    await once(response, 'data')
    fail(new ServiceError('storeUnavailable'))
    await t.rejects(once(response, 'end'), { code: 'ECONNRESET' })
    t.equal(logs.records().filter(({ route }) => route === EXPORT).length, 1)
  })

  t.test(`an export keeps the pace of its client, and ends with it, ${coding}`, async t => {
    const logs = logCapture()
    const app = await build(t, { logStream: logs.stream })
    // Random names, which do not compress well.
    await importAll(
      app,
      Array.from({ length: 200 }, () => ({ email: freshEmail(), firstName: crypto.randomUUID() })),
    )
    const first = await app.services.storage.bulkUsers.exportUsers(null)
    let pages = 0
    afterFirstPage(app, async () => {
      pages += 1
      await setImmediate()
      return first
    })
    const ended = once(app.server, 'request').then(([, response]) => once(response, 'close'))
    const response = await openExport(t, app, coding)
    response.pause()
    // Until the buffers of both sides are full, so that compression and export stop.
    let seen = -1
    for (let still = 0; still < 2_000; still = pages === seen ? still + 1 : 0) {
      seen = pages
      await setImmediate()
    }
    t.ok(pages > 0, `${pages} pages without a reader`)
    response.resume()
    while (pages <= seen) await setImmediate()
    response.destroy()
    await ended
    const last = pages
    for (let round = 0; round < 100; round += 1) await setImmediate()
    t.ok(pages <= last + 1, 'nothing is read after the disconnect')
    t.notOk(
      logs.records().some(({ level }) => Number(level) > 30),
      'which is no error',
    )
  })
}

t.test('a stream is released when its client disconnects', async t => {
  let released = false
  async function* endless() {
    try {
      for (;;) {
        yield crypto.randomUUID().repeat(100)
        await setImmediate()
      }
    } finally {
      released = true
    }
  }
  const app = await build(t, {
    extend: app =>
      app.get('/endless', { config: { compress: true } }, (_request, reply) =>
        reply.send(Readable.from(endless())),
      ),
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const sent = request(`${url}/endless`, { headers: { 'accept-encoding': 'gzip' } }).end()
  sent.on('error', () => undefined)
  const [response] = await once(sent, 'response')
  await once(response, 'data')
  sent.destroy()
  await until(
    () => released,
    done => done,
    10_000,
  )
  t.ok(released)
})

t.test('a compressed import is 415 and names what is accepted', async t => {
  const app = await build(t)
  const response = await app.inject({
    method: 'POST',
    url: '/admin/users/import',
    headers: { ...asAdmin, ...NDJSON, 'content-encoding': 'gzip' },
    payload: '{}',
  })
  globalErrorOf(t, response, 415)
  t.equal(response.headers['accept-encoding'], 'identity')
  t.match(response.body, /Content-Encoding/)
})

t.test('a host that compresses everything does not compress twice', async t => {
  const config = hostConfig(t)
  const host = Fastify()
  t.teardown(() => host.close())
  // As @fastify/compress does it, for every route.
  host.addHook('onRoute', route => {
    route.onSend = [route.onSend ?? []].flat().concat(async (_request, reply, payload) => {
      if (!reply.hasHeader('content-encoding')) reply.header('content-encoding', 'x-host')
      return payload
    })
  })
  await host.register(gatehouse, { prefix: '/auth', config })
  const headers = { ...asAdmin, 'accept-encoding': 'gzip, identity;q=0' }
  const response = await host.inject({ url: '/auth/admin/users', headers })
  t.equal(response.headers['content-encoding'], 'gzip')
  t.same(JSON.parse(String(gunzipSync(response.rawPayload))).results, [])
})
