/** Pushed authorization requests (RFC 9126, docs/oauth.md). */
import t from 'tap'
import { manualClock, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { basic, buildOAuth, postForm, type RegisteredClient, registerClient } from '../support/oauth.ts'
import {
  authorize,
  CALLBACK,
  challengeOf,
  decide,
  newVerifier,
  openConsent,
  PUBLIC,
  type Query,
  redeem,
  requestIn,
  targetOf,
  tokensIn,
} from '../support/oauth-flow.ts'

const WEB = { redirectUris: [CALLBACK], scopes: ['account:read'] }

await onEnginesOfRun(t, async (t, engine) => {
  const service = async (t: Parameters<typeof buildOAuth>[1], metadata: object = WEB) => {
    const clock = manualClock()
    const app = await buildOAuth(engine, t, { clock: clock.now })
    const client = await registerClient(app, metadata)
    const { token } = await signUp(app)
    const verifier = newVerifier()
    const query: Query = {
      ...{ response_type: 'code', redirect_uri: CALLBACK, state: 'pushed' },
      ...{ code_challenge: challengeOf(verifier), code_challenge_method: 'S256' },
    }
    const push = (parameters: Query = query, by: RegisteredClient = client) =>
      by.secret === null
        ? postForm(app, 'par', { client_id: by.id, ...parameters })
        : postForm(app, 'par', parameters, basic(by))
    const pushed = async () => {
      const response = await push()
      if (response.statusCode !== 201) throw new Error(response.body)
      return response.json().request_uri as string
    }
    const bring = (request_uri: string, more: Query = {}) =>
      authorize(app, { client_id: client.id, request_uri, ...more }, token)
    return { app, client, token, clock, verifier, query, push, pushed, bring }
  }

  for (const [kind, metadata] of Object.entries({ confidential: WEB, public: PUBLIC }))
    t.test(`a ${kind} client pushes its request, which a browser brings once`, async t => {
      const { app, client, token, verifier, push, bring } = await service(t, metadata)
      const response = await push()
      t.equal(response.statusCode, 201)
      t.match(response.headers['cache-control'], 'no-store')
      const { request_uri: uri, expires_in: lifetime } = response.json()
      t.match(uri, /^urn:ietf:params:oauth:request_uri:[\w-]{43}$/)
      t.equal(lifetime, 60)
      const begun = await bring(uri, { state: 'of the query', redirect_uri: 'https://evil.test/' })
      t.equal(begun.statusCode, 303)
      t.equal((await openConsent(app, requestIn(begun), token)).statusCode, 200)
      const target = targetOf(await decide(app, requestIn(begun), 'allow', token))
      t.equal(target.origin + target.pathname, CALLBACK, 'the query changes nothing')
      t.equal(target.searchParams.get('state'), 'pushed')
      const code = target.searchParams.get('code') ?? ''
      t.ok(tokensIn(await redeem(app, client, { code, verifier })).accessToken)
      const again = await bring(uri)
      t.equal(again.statusCode, 400, 'used')
      t.notOk(again.headers.location)
    })

  t.test('P16: the client of the query must be that of the pushed request', async t => {
    const { app, token, pushed, bring } = await service(t)
    const other = await registerClient(app, WEB)
    const uri = await pushed()
    const refused = await authorize(app, { client_id: other.id, request_uri: uri }, token)
    t.equal(refused.statusCode, 400)
    t.match(refused.body, 'This request has expired, or was opened already')
    t.notOk(refused.headers.location)
    t.equal((await authorize(app, { request_uri: uri }, token)).statusCode, 400, 'without a client')
    t.equal((await bring(uri)).statusCode, 303, 'it is still there for its own client')
  })

  t.test('a request that expired, or is invented is a page', async t => {
    const { clock, pushed, bring } = await service(t)
    const uri = await pushed()
    clock.advance(60_000)
    for (const each of [uri, `${uri.slice(0, -2)}AA`]) {
      const refused = await bring(each)
      t.equal(refused.statusCode, 400, each)
      t.notOk(refused.headers.location)
    }
  })

  t.test('of many browsers with a request, one gets it', async t => {
    const { pushed, bring } = await service(t)
    const uri = await pushed()
    const responses = await Promise.all(Array.from({ length: 10 }, () => bring(uri)))
    t.equal(responses.filter(({ statusCode }) => statusCode === 303).length, 1)
  })

  t.test('mistakes are told to the client when it pushes', async t => {
    const { app, client, query, push } = await service(t)
    const { code_challenge: _, ...withoutPkce } = query
    const cases: readonly (readonly [Query, string])[] = [
      [withoutPkce, 'invalid_request'],
      [{ ...query, response_type: 'token' }, 'unsupported_response_type'],
      [{ ...query, scope: 'unknown' }, 'invalid_scope'],
      [{ ...query, resource: 'https://no.test' }, 'invalid_target'],
      [{ ...query, redirect_uri: 'https://evil.test/' }, 'invalid_request'],
      [{ ...query, request_uri: 'urn:ietf:params:oauth:request_uri:x' }, 'request_uri_not_supported'],
      [{ ...query, request: 'e30.e30.' }, 'request_not_supported'],
    ]
    for (const [parameters, error] of cases) {
      const response = await push(parameters)
      t.equal(response.statusCode, 400)
      t.match(response.json(), { error, error_description: String, errors: Object })
    }
    t.equal((await push(query, { ...client, secret: 'wrong' })).statusCode, 401)
    const unauthenticated = await postForm(app, 'par', { client_id: client.id, ...query })
    t.equal(unauthenticated.statusCode, 401)
  })

  t.test('a client may have to push its requests', async t => {
    const { app, client, token, query, pushed, bring } = await service(t, {
      ...WEB,
      requirePushedRequests: true,
    })
    const refused = targetOf(await authorize(app, { client_id: client.id, ...query }, token))
    t.equal(refused.searchParams.get('error'), 'invalid_request')
    t.equal((await bring(await pushed())).statusCode, 303)
  })
})
