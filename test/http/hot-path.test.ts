/** Caches and shortcuts of the hot path change nothing that a client or operator sees (docs/design.md, "Hot path"). */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { accountStatus, bearer, cookie, logCapture, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { lines, RawConnection } from '../support/raw-http.ts'
import { until } from '../support/until.ts'

/** Milliseconds until a response counts as missing. */
const DEADLINE = 20_000

await onEnginesOfRun(t, async (t, { build }) => {
  const app = await build(t)

  t.test("a cached serialised account equals the schema's serialisation (§4)", async t => {
    const names = { firstName: 'O"Hara \\ \u{1f469} \u{10ffff} </script>', lastName: '\u0130\u00df e\u0301' }
    const { token } = await signUp(app)
    const headers = bearer(token)
    const changed = await app.inject({ method: 'PUT', url: '/account', headers, payload: names })
    for (let time = 0; time < 3; time += 1) {
      const sent = await app.inject({ url: '/account', headers })
      t.strictSame(Object.keys(sent.json()), Object.keys(changed.json()), 'the same fields in the same order')
      t.strictSame({ ...sent.json(), lastRequestAt: null }, { ...changed.json(), lastRequestAt: null })
      t.equal(sent.body, JSON.stringify(sent.json()))
      t.equal(sent.headers['content-type'], changed.headers['content-type'])
    }
  })

  t.test('S2: a cached signature does not authenticate another payload', async t => {
    const [ada, bob] = [await signUp(app), await signUp(app)]
    for (const { token } of [ada, bob]) t.equal(await accountStatus(app, token), 200)
    const [header, , signature] = ada.token.split('.')
    const [, payload] = bob.token.split('.')
    for (let time = 0; time < 2; time += 1) {
      t.equal(await accountStatus(app, `${header}.${payload}.${signature}`), 401)
      t.equal(await accountStatus(app, `${ada.token}.${signature}`), 401)
      t.equal(await accountStatus(app, `x.${signature}`), 401)
      t.equal(await accountStatus(app, ada.token), 200)
    }
  })

  t.test('a cached rejected token affects no other token', async t => {
    const { token } = await signUp(app)
    const status = async (value: string): Promise<number> =>
      (await app.inject({ url: '/account', headers: cookie(value) })).statusCode
    // Characters that share the low byte with those of the token, which no other test has used yet.
    const wide = Array.from(token, character => String.fromCharCode(character.charCodeAt(0) + 0x100)).join('')
    const spellings = [encodeURIComponent(wide), `${token}%20`, `${token}A`, token.toLowerCase()]
    for (const forged of [...spellings, ...spellings]) t.equal(await status(forged), 401)
    t.equal(await status(token), 200)
  })

  t.test('more rejected tokens than fit into the cache are all rejected', async t => {
    const { authenticator } = app.services
    for (let index = 0; index < 20_100; index += 1) {
      if (authenticator.authenticate(`a.b.${index}`) !== null) t.fail('identified')
    }
    t.equal(authenticator.authenticate('a.b.20099'), null)
  })

  for (const env of [{}, { LOG_REQUESTS: 'on' }]) {
    t.test(`the log lines of a request have its id ${JSON.stringify(env)} (§7)`, async t => {
      const capture = logCapture()
      const seen: { id?: string } = {}
      const extend = (app: FastifyInstance): void => {
        app.get('/logs', request => {
          seen.id = request.id
          request.log.debug('below the level')
          request.log.info({ one: 1 }, 'first')
          request.log.child({ two: 2 }).warn('second')
          request.log.level = 'debug'
          request.log.debug(request.log.level)
          return {}
        })
      }
      const app = await build(t, { env, extend, logStream: capture.stream })
      await app.inject('/logs')
      const lines = capture.records().filter(({ msg }) => ['first', 'second', 'debug'].includes(String(msg)))
      t.match(lines, [
        { level: 30, reqId: seen.id, one: 1 },
        { level: 40, reqId: seen.id, two: 2 },
        { level: 20, reqId: seen.id },
      ])
      t.equal(lines.length, 3)
      t.notMatch(capture.text(), 'below the level')
      app.log.info('of the app')
      t.match(capture.text(), 'of the app')
    })
  }

  t.test('header lines that are kept change no response', async t => {
    const FIELDS: Readonly<Record<string, Record<string, string | number | string[]>>> = {
      first: { etag: '"1"', 'cache-control': 'no-store', 'x-content-type-options': 'mine' },
      second: { etag: '"2"', vary: ['a', 'b'], 'x-other': 'one', 'content-length': 2 },
      invalid: { etag: '"1"\r\nx-injected: 1' },
    }
    const extend = (app: FastifyInstance): void => {
      app.get<{ Params: { name: string } }>('/fields/:name', ({ params }, reply) => {
        reply.headers(FIELDS[params.name] ?? {}).send('{}')
      })
    }
    const app = await build(t, { extend })
    const url = await app.listen({ host: '127.0.0.1', port: 0 })
    const port = Number(new URL(url).port)
    const exchange = async (start: string): Promise<string> => {
      const request = lines(start, `Host: 127.0.0.1:${port}`, 'Connection: close')
      const connection = new RawConnection(port).write(request)
      await until(
        () => connection.ended,
        ended => ended,
        DEADLINE,
      )
      connection.socket.destroy()
      return connection.received
    }
    for (let time = 0; time < 2; time += 1) {
      const first = await exchange('GET /fields/first HTTP/1.1')
      for (const line of [
        'etag: "1"',
        'cache-control: no-store',
        'x-content-type-options: mine',
        'content-length: 2',
      ])
        t.match(first.toLowerCase(), `\r\n${line}\r\n`)
      t.notMatch(first, 'nosniff')
      t.match(first, /\r\n\r\n\{\}$/)
      const second = await exchange('GET /fields/second HTTP/1.1')
      for (const line of ['etag: "2"', 'vary: a', 'vary: b', 'x-other: one', 'content-length: 2'])
        t.match(second, `\r\n${line}\r\n`)
      t.notMatch(second, 'no-store')
      t.match(await exchange('HEAD /fields/first HTTP/1.1'), /\r\ncontent-length: 2\r\n.*\r\n\r\n$/s)
      t.match(await exchange('GET /fields/first HTTP/1.0'), /\r\ncontent-length: 2\r\n.*\r\n\r\n\{\}$/s)
      const invalid = await exchange('GET /fields/invalid HTTP/1.1')
      t.match(invalid, /^HTTP\/1\.1 500 /)
      t.notMatch(invalid, 'x-injected')
    }
  })

  t.test('responses state how long a connection is kept alive', async t => {
    const url = await app.listen({ host: '127.0.0.1', port: 0 })
    const response = await fetch(`${url}/health`)
    t.equal(response.headers.get('keep-alive'), 'timeout=72')
    t.equal(app.server.timeout, 72_000)
  })
})
