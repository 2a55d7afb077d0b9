/** Client addresses behind proxies that write them differently: one spelling everywhere, or null. */
import { once } from 'node:events'
import { request } from 'node:http'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { RATE_LIMITS } from '#core/rate-limits/limits'
import { allEvents } from '../support/admin-routes.ts'
import { bearer, build, freshEmail, logCapture, PASSWORD, temporaryFolder } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { perAddress } from '../support/limits.ts'

const PROXY = '10.0.0.1'

/** The forwarded value, and the resulting address. */
const WRITTEN: Record<string, string | null> = {
  '203.0.113.9': '203.0.113.9',
  '203.0.113.9:5678': '203.0.113.9',
  '::ffff:203.0.113.9': '203.0.113.9',
  '[2001:DB8:0:0::1]:5678': '2001:db8::1',
  'fe80::1%eth0': 'fe80::1',
  unknown: null,
  '<script>alert(1)</script>': null,
}

const signUpFrom = async (app: FastifyInstance, forwarded: string, remoteAddress = PROXY) => {
  const response = await app.inject({
    method: 'POST',
    url: '/account/sign-up',
    remoteAddress,
    headers: { 'x-forwarded-for': forwarded },
    payload: { email: freshEmail(), password: PASSWORD },
  })
  return { status: response.statusCode, body: response.json() }
}

/** Signs in with a wrong password, over a real connection. @returns the status. */
const attemptOver = async (
  to: { readonly port: number } | { readonly socketPath: string },
  forwarded?: string,
): Promise<number | undefined> => {
  const client = request({
    ...to,
    method: 'POST',
    path: '/account/sign-in',
    headers: {
      host: 'gatehouse.test',
      'content-type': 'application/json',
      ...(forwarded !== undefined && { 'x-forwarded-for': forwarded }),
    },
  }).end(JSON.stringify({ email: freshEmail(), password: PASSWORD }))
  const [response] = await once(client, 'response')
  response.resume()
  return response.statusCode
}

await onEnginesOfRun(t, async (t, { build }) => {
  t.test('sessions, events and log lines have one spelling of the client address, or null', async t => {
    const log = logCapture()
    const env = { TRUST_PROXY: PROXY, LOG_LEVEL: 'info' }
    const app = await build(t, { env, logStream: log.stream })
    for (const [forwarded, ip] of Object.entries(WRITTEN)) {
      const { body } = await signUpFrom(app, forwarded)
      const headers = { ...bearer(body.accessToken), 'x-forwarded-for': forwarded }
      const request = { remoteAddress: PROXY, headers }
      const sessions = (await app.inject({ ...request, url: '/account/sessions' })).json()
      t.match(sessions.results, [{ ip }], `session: ${forwarded}`)
      const payload = { firstName: 'Ada' }
      t.equal((await app.inject({ ...request, method: 'PUT', url: '/account', payload })).statusCode, 200)
      const events = await allEvents(app, { userId: body.user.id })
      t.match(events, [{ ip }, { ip }], `events: ${forwarded}`)
      t.equal((await app.inject({ ...request, url: '/nope' })).statusCode, 404)
      t.match(log.records().at(-1), { status: 404, ip }, `log: ${forwarded}`)
    }
    const { body } = await signUpFrom(app, '203.0.113.9', '::ffff:192.0.2.1')
    const [event] = await allEvents(app, { userId: body.user.id })
    t.equal(event?.ip, '192.0.2.1', 'a connection by IPv4 to a socket for both, which no proxy made')
  })
})

t.test('a port gives no fresh rate limit; without an address the connection counts', async t => {
  const app = await build(t, {
    env: { TRUST_PROXY: '10.0.0.0/8', RATE_LIMIT: 'on' },
    rateLimits: {
      ...RATE_LIMITS,
      perAddress: { ...RATE_LIMITS.perAddress, mail: { points: 2, seconds: 60 } },
    },
  })
  const statuses = async (attempts: readonly (readonly [forwarded: string, proxy: string])[]) => {
    const all: number[] = []
    for (const [forwarded, proxy] of attempts) all.push((await signUpFrom(app, forwarded, proxy)).status)
    return all
  }
  const ports = ['203.0.113.9:1', '203.0.113.9:2', '[::ffff:203.0.113.9]:3', '203.0.113.9']
  t.strictSame(await statuses(ports.map(port => [port, '10.0.0.1'])), [201, 201, 429, 429])
  const garbage = ['unknown', 'hidden', '_x', 'unknown'].map(text => [text, '10.0.0.2'] as const)
  t.strictSame(await statuses(garbage), [201, 201, 429, 429], 'garbage of one proxy')
  t.strictSame(await statuses([['unknown', '10.0.0.3']]), [201], 'and of another one')
})

t.test('R3: whatever the left of X-Forwarded-For says, or without it, requests are limited', async t => {
  const limited = (TRUST_PROXY: string) =>
    build(t, {
      env: { TRUST_PROXY, RATE_LIMIT: 'on' },
      rateLimits: { ...RATE_LIMITS, perAddress: perAddress({ 'sign-in': 2 }) },
    })
  const port = async (app: FastifyInstance): Promise<{ port: number }> => ({
    port: Number(new URL(await app.listen({ port: 0, host: '127.0.0.1' })).port),
  })
  const inTurn = async (to: Parameters<typeof attemptOver>[0], values: readonly (string | undefined)[]) => {
    const found = []
    for (const value of values) found.push(await attemptOver(to, value))
    return found
  }
  const strangers = ['198.51.100.1', '198.51.100.2', '2001:db8::1', undefined]
  const LIMITED = [401, 401, 429, 429]

  const direct = await port(await limited('none'))
  t.same(await inTurn(direct, strangers), LIMITED, 'of a client without a proxy')

  const proxied = await port(await limited('loopback'))
  const spoofed = ['', '10.0.0.1, ', '198.51.100.1, ', 'unknown, 127.0.0.1, '].map(
    left => `${left}203.0.113.9`,
  )
  t.same(await inTurn(proxied, spoofed), LIMITED, 'left of the address that the proxy has seen')
  const chain = ['198.51.100.1, 203.0.113.8, 127.0.0.2', '198.51.100.2, 203.0.113.8,127.0.0.1, ::1']
  t.same(await inTurn(proxied, [...chain, ...chain]), LIMITED, 'left of several proxies')
  t.same(
    await inTurn(proxied, [undefined, '', ' ', undefined]),
    LIMITED,
    'the header is absent: the proxy counts',
  )

  for (const TRUST_PROXY of ['none', 'loopback']) {
    const app = await limited(TRUST_PROXY)
    const socketPath = join(temporaryFolder(t), 'http.sock')
    await app.listen({ path: socketPath })
    t.same(await inTurn({ socketPath }, strangers), LIMITED, `a Unix socket, TRUST_PROXY=${TRUST_PROXY}`)
  }
})
