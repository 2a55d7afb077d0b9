/** Requests with a content type but no body, which many clients send (RFC 9110 §8.3). */
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { ADMIN_KEY, build, signUp } from '../support/build.ts'
import { exchange, parseResponse } from '../support/process.ts'
import { liveRoutes } from '../support/routes.ts'
import { oneOfEach } from '../support/run.ts'

const app = await build(t)
await app.listen({ port: 0, host: '127.0.0.1' })
const { port } = app.server.address() as AddressInfo

/** Milliseconds of silence after which a request counts as unanswered. */
const SILENCE = 5_000

const BODY_METHODS = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])

/** Sends each request as a new user, since some routes end the session. */
const statusOf = async (method: string, url: string, fields: readonly string[]): Promise<number> => {
  const { id, token } = await signUp(app)
  const request = [
    `${method} ${url.replace(':id', id)} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    'Connection: close',
    `Authorization: Bearer ${token}`,
    `X-Admin-Key: ${ADMIN_KEY}`,
    ...fields,
  ]
  return parseResponse(await exchange(port, `${request.join('\r\n')}\r\n\r\n`, SILENCE)).status
}

const ROUTES = oneOfEach(
  liveRoutes(app).filter(({ method }) => BODY_METHODS.has(method)),
  ({ method, gate, hasBody }) => `${method} ${gate} ${hasBody}`,
)

for (const { method, url } of ROUTES) {
  t.test(`${method} ${url} without a body ignores the content type`, async t => {
    const expected = await statusOf(method, url, [])
    t.ok(expected >= 200, `status ${expected}`)
    for (const type of ['application/json', 'text/plain']) {
      for (const length of [[], ['Content-Length: 0']]) {
        const fields = [`Content-Type: ${type}`, ...length]
        t.equal(await statusOf(method, url, fields), expected, fields.join(', '))
      }
    }
  })
}

t.test('an empty chunked body is invalid JSON', async t => {
  const fields = ['Content-Type: application/json', 'Transfer-Encoding: chunked']
  const { token } = await signUp(app)
  const head = `PUT /account HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n`
  const response = await exchange(port, `${head}${fields.join('\r\n')}\r\n\r\n0\r\n\r\n`, SILENCE)
  t.equal(parseResponse(response).status, 400)
})
