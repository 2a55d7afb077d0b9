/** Events have the client address even if the client disconnected at once (docs/design.md, "Account life cycle"). */
import { type AddressInfo, connect } from 'node:net'
import t from 'tap'
import { allEvents } from '../support/admin-routes.ts'
import { signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { until } from '../support/until.ts'

/** Milliseconds. */
const LIMIT = 10_000

await onEnginesOfRun(t, async (t, { build }) => {
  const reached = Promise.withResolvers<void>()
  const app = await build(t, {
    extend: app =>
      app.addHook('preHandler', async ({ raw }) => {
        if (raw.headers['x-hangs-up'] === undefined) return
        reached.resolve()
        await new Promise(resolve => raw.socket.once('close', resolve))
      }),
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo

  t.test('a change whose client disconnected records the client address', async t => {
    const { id, token } = await signUp(app)
    const body = '{"firstName":"Gone"}'
    const socket = connect(port, '127.0.0.1')
    socket.write(
      `PUT /account HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nX-Hangs-Up: yes\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    await reached.promise
    // A client that half-closes may still read, and gets its response.
    socket.resetAndDestroy()
    const changes = () => allEvents(app, { userId: id, type: 'user.changed' })
    const [event] = await until(changes, found => found.length === 1, LIMIT)
    t.equal(event?.ip, '127.0.0.1')
  })
})
