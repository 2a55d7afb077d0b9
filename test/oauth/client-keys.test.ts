/** Keys of clients that are fetched (`jwksUri`). */
import type { IncomingMessage, ServerResponse } from 'node:http'
import t from 'tap'
import { asAdmin, logCapture, manualClock } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt } from '../support/error-response.ts'
import { serve } from '../support/identity-provider.ts'
import {
  ASSERTION_TYPE,
  assertionClaims,
  buildOAuth,
  clientKey,
  oauthErrorAt,
  postClient,
  registerMachine,
  requestToken,
} from '../support/oauth.ts'

const MINUTE = 60_000

type Respond = (request: IncomingMessage, response: ServerResponse) => void

await onEnginesOfRun(t, async (t, engine) => {
  /** A service with a client whose keys are at a server of the test. */
  const setUp = async (t: Parameters<typeof serve>[0], options: Parameters<typeof buildOAuth>[2] = {}) => {
    const clock = manualClock()
    const key = clientKey()
    const state = { requests: 0, keys: [key.jwk] as object[], respond: null as Respond | null }
    const origin = await serve(t, (request, response) => {
      state.requests += 1
      if (state.respond !== null) return state.respond(request, response)
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ keys: state.keys }))
    })
    const env = { OAUTH_ALLOWED_HOSTS: new URL(origin).host }
    const app = await buildOAuth(engine, t, { clock: clock.now, env, ...options })
    const { id } = await registerMachine(app, {
      ...{ authMethod: 'private_key_jwt', jwksUri: `${origin}/keys`, adminScopes: ['users:read'] },
    })
    const ask = (signer = key) =>
      requestToken(app, {
        ...{ grant_type: 'client_credentials', client_assertion_type: ASSERTION_TYPE },
        client_assertion: signer.assert(assertionClaims(id, clock.now())),
      })
    return { app, clock, key, state, id, ask }
  }

  t.test('keys are fetched once an hour, by many requests at once too', async t => {
    const { state, clock, ask, id, app } = await setUp(t)
    const client = (await app.inject({ url: `/admin/clients/${id}`, headers: asAdmin })).json()
    t.match(client, { jwks: null, jwksUri: /\/keys$/ })
    const first = await Promise.all(Array.from({ length: 5 }, () => ask()))
    t.strictSame([first.map(({ statusCode }) => statusCode), state.requests], [[200, 200, 200, 200, 200], 1])
    clock.advance(59 * MINUTE)
    t.strictSame([(await ask()).statusCode, state.requests], [200, 1])
    clock.advance(MINUTE)
    t.strictSame([(await ask()).statusCode, state.requests], [200, 2])
    state.keys = []
    clock.advance(60 * MINUTE)
    t.strictSame([(await ask()).statusCode, state.requests], [401, 3], 'a key that is withdrawn ends')
  })

  t.test('an unknown key is fetched, at most once a minute', async t => {
    const { state, clock, key, ask } = await setUp(t)
    t.equal((await ask()).statusCode, 200)
    const next = clientKey()
    state.keys = [key.jwk, next.jwk]
    t.strictSame([(await ask(next)).statusCode, state.requests], [401, 1])
    clock.advance(MINUTE)
    t.strictSame([(await ask(next)).statusCode, state.requests], [200, 2])
    for (let count = 0; count < 5; count += 1) t.equal((await ask(clientKey())).statusCode, 401)
    t.equal(state.requests, 2)
    state.respond = (_request, response) => response.writeHead(500).end()
    clock.advance(MINUTE)
    t.equal((await ask(clientKey())).statusCode, 401)
    t.strictSame([(await ask()).statusCode, state.requests], [200, 3], 'known keys outlive a failure')
  })

  t.test(
    'P30: what is no document of keys is 401, with one line in the log, and is not asked at once again',
    async t => {
      const log = logCapture()
      const { state, clock, ask, id } = await setUp(t, { logStream: log.stream })
      const responses: [string, Respond][] = [
        ['status 302', (_, response) => response.writeHead(302, { location: '/other' }).end()],
        ['status 404', (_, response) => response.writeHead(404).end()],
        ['not JSON', (_, response) => response.end('<html>')],
        ['not JSON', (_, response) => response.end(Buffer.from([0xff, 0xfe]))],
        ['no keys', (_, response) => response.end('[]')],
        ['no keys', (_, response) => response.end('null')],
        ['no keys', (_, response) => response.end('{"keys":7}')],
        [
          'too many bytes',
          (_, response) => response.end(JSON.stringify({ keys: [], x: 'x'.repeat(65_536) })),
        ],
        ['connection failed', (_, response) => response.destroy()],
      ]
      for (const [reason, respond] of responses) {
        state.respond = respond
        const before = state.requests
        const logged = log.problems().length
        oauthErrorAt(t, await ask(), 401, 'invalid_client', ['global'], reason)
        t.equal((await ask()).statusCode, 401)
        t.equal(state.requests, before + 1, reason)
        clock.advance(2 * MINUTE)
        const lines = log.problems().slice(logged)
        t.equal(lines.length, 1, reason)
        t.match(lines[0], { level: 40, client: id, reason: new RegExp(reason) })
      }
      state.respond = null
      t.equal((await ask()).statusCode, 200)
    },
  )

  t.test('keys that verify nothing are left out', async t => {
    const { state, ask, key } = await setUp(t)
    const other = clientKey()
    state.keys = [7, null, [], { kty: 'oct', k: 'x' }, { ...other.jwk, d: 'x' }, key.jwk] as object[]
    t.equal((await ask()).statusCode, 200)
    t.equal((await ask(other)).statusCode, 401)
  })

  t.test('an assertion that is not meant for the service fetches nothing', async t => {
    const { app, state, key, id } = await setUp(t)
    const claims = { ...assertionClaims(id), aud: 'https://other.example.test' }
    const parameters = { grant_type: 'client_credentials', client_assertion_type: ASSERTION_TYPE }
    const response = await requestToken(app, { ...parameters, client_assertion: key.assert(claims) })
    t.strictSame([response.statusCode, state.requests], [401, 0])
  })

  t.test('P30: a jwksUri must be HTTPS and public, and one kind of keys is given', async t => {
    const app = await buildOAuth(engine, t)
    const machine = { name: 'Job', authMethod: 'private_key_jwt', grantTypes: ['client_credentials'] }
    const wrong: [string, object][] = [
      ...[
        ...['http://example.test/keys', 'https://127.0.0.1/keys', 'https://[::1]/keys', 'https://10.0.0.1/'],
        ...[
          'https://169.254.169.254/latest',
          'file:///etc/passwd',
          'https://a.test/#x',
          'keys',
          'https://a b/',
        ],
      ].map((jwksUri): [string, object] => ['jwksUri', { jwksUri }]),
      ['jwksUri', { jwksUri: 'https://keys.example.test/', jwks: { keys: [clientKey().jwk] } }],
      ['jwks', { authMethod: 'client_secret_basic', jwksUri: 'https://keys.example.test/' }],
    ]
    for (const [field, change] of wrong)
      errorsAt(t, await postClient(app, { ...machine, ...change }), 400, [field], JSON.stringify(change))
  })
})
