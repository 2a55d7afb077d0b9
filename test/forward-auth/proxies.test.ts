/** The configurations in `examples/forward-auth/`, with the real proxies. */
import { spawn, spawnSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { freePort } from '../../scripts/postgres-server.ts'
import { bearer, build, type Context, cookie, signUp, temporaryFolder, updateUser } from '../support/build.ts'
import { until } from '../support/until.ts'

const EXAMPLE = join(import.meta.dirname, '..', '..', 'examples', 'forward-auth')

/** By program: its arguments, in the folder of the example. */
const PROXIES: Readonly<Record<string, (folder: string) => readonly string[]>> = {
  nginx: folder => ['-p', folder, '-c', join(folder, 'nginx.conf'), '-g', 'daemon off; pid nginx.pid;'],
  caddy: folder => ['run', '--config', join(folder, 'Caddyfile'), '--adapter', 'caddyfile'],
  haproxy: () => ['-db', '-f', 'haproxy.cfg'],
}

const LARGE = randomBytes(5_000_000)

/** What the application behind the proxy has received. */
interface Received {
  readonly headers: IncomingHttpHeaders
  readonly length: number
}

/** An application that responds with what it received, and echoes what follows an upgrade. */
const startApplication = async (t: Context) => {
  let requests = 0
  const server = createServer(async (request, response) => {
    requests += 1
    let length = 0
    for await (const chunk of request) length += chunk.length
    response.end(JSON.stringify({ headers: request.headers, length } satisfies Received))
  })
  server.on('upgrade', (request, socket) => {
    requests += 1
    socket.on('error', () => undefined)
    const accept = createHash('sha1')
      .update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      .digest('base64')
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\nX-User: ${request.headers['remote-user']}\r\n\r\n`,
    )
    socket.pipe(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return { port: (server.address() as AddressInfo).port, requests: () => requests }
}

interface Ports {
  readonly service: number
  readonly application: number
  readonly proxy: number
}

const startProxy = async (
  t: Context,
  program: string,
  { service, application, proxy }: Ports,
): Promise<void> => {
  const folder = temporaryFolder(t)
  cpSync(EXAMPLE, folder, { recursive: true })
  for (const name of readdirSync(folder)) {
    const file = join(folder, name)
    const text = readFileSync(file, 'utf8')
    writeFileSync(
      file,
      text
        .replaceAll('127.0.0.1:3000', `127.0.0.1:${service}`)
        .replaceAll('127.0.0.1:4300', `127.0.0.1:${application}`)
        .replaceAll('127.0.0.1:8080', `127.0.0.1:${proxy}`),
    )
  }
  const child = spawn(program, PROXIES[program]?.(folder) ?? [], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', chunk => {
      output += chunk
    })
  t.teardown(async () => {
    child.kill('SIGTERM')
    if (child.exitCode === null) await once(child, 'exit')
  })
  const isListening = () =>
    new Promise<boolean>(resolve => {
      const socket = connect(proxy, '127.0.0.1')
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
      socket.once('connect', () => socket.destroy())
    })
  if (!(await until(isListening, Boolean, 20_000))) throw new Error(`${program} does not start:\n${output}`)
}

interface Sent {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer
}

const send = async (port: number, path: string, { method = 'GET', headers = {}, body }: Sent = {}) => {
  const request = httpRequest({ port, path, method, headers, host: '127.0.0.1', agent: false })
  request.end(body)
  const [response] = await once(request, 'response')
  let text = ''
  for await (const chunk of response) text += chunk
  return { status: response.statusCode as number, headers: response.headers as IncomingHttpHeaders, text }
}

const receivedBy = ({ text }: { readonly text: string }): Received => JSON.parse(text)

/** Asks for a WebSocket, and sends bytes on it. @returns what comes back. */
const upgrade = async (port: number, headers: Readonly<Record<string, string>>): Promise<string> => {
  const socket = connect(port, '127.0.0.1')
  const fields = Object.entries({
    host: `127.0.0.1:${port}`,
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    'sec-websocket-version': '13',
    ...headers,
  })
  socket.write(
    `GET /socket HTTP/1.1\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`,
  )
  let text = ''
  let isSent = false
  socket.setTimeout(5_000, () => socket.destroy())
  socket.on('error', () => undefined)
  socket.on('data', chunk => {
    text += chunk
    if (text.includes('ping')) socket.destroy()
    else if (!isSent && text.includes('\r\n\r\n')) {
      isSent = true
      if (text.startsWith('HTTP/1.1 101')) socket.write('ping')
      else socket.destroy()
    }
  })
  await once(socket, 'close')
  return text
}

const startService = async (t: Context, proxy: number): Promise<{ app: FastifyInstance; port: number }> => {
  const app = await build(t, {
    env: {
      FORWARD_AUTH: 'on',
      TRUST_PROXY: 'loopback',
      PUBLIC_URL: 'http://auth.example.test',
      RETURN_ORIGINS: `http://127.0.0.1:${proxy}`,
    },
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  return { app, port: (app.server.address() as AddressInfo).port }
}

for (const program of Object.keys(PROXIES)) {
  const { error } = spawnSync(program, [program === 'caddy' ? 'version' : '-v'])
  const skip = error === undefined ? false : `${program} is not installed`
  t.test(program, { skip }, async t => {
    const proxy = await freePort()
    const { app, port: service } = await startService(t, proxy)
    const application = await startApplication(t)
    await startProxy(t, program, { service, application: application.port, proxy })
    const user = await signUp(app, { firstName: 'Zoë' })
    await updateUser(app, user.id, { roles: ['editor'] })

    t.test('the application learns who sends a request, and no credentials', async t => {
      const credentials: readonly Readonly<Record<string, string>>[] = [
        bearer(user.token),
        { cookie: `theme=dark; ACCESS_TOKEN=${user.token}; size=2` },
        { cookie: `ACCESS_TOKEN=${user.token}` },
      ]
      for (const headers of credentials) {
        const response = await send(proxy, '/a?b=1', { headers })
        t.equal(response.status, 200, response.text)
        const { headers: received } = receivedBy(response)
        t.match(received, { 'remote-user': user.id, 'remote-name': 'Zo%C3%AB', 'remote-groups': 'editor' })
        t.notOk(received['remote-email'], 'it is not confirmed')
        t.notOk(received.authorization)
        t.notMatch(JSON.stringify(received), user.token)
        if (headers.cookie?.includes('theme')) t.match(received.cookie, /theme=dark.*size=2/)
      }
      const twice = { cookie: `a=1; ACCESS_TOKEN=${user.token}; b=2; ACCESS_TOKEN=${user.token}` }
      t.notMatch((await send(proxy, '/', { headers: twice })).text, user.token)
    })

    t.test('what clients send under these names never passes', async t => {
      const plain = await signUp(app)
      const names = ['User', 'Email', 'Name', 'Groups'].flatMap(name => [
        `Remote-${name}`,
        `Remote_${name}`,
        `REMOTE-${name}`,
      ])
      for (const headers of [cookie(plain.token), {}]) {
        const forged = Object.fromEntries(names.map(name => [name, 'forged']))
        const response = await send(proxy, '/', { headers: { ...forged, ...headers } })
        t.notMatch(response.text, /forged/)
        t.equal(response.status, 'cookie' in headers ? 200 : 401)
      }
    })

    t.test('a browser without a session is led to sign in and back, a program gets 401', async t => {
      const before = application.requests()
      const browser = { accept: 'text/html', host: `127.0.0.1:${proxy}` }
      const response = await send(proxy, '/a?b=1&c=%2F', { headers: browser })
      t.equal(response.status, 303, response.text)
      const target = `http://127.0.0.1:${proxy}/a?b=1&c=%2F`
      t.equal(
        response.headers.location,
        `http://auth.example.test/sign-in?return_to=${encodeURIComponent(target)}`,
      )
      t.equal((await send(proxy, '/a')).status, 401)
      t.equal((await send(proxy, '/a', { headers: bearer('x') })).status, 401)
      t.equal(application.requests(), before, 'nothing reaches the application')
    })

    t.test('WebSockets and large bodies pass for users alone', async t => {
      const opened = await upgrade(proxy, cookie(user.token))
      t.match(opened, /^HTTP\/1\.1 101/)
      t.match(opened, user.id)
      t.match(opened, /ping$/)
      t.match(await upgrade(proxy, {}), /^HTTP\/1\.1 401/)
      const large = { method: 'POST', body: LARGE, headers: { 'content-type': 'application/octet-stream' } }
      const response = await send(proxy, '/', {
        ...large,
        headers: { ...large.headers, ...cookie(user.token) },
      })
      t.equal(receivedBy(response).length, LARGE.length)
    })

    t.test('while the service is down, everything is refused', async t => {
      const before = application.requests()
      await app.close()
      const { status } = await send(proxy, '/', { headers: cookie(user.token) })
      t.ok(status >= 500, String(status))
      t.equal(application.requests(), before)
    })
  })
}
