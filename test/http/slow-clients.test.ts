/** Slow clients are disconnected in bounded time: 5 s for the headers, 10 s for the request (RFC 9110 §15.5.9). */
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import t from 'tap'
import { build } from '../support/build.ts'
import { globalErrorOf } from '../support/error-response.ts'
import { parseResponse } from '../support/process.ts'

const app = await build(t)
await app.listen({ port: 0, host: '127.0.0.1' })
const { port } = app.server.address() as AddressInfo

/** Milliseconds between two bytes of a slow client: short enough to avoid the idle timeout. */
const DRIP = 250
/** Seconds until an open connection counts as never closed. */
const DEADLINE = 30

/** Sends `start` at once, then byte by byte until the service closes. @returns everything that it sent. */
const drip = async (start: string, dripped: string): Promise<string> => {
  const socket = connect(port, '127.0.0.1')
  let response = ''
  socket.on('data', chunk => {
    response += chunk
  })
  socket.on('error', () => undefined)
  socket.write(start)
  const closed = once(socket, 'close', { signal: AbortSignal.timeout(DEADLINE * 1000) })
  const timer = setInterval(() => dripped !== '' && socket.writable && socket.write(dripped), DRIP)
  try {
    await closed
  } catch {
    response = `still open after ${DEADLINE} s: ${response}`
  } finally {
    clearInterval(timer)
    socket.destroy()
  }
  return response
}

const HEAD = 'POST /account/sign-in HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n'

const SLOW = {
  'headers byte by byte': [`${HEAD}X-A: `, 'a'],
  'headers field by field': [HEAD, 'X-A: a\r\n'],
  'headers that stop': [HEAD, ''],
  'a request line that stops': ['GET /hea', ''],
  'a body byte by byte': [`${HEAD}Content-Length: 1000\r\n\r\n{`, ' '],
  'a body that stops': [`${HEAD}Content-Length: 1000\r\n\r\n{"email"`, ''],
  'a body that never starts': [`${HEAD}Content-Length: 1000\r\n\r\n`, ''],
  'chunks byte by byte': [`${HEAD}Transfer-Encoding: chunked\r\n\r\n`, '1\r\n \r\n'],
  'a chunk that stops': [`${HEAD}Transfer-Encoding: chunked\r\n\r\n5\r\n{`, ''],
  'a slow body to an unknown route': ['POST /nope HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{', ' '],
} as const

t.test('slow headers and slow bodies end with 408', { jobs: 10 }, async t => {
  for (const [title, [start, dripped]] of Object.entries(SLOW))
    t.test(title, async t => {
      const raw = await drip(start, dripped)
      t.notMatch(raw, /^still open/, 'ended')
      const statuses = [...raw.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(match => Number(match[1]))
      if (title.includes('unknown route')) return t.strictSame(statuses, [404], 'one request, one response')
      const { status, headers, body } = parseResponse(raw)
      globalErrorOf(t, { statusCode: status, headers, body }, 408, title)
      return t.equal(headers.connection, 'close', 'the connection ends')
    })
  t.test('other clients are served meanwhile', async t => {
    t.equal((await fetch(`http://127.0.0.1:${port}/health`)).status, 200)
  })
})
