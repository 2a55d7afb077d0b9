/** Thousands of connections may expire at once: the event loop serves other clients in between (docs/design.md, "Hot path"). */
import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import t from 'tap'
import { build } from '../support/build.ts'
import { until } from '../support/until.ts'

const CONNECTIONS = 350
/** As in src/http/socket-errors.ts. */
const AT_ONCE = 50
const LIMIT = 30_000

const app = await build(t)
await app.listen({ port: 0, host: '127.0.0.1' })
const { port } = app.server.address() as AddressInfo

/** Opens connections, and counts a socket event of the server per round of the event loop. */
const open = async (event: 'close' | 'finish') => {
  const clients: Socket[] = []
  const servers: Socket[] = []
  const rounds = new Map<number, number>()
  let round = 0
  let isEnding = false
  /** Rounds without an event do not count: the loop waits in them. */
  const count = (): void => {
    rounds.set(round, (rounds.get(round) ?? 0) + 1)
    if (isEnding) return
    isEnding = true
    setImmediate(() => {
      round += 1
      isEnding = false
    })
  }
  const watch = (socket: Socket): void => {
    servers.push(socket)
    socket.once(event, count)
  }
  app.server.on('connection', watch)
  for (let count = 0; count < CONNECTIONS; count += 1) {
    const client = connect(port, '127.0.0.1')
    client.on('error', () => undefined).resume()
    clients.push(client)
  }
  await Promise.all(clients.map(client => once(client, 'connect')))
  await until(
    () => servers.length,
    count => count === CONNECTIONS,
    LIMIT,
  )
  app.server.off('connection', watch)
  const total = (): number => rounds.values().reduce((sum, count) => sum + count, 0)
  const end = (): void => {
    for (const client of clients) client.destroy()
  }
  return { clients, servers, rounds, total, end }
}

t.test('idle connections are closed fifty at a time', async t => {
  const { servers, rounds, total, end } = await open('close')
  t.teardown(end)
  for (const socket of servers) socket.setTimeout(50)
  t.equal(await until(total, count => count === CONNECTIONS, LIMIT), CONNECTIONS, 'all of them')
  t.ok(Math.max(...rounds.values()) <= AT_ONCE, `in rounds of ${[...rounds.values()]}`)
})

t.test('a connection that is used before its turn is kept', async t => {
  const { clients, servers, total, end } = await open('close')
  t.teardown(end)
  for (const socket of servers) socket.setTimeout(0)
  const last = servers.at(-1) as Socket
  const client = clients.find(({ localPort }) => localPort === last.remotePort) as Socket
  // As if all of them had expired while its request was in transit.
  for (const socket of servers) app.server.emit('timeout', socket)
  last.write('x')
  t.equal(await until(total, count => count === CONNECTIONS - 1, LIMIT), CONNECTIONS - 1)
  t.notOk(last.destroyed)
  t.notOk(client.destroyed)
})

t.test('late requests get their responses fifty at a time', async t => {
  const { rounds, total, end } = await open('finish')
  t.teardown(end)
  t.equal(await until(total, count => count === CONNECTIONS, LIMIT), CONNECTIONS, 'all of them')
  t.ok(Math.max(...rounds.values()) <= AT_ONCE, `in rounds of ${[...rounds.values()]}`)
})
