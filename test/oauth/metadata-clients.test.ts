/** Clients whose id is the URL of their metadata (draft-ietf-oauth-client-id-metadata-document). */
import type { ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { accountStatus, asAdmin, cookie, logCapture, manualClock, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt } from '../support/error-response.ts'
import { serve } from '../support/identity-provider.ts'
import {
  ASSERTION_TYPE,
  assertionClaims,
  buildOAuth,
  claimsOf,
  clientKey,
  oauthErrorAt,
  postForm,
  requestToken,
} from '../support/oauth.ts'
import {
  authorize,
  CALLBACK,
  challengeOf,
  decide,
  newCode,
  newTokens,
  newVerifier,
  openConsent,
  redeem,
  refresh,
  requestIn,
  tokensIn,
} from '../support/oauth-flow.ts'

const HOUR = 3_600_000

type Document = Record<string, unknown>

await onEnginesOfRun(t, async (t, engine) => {
  /** A service, and a server with the metadata of a client. */
  const setUp = async (t: Parameters<typeof serve>[0], options: Parameters<typeof buildOAuth>[2] = {}) => {
    const clock = manualClock()
    const state = {
      requests: 0,
      change: {} as Document,
      respond: null as ((response: ServerResponse) => void) | null,
    }
    const origin = await serve(t, (_request, response) => {
      state.requests += 1
      if (state.respond !== null) return state.respond(response)
      const document = {
        ...{ client_id: url, client_name: 'Editor', redirect_uris: [CALLBACK] },
        ...{
          grant_types: ['authorization_code', 'refresh_token'],
          scope: 'openid account:read offline_access',
        },
        ...state.change,
      }
      response.setHeader('content-type', 'application/json').end(JSON.stringify(document))
    })
    const url = `${origin}/client.json`
    const { host } = new URL(origin)
    const env = { OAUTH_ALLOWED_HOSTS: host, OAUTH_METADATA_CLIENTS: host, ...options.env }
    const app = await buildOAuth(engine, t, { clock: clock.now, ...options, env })
    const { token } = await signUp(app)
    return { app, clock, state, origin, url, token, client: { id: url, secret: null } }
  }

  const begin = (app: FastifyInstance, clientId: string, token?: string, query = {}) =>
    authorize(
      app,
      {
        ...{ client_id: clientId, redirect_uri: CALLBACK, response_type: 'code' },
        ...{ code_challenge: challengeOf(newVerifier()), code_challenge_method: 'S256', ...query },
      },
      token,
    )

  const listed = async (app: FastifyInstance) =>
    (await app.inject({ url: '/admin/clients', headers: asAdmin })).json().results

  t.test(
    'a user agrees, and the client gets, refreshes and introspects its tokens without another request',
    async t => {
      const { app, clock, state, url, token, client } = await setUp(t)
      const metadata = (await app.inject('/.well-known/oauth-authorization-server')).json()
      t.equal(metadata.client_id_metadata_document_supported, true)
      const response = await redeem(app, client, await newCode(app, client, token))
      const { accessToken, refreshToken } = tokensIn(response)
      t.equal(claimsOf(response.json().id_token).aud, url)
      t.equal(state.requests, 1)
      t.equal(await accountStatus(app, accessToken), 200)
      state.respond = answer => answer.writeHead(404).end()
      clock.advance(2 * HOUR)
      const again = tokensIn(await refresh(app, client, refreshToken))
      t.equal(await accountStatus(app, again.accessToken), 200)
      t.equal(state.requests, 1)
      const [stored] = await listed(app)
      t.match(stored, {
        origin: 'document',
        documentUrl: url,
        name: 'Editor',
        authMethod: 'none',
        firstParty: false,
      })
      t.equal((await postForm(app, 'revoke', { token: again.accessToken, client_id: url })).statusCode, 200)
      t.equal(await accountStatus(app, again.accessToken), 401)
      const byId = await refresh(app, { id: stored.id, secret: null }, again.refreshToken)
      oauthErrorAt(t, byId, 401, 'invalid_client', ['global'], 'the id of the store is no client_id')
    },
  )

  t.test('P19: the page names the host of the document, and that nobody has checked it', async t => {
    const { app, url, token, origin } = await setUp(t)
    const page = await openConsent(app, requestIn(await begin(app, url, token)), token)
    t.match(page.body, 'Unverified')
    t.match(page.body, new URL(origin).host)
    t.match(page.body, 'app.example.test')
    t.equal((await listed(app)).length, 0, 'nothing is stored before a user agrees')
  })

  t.test('a consent is remembered as for other clients: not on the device of a user', async t => {
    const { app, url, token, client, state } = await setUp(t)
    await newTokens(app, client, token)
    const scope = 'account:read'
    t.equal(
      (await openConsent(app, requestIn(await begin(app, url, token, { scope })), token)).statusCode,
      303,
    )
    state.change = { redirect_uris: ['http://127.0.0.1/callback'] }
    const loopback = await setUp(t)
    loopback.state.change = { redirect_uris: ['http://127.0.0.1/callback'] }
    const query = { scope, redirect_uri: 'http://127.0.0.1:4000/callback' }
    for (let round = 0; round < 2; round += 1) {
      const request = requestIn(await begin(loopback.app, loopback.url, loopback.token, query))
      t.equal((await openConsent(loopback.app, request, loopback.token)).statusCode, 200)
      await decide(loopback.app, request, 'allow', loopback.token)
    }
  })

  t.test('documents are kept for an hour at most, and as long as they say', async t => {
    const { app, url, clock, state } = await setUp(t)
    const seen = async () => [(await begin(app, url)).statusCode, state.requests]
    t.strictSame(
      [await seen(), await seen()],
      [
        [303, 1],
        [303, 1],
      ],
    )
    clock.advance(HOUR)
    t.strictSame(await seen(), [303, 2])
    state.respond = response => response.writeHead(404).end()
    clock.advance(HOUR)
    t.strictSame(await seen(), [400, 3], 'a document that is gone')
    t.strictSame(await seen(), [400, 3], 'a failure is not asked for at once again')
    state.respond = null
    clock.advance(60_000)
    t.strictSame(await seen(), [303, 4])
    const short = await setUp(t)
    short.state.respond = response => {
      response.setHeader('cache-control', 'max-age=120')
      response.end(JSON.stringify({ client_id: short.url, redirect_uris: [CALLBACK] }))
    }
    const now = async () => [(await begin(short.app, short.url)).statusCode, short.state.requests]
    t.strictSame(
      [await now(), await now()],
      [
        [303, 1],
        [303, 1],
      ],
    )
    short.clock.advance(120_000)
    t.strictSame(await now(), [303, 2])
  })

  t.test('a document that changes between request and consent ends the request', async t => {
    const { app, url, token, clock, state } = await setUp(t, {})
    const request = requestIn(await begin(app, url, token))
    state.respond = response => response.setHeader('cache-control', 'no-store').end('{}')
    clock.advance(60_000)
    t.equal((await openConsent(app, request, token)).statusCode, 200, 'it is kept')
    const other = await setUp(t)
    other.state.respond = response => {
      response.setHeader('cache-control', 'no-store')
      response.end(JSON.stringify({ client_id: other.url, redirect_uris: [CALLBACK], ...other.state.change }))
    }
    const pending = requestIn(await begin(other.app, other.url, other.token))
    other.state.change = { redirect_uris: ['https://elsewhere.example.test/'] }
    other.clock.advance(60_000)
    t.equal((await openConsent(other.app, pending, other.token)).statusCode, 404)
    t.equal((await decide(other.app, pending, 'allow', other.token)).statusCode, 404)
  })

  t.test('an administrator blocks a client: its tokens end at once, and it gets no further ones', async t => {
    const { app, url, token, client } = await setUp(t)
    const { accessToken, refreshToken } = await newTokens(app, client, token)
    const [{ id }] = await listed(app)
    const put = (payload: object) =>
      app.inject({ method: 'PUT', url: `/admin/clients/${id}`, headers: asAdmin, payload })
    errorsAt(t, await put({ name: 'Other' }), 409, ['global'])
    errorsAt(t, await put({ firstParty: true, blocked: true }), 409, ['global'])
    t.match((await put({ blocked: true })).json(), { blocked: true })
    t.equal(await accountStatus(app, accessToken), 401)
    t.equal((await refresh(app, client, refreshToken)).statusCode, 401)
    t.equal((await begin(app, url, token)).statusCode, 400)
    await app.services.clients.removeUnused({ job: 'test', fence: 1, signal: AbortSignal.timeout(10_000) })
    t.match((await put({ blocked: false })).json(), { blocked: false })
    t.equal(await accountStatus(app, accessToken), 200)
    t.equal(
      (await app.inject({ method: 'DELETE', url: `/admin/clients/${id}`, headers: asAdmin })).statusCode,
      204,
    )
    t.equal(await accountStatus(app, accessToken), 401)
    const pending = requestIn(await begin(app, url, token))
    t.equal((await decide(app, pending, 'allow', token)).statusCode, 404, 'its grants are not gone yet')
    await app.services.clients.removeDeleted({ job: 'test', fence: 1, signal: AbortSignal.timeout(10_000) })
    t.type((await newTokens(app, client, token)).accessToken, 'string')
  })

  t.test('private_key_jwt with the keys of the document', async t => {
    const { app, url, token, client, state, clock } = await setUp(t)
    const key = clientKey()
    state.change = { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [key.jwk] } }
    const { code, verifier } = await newCode(app, client, token)
    const response = await requestToken(app, {
      ...{ grant_type: 'authorization_code', code, code_verifier: verifier, redirect_uri: CALLBACK },
      client_assertion_type: ASSERTION_TYPE,
      client_assertion: key.assert(assertionClaims(url, clock.now())),
    })
    t.equal(response.statusCode, 200, response.body)
    const introspected = await postForm(app, 'introspect', {
      token: response.json().access_token,
      client_assertion_type: ASSERTION_TYPE,
      client_assertion: key.assert(assertionClaims(url, clock.now())),
    })
    t.match(introspected.json(), { active: true, client_id: url })
  })

  t.test('P34: a document that is not valid is a page, with a line in the log and no redirect', async t => {
    const log = logCapture()
    const { app, url, state, clock } = await setUp(t, { logStream: log.stream })
    const documents: Document[] = [
      ...[{ client_id: `${url}x` }, { client_id: undefined }, { client_id: 7 }, { redirect_uris: undefined }],
      ...[
        { redirect_uris: [] },
        { redirect_uris: ['javascript:alert(1)'] },
        { redirect_uris: ['http://a.test'] },
      ],
      ...[
        { client_secret: 'x' },
        { client_secret_expires_at: 0 },
        { firstParty: true },
        { client_name: 'a\u0000' },
      ],
      ...['client_secret_basic', 'client_secret_post', 'client_secret_jwt', 'private_key_jwt'].map(
        method => ({
          token_endpoint_auth_method: method,
        }),
      ),
      ...[
        { grant_types: ['client_credentials'] },
        { grant_types: ['refresh_token'] },
        { jwks: { keys: [] } },
      ],
      ...[{ id_token_signed_response_alg: 'ES256' }, { x: 'x'.repeat(5_120) }],
    ]
    const refused = async (title: string) => {
      const before = state.requests
      const response = await begin(app, url)
      t.equal(response.statusCode, 400, title)
      t.equal(response.headers.location, undefined)
      t.match(response.headers['content-type'], 'text/html')
      t.equal(state.requests, before + 1)
      clock.advance(HOUR)
    }
    for (const document of documents) {
      state.change = document
      await refused(JSON.stringify(document).slice(0, 100))
    }
    const responses: ((response: ServerResponse) => void)[] = [
      response => response.writeHead(302, { location: '/other' }).end(),
      response => response.writeHead(500).end(),
      ...['', '[]', 'null', '7', '"x"', '{'].map(text => (response: ServerResponse) => response.end(text)),
    ]
    for (const respond of responses) {
      state.respond = respond
      await refused(String(respond))
    }
    const reasons = log.records().map(({ reason }) => reason)
    for (const reason of [
      'status 302',
      'client_id is not the URL of the document',
      'not valid: redirect_uris',
    ])
      t.ok(
        reasons.some(each => each === reason),
        reason,
      )
    t.notOk(
      log.problems().some(({ reason }) => reason !== undefined),
      'strangers cause no warnings',
    )
  })

  t.test('P30: only URLs of the hosts that are listed are requested', async t => {
    const { app, origin, state } = await setUp(t)
    const { host, port } = new URL(origin)
    const urls = [
      ...[origin, `${origin}/`, `${origin}/a#b`, `${origin}/a#`, `http://user@${host}/a`, `${origin}/a/../b`],
      ...[`${origin}/./b`, `${origin}/a b`, `${origin}/é`, `HTTP://${host}/a`, `http://127.1:${port}/a`],
      ...[
        `${origin}/${'x'.repeat(240)}`,
        'https://other.example.test/a',
        `https://${host}/a`,
        'http://',
        'https:a',
      ],
    ]
    for (const url of urls) {
      const response = await begin(app, url)
      t.equal(response.statusCode, 400, url)
      t.equal(response.headers.location, undefined, url)
      const exchange = await requestToken(app, {
        grant_type: 'authorization_code',
        client_id: url,
        code: 'x',
      })
      t.ok([400, 401].includes(exchange.statusCode), url)
    }
    t.equal(state.requests, 0)
    const any = await buildOAuth(engine, t, { env: { OAUTH_METADATA_CLIENTS: '*' } })
    for (const url of [
      `${origin}/client.json`,
      'https://127.0.0.1/a',
      'https://[::1]/a',
      'https://10.0.0.1/a',
    ])
      t.equal((await begin(any, url)).statusCode, 400, url)
    t.equal(state.requests, 0)
  })

  t.test(
    'by default no URL is the id of a client, and a host that is no longer listed ends refreshing',
    async t => {
      const env = { DATABASE_URL: await engine.newDatabase(t) }
      const { app, url, client, token } = await setUp(t, { env })
      const { refreshToken } = await newTokens(app, client, token)
      const off = await buildOAuth(engine, t, { env })
      const metadata = (await off.inject('/.well-known/oauth-authorization-server')).json()
      t.equal(metadata.client_id_metadata_document_supported, false)
      t.equal((await begin(off, url)).statusCode, 400)
      t.equal((await refresh(off, client, refreshToken)).statusCode, 401)
    },
  )

  t.test(
    'a client without grants goes after a month, and appears among connected applications before',
    async t => {
      const { app, client, token, clock } = await setUp(t)
      await newTokens(app, client, token)
      const grants = await app.inject({ url: '/account/grants', headers: cookie(token) })
      t.match(grants.json().results, [{ client: { name: 'Editor' } }])
      const job = { job: 'test', fence: 1, signal: AbortSignal.timeout(10_000) }
      clock.advance(31 * 24 * HOUR)
      await app.services.clients.removeUnused(job)
      t.equal((await listed(app)).length, 1, 'it has a grant')
    },
  )
})
