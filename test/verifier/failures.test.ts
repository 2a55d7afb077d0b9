/** The verifier beside a service that refuses, is silent, late, or gone. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { createVerifier, type VerifierError, type VerifierOptions } from '../../verifier/exports.ts'
import type { Context } from '../support/build.ts'

type Respond = (request: IncomingMessage, body: string) => Promise<object | number>

const INSTANCE = '1b4e28ba-2fa1-4c6e-9d2f-0c8a5f1f3c11'
const USER = { active: true, sub: 'u', scope: '', roles: [] }

/** A service. A response with another status is a number. */
const serve = async (t: Context, respond: Respond, options: Partial<VerifierOptions> = {}) => {
  const requests: string[] = []
  const server = createServer(async (request: IncomingMessage, response: ServerResponse) => {
    let body = ''
    for await (const chunk of request) body += chunk
    requests.push(`${request.method} ${request.url}`)
    const result = await respond(request, body)
    response.statusCode = typeof result === 'number' ? result : 200
    response.end(JSON.stringify(result))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const errors: VerifierError[] = []
  const verifier = createVerifier({
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/auth/`,
    adminKey: 'a key',
    onError: error => errors.push(error),
    ...options,
  })
  t.teardown(() => {
    verifier.close()
    server.closeAllConnections()
    server.close()
  })
  return { verifier, requests, errors }
}

/** Responses of a service that works, where another one is not given. */
const working =
  (
    other: (request: IncomingMessage, body: string) => Promise<object | number | null> = async () => null,
  ): Respond =>
  async (request, body) => {
    const given = await other(request, body)
    if (given !== null) return given
    if (request.method === 'POST') return { results: JSON.parse(body).tokens.map(() => USER) }
    const isKnown = request.url?.includes(INSTANCE)
    if (isKnown) await sleep(200)
    return { cursor: `${INSTANCE}:1`, ids: [], reset: !isKnown }
  }

t.test('a wrong key is one clear error, and no storm of repetitions', async t => {
  for (const status of [401, 403]) {
    const { verifier, requests, errors } = await serve(t, async () => status)
    await t.rejects(verifier.verify('a'), { name: 'VerifierError', status })
    for (let count = 0; count < 1_000; count += 1) await verifier.verify(`${count}`).catch(() => null)
    await sleep(500)
    t.ok(requests.length <= 2, `${requests}`)
    t.ok(errors.length <= 2)
    t.match(errors[0]?.message, status === 401 ? /refuses the admin key/ : /tokens:introspect/)
  }
})

t.test('a service that is gone fails closed, with few attempts', async t => {
  const verifier = createVerifier({ baseUrl: 'http://127.0.0.1:9', adminKey: 'x' })
  t.teardown(() => verifier.close())
  await t.rejects(verifier.verify('a'), /cannot be reached/)
  for (const end = Date.now() + 1_000; Date.now() < end; await sleep(1))
    await verifier.verify('a').catch(() => null)
  t.ok(verifier.statistics.failures < 20, String(verifier.statistics.failures))
})

t.test(
  'kept tokens end a second after the last poll that was answered was sent, or later if wanted',
  async t => {
    for (const [maxStaleness, stillAccepts] of [
      [undefined, false],
      [60_000, true],
    ] as const) {
      let isSilent = false
      const silent = new Promise<never>(() => undefined)
      const { verifier } = await serve(
        t,
        working(async () => (isSilent ? silent : null)),
        {
          ...(maxStaleness !== undefined && { maxStaleness }),
        },
      )
      await sleep(3_000)
      await verifier.verify('a')
      isSilent = true
      await sleep(1_300)
      const found = await verifier.verify('a').catch(() => 'refused')
      t.same(found, stillAccepts ? USER : 'refused')
    }
  },
)

t.test('a result that arrives a second after its request was sent is not used', async t => {
  const { verifier } = await serve(
    t,
    working(async ({ method }) => {
      if (method === 'POST') await sleep(1_200)
      return null
    }),
  )
  await t.rejects(verifier.verify('a'), /no response within 1000 ms/)
})

t.test('a result is not kept if its user was named since it was asked for, or lately', async t => {
  let isNamed = false
  const { verifier, requests } = await serve(
    t,
    working(async ({ method, url }) => {
      if (method === 'GET' && isNamed && url?.includes(INSTANCE)) {
        isNamed = false
        return { cursor: `${INSTANCE}:2`, ids: ['u'], reset: false }
      }
      if (method === 'POST') await sleep(100)
      return null
    }),
  )
  await sleep(3_000)
  isNamed = true
  await sleep(300)
  const count = () => requests.filter(request => request.startsWith('POST')).length
  t.same(await verifier.verify('a'), USER)
  t.same(await verifier.verify('a'), USER)
  t.equal(count(), 2, 'not kept')
  await sleep(2_200)
  t.same(await verifier.verify('a'), USER)
  t.same(await verifier.verify('a'), USER)
  t.equal(count(), 3, 'kept')
})

t.test('one request for one token, and a path of a host', async t => {
  const { verifier, requests } = await serve(t, working())
  await Promise.all(Array.from({ length: 50 }, () => verifier.verify('a')))
  t.same(
    requests.filter(request => request.startsWith('POST')),
    ['POST /auth/admin/introspect'],
  )
})

t.test('cursors of several processes are sent together', async t => {
  const other = INSTANCE.replace('1', '2')
  let polls = 0
  const { requests } = await serve(
    t,
    working(async ({ method }) => {
      polls += 1
      await sleep(20)
      return method === 'GET'
        ? { cursor: `${polls % 2 ? INSTANCE : other}:${polls}`, ids: [], reset: false }
        : null
    }),
  )
  await sleep(600)
  t.match(requests[3], new RegExp(`after=${other}:2,${INSTANCE}:3$`))
})

t.test('after close() nothing is verified', async t => {
  const { verifier, errors } = await serve(t, working())
  await verifier.verify('a')
  verifier.close()
  await t.rejects(verifier.verify('a'), /closed/)
  await sleep(100)
  t.same(errors, [])
})
