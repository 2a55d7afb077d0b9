/** Requests of the service to other servers reach public addresses only, unless configuration allows a host (docs/design.md, "Webhooks"). */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import t from 'tap'
import { HttpClient, HttpRequestError } from '#base/http-client/http-client'
import { isPublicAddress, type ResolveHost } from '#base/http-client/public-addresses'
import { build, type Context, logCapture } from '../support/build.ts'
import { until } from '../support/until.ts'
import { allowing, asRoot, attemptsOf, createWebhook, receiver } from '../support/webhook-receiver.ts'

const WAIT = 20_000

/** Spellings of addresses that are not public, as hosts of URLs. */
const PRIVATE_HOSTS = [
  ...['127.0.0.1', '127.1', '0x7f000001', '2130706433', '017700000001', '127.0.0.1.', '0.0.0.0', '0'],
  ...['10.1.2.3', '172.16.0.1', '192.168.1.1', '100.64.0.1', '169.254.169.254', '168.63.129.16'],
  ...['192.0.2.1', '198.18.0.1', '203.0.113.9', '224.0.0.1', '240.0.0.1', '255.255.255.255', '192.88.99.1'],
  ...['[::1]', '[::]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::127.0.0.1]', '[64:ff9b::7f00:1]'],
  ...[
    '[64:ff9b:1::7f00:1]',
    '[2002:7f00:1::]',
    '[2001::1]',
    '[fd00::1]',
    '[fe80::1]',
    '[fec0::1]',
    '[ff02::1]',
  ],
  ...['[2001:db8::1]', '[100::1]', '[::ffff:0:127.0.0.1]', '[fd00:ec2::254]', '[5f00::1]', '[e000::1]'],
  ...['①②⑦.0.0.1', '127。0。0。1'],
]

const PUBLIC_ADDRESSES = ['1.1.1.1', '2606:4700:4700::1111', '64:ff9b::101:101', '::ffff:1.1.1.1']

const request = { method: 'POST', headers: {}, body: '{}', timeLimit: 5_000, maxBytes: 1_000 } as const

const failureOf = async (work: Promise<unknown>): Promise<string> => {
  try {
    await work
    return 'none'
  } catch (error) {
    return error instanceof HttpRequestError ? error.failure : String(error)
  }
}

/** A server that counts connections: none may be opened. */
const counter = async (t: Context) => {
  let connections = 0
  const server = createTcpServer(socket => {
    connections += 1
    socket.destroy()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return { port: (server.address() as AddressInfo).port, count: () => connections }
}

const client = (t: Context, resolve?: ResolveHost, allowedHosts: readonly string[] = []) => {
  const opened = new HttpClient({ allowedHosts, maxConnections: 2, resolve })
  t.teardown(() => opened.close())
  return opened
}

const v4 = (address: string) => ({ address, family: 4 })

t.test('W1: an address that is not public is refused at creation, in every spelling', async t => {
  const app = await build(t)
  for (const host of [...PRIVATE_HOSTS, 'localhost', 'localhost.', 'LOCALHOST']) {
    const url = `https://${host}/hook`
    const response = await asRoot(app, { method: 'POST', url: '/admin/webhooks', payload: { url } })
    t.equal(response.statusCode, 400, url)
    t.same(Object.keys(response.json().errors), ['url'], url)
  }
  const list = await asRoot(app, { method: 'GET', url: '/admin/webhooks' })
  t.same(list.json(), { results: [] }, 'nothing is created')
})

t.test('W1: an address that is not public is refused at connection', async t => {
  const { port, count } = await counter(t)
  const requests = client(t)
  for (const host of PRIVATE_HOSTS)
    t.equal(await failureOf(requests.request(new URL(`https://${host}:${port}/`), request)), 'blocked', host)
  // Name servers need not know them.
  for (const host of ['localhost', 'localhost.']) {
    const failure = await failureOf(requests.request(new URL(`https://${host}:${port}/`), request))
    t.ok(['blocked', 'unresolved'].includes(failure), `${host}: ${failure}`)
  }
  t.equal(await failureOf(requests.request(new URL('http://example.com/'), request)), 'blocked', 'no TLS')
  t.equal(count(), 0)
})

t.test('public addresses are allowed, also behind NAT64', async t => {
  for (const address of PUBLIC_ADDRESSES) t.ok(isPublicAddress(address), address)
})

t.test(
  'W2: a name that was public when it was checked, and is private at connection, is refused',
  async t => {
    const { port, count } = await counter(t)
    const answers = [v4('1.1.1.1'), v4('127.0.0.1')]
    const requests = client(t, async () => [answers.shift() ?? v4('127.0.0.1')])
    const url = new URL(`https://rebinding.test:${port}/`)
    await requests.check(url)
    t.equal(await failureOf(requests.request(url, request)), 'blocked')
    t.equal(count(), 0)
  },
)

t.test('W2: the connection uses the address that was checked', async t => {
  const looked: string[] = []
  const requests = client(t, async name => {
    looked.push(name)
    return [v4('192.0.2.1')]
  })
  t.equal(await failureOf(requests.request(new URL('https://pinned.test/'), request)), 'blocked')
  t.same(looked, ['pinned.test'], 'one look-up')
})

t.test('W3: a name with a public and a private address is refused', async t => {
  const { port, count } = await counter(t)
  const mixed = client(t, async () => [v4('1.1.1.1'), v4('127.0.0.1')])
  const url = new URL(`https://mixed.test:${port}/`)
  t.equal(await failureOf(mixed.check(url)), 'blocked')
  t.equal(await failureOf(mixed.request(url, request)), 'blocked')
  const none = client(t, async () => [])
  t.equal(await failureOf(none.request(url, request)), 'blocked')
  t.equal(count(), 0)
})

t.test('a name that cannot be resolved, or not in time, is told apart', async t => {
  const failing = client(t, async () => {
    throw Object.assign(new Error('not found'), { code: 'ENOTFOUND', syscall: 'getaddrinfo' })
  })
  t.equal(await failureOf(failing.check(new URL('https://nowhere.test/'))), 'unresolved')
  t.equal(await failureOf(failing.request(new URL('https://nowhere.test/'), request)), 'unresolved')
  const silent = client(t, () => new Promise(() => undefined))
  const url = new URL('https://silent.test/')
  t.equal(await failureOf(silent.request(url, { ...request, timeLimit: 50 })), 'timeout')
})

t.test(
  'the log says why the host of a new webhook has no address: a name server may have failed',
  async t => {
    const log = logCapture()
    const app = await build(t, {
      logStream: log.stream,
      resolveHost: async () => {
        throw Object.assign(new Error('the name server failed'), { code: 'ESERVFAIL', syscall: 'queryA' })
      },
    })
    const payload = { url: 'https://hooks.test/secret-path' }
    const response = await asRoot(app, { method: 'POST', url: '/admin/webhooks', payload })
    t.equal(response.statusCode, 400)
    const lines = log.records().filter(({ status }) => status === 400)
    t.match(lines, [{ reason: 'the name of the host has no address (ESERVFAIL)' }])
    t.notMatch(log.text(), /hooks\.test|secret-path/)
  },
)

t.test('a service refuses at delivery what became private after the creation', async t => {
  const { port, count } = await counter(t)
  let address = '1.1.1.1'
  const app = await build(t, { resolveHost: async () => [v4(address)] })
  const hook = await createWebhook(app, { url: `https://moved.test:${port}/`, types: ['user.deleted'] })
  address = '127.0.0.1'
  await asRoot(app, { method: 'POST', url: `/admin/webhooks/${hook.id}/ping` })
  const [attempt] = await until(
    () => attemptsOf(app, hook.id),
    attempts => attempts.length > 0,
    WAIT,
  )
  t.match(attempt, { outcome: 'blocked', status: null })
  t.equal(count(), 0)
})

t.test('a host is allowed with its port only', async t => {
  const hook = await receiver(t)
  const other = await receiver(t)
  const app = await build(t, { env: allowing(hook) })
  await createWebhook(app, { url: hook.url })
  const refused = await asRoot(app, { method: 'POST', url: '/admin/webhooks', payload: { url: other.url } })
  t.equal(refused.statusCode, 400)
})

t.test('bytes and time are bounded; a connection is used again, and its reset repeated', async t => {
  let connections = 0
  let requests = 0
  const server = createServer((incoming, response) => {
    requests += 1
    incoming.resume()
    const size = Number(new URL(incoming.url ?? '', 'http://host').searchParams.get('size'))
    response.end('x'.repeat(size))
    if (incoming.url?.includes('last'))
      response.once('finish', () => setImmediate(() => incoming.socket.destroy()))
  })
  server.on('connection', () => {
    connections += 1
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const opened = client(t, undefined, [host])
  const send = (path: string, options = {}) =>
    opened.request(new URL(`http://${host}/${path}`), { ...request, ...options })
  t.equal((await send('?size=1000')).body.length, 1_000)
  t.equal(await failureOf(send('?size=1001')), 'tooLarge')
  t.equal((await send('?size=100000', { cutsBody: true })).body.length, 1_000)
  const before = connections
  for (let count = 0; count < 5; count += 1) await send('?size=1')
  t.ok(connections <= before + 1, `${connections - before} connections for five requests`)
  for (let count = 0; count < 20; count += 1) t.equal((await send('?size=1&last')).status, 200)
  t.ok(requests >= 28)
})

/** @returns the failure of a request to a server that responds with the text, and then stays silent. */
const failureAfter = async (t: Context, text: string): Promise<string> => {
  const server = createTcpServer(socket => {
    socket.on('error', () => undefined).once('data', () => socket.write(text))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return failureOf(client(t, undefined, [host]).request(new URL(`http://${host}/`), request))
}

t.test('a response that changes the protocol is a failed connection at once', async t => {
  const upgrade = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\nConnection: Upgrade\r\n\r\n'
  t.equal(await failureAfter(t, upgrade), 'connection')
})

t.test('informational responses are few', async t => {
  const hint = 'HTTP/1.1 103 Early Hints\r\n\r\n'
  const end = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'
  t.equal(await failureAfter(t, hint.repeat(10) + end), 'none')
  t.equal(await failureAfter(t, hint.repeat(11)), 'connection')
})
