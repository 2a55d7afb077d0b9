/** Secrets in every place of every route appear in no log line and no response (docs/design.md, "Errors"). */
import type { InjectOptions } from 'fastify'
import t from 'tap'
import { ADMIN_KEY_PREFIX, API_KEY_PREFIX, newOpaqueKey } from '#core/auth/opaque-key'
import { build, freshEmail, logCapture } from '../support/build.ts'

const KEY = 'canary-real-admin-key-5d2e8b71'
const JWT_SECRET = 'canary-jwt-secret-5d2e8b71c09f4a36b1e7d2f8'
const PASSWORD = 'canary pass phrase 5d2e8b71'
/** Secrets that a client sends by mistake or as an attack: none is valid. */
const WRONG = {
  password: 'canary-password-9f3ac1d0',
  token: 'canary-token-9f3ac1d0.canary-payload-9f3ac1d0.canary-signature-9f3ac1d0',
  cookie: 'canary-cookie-9f3ac1d0',
  key: 'canary-admin-key-9f3ac1d0',
  // Of the right form.
  apiKey: newOpaqueKey(API_KEY_PREFIX).text,
  storedAdminKey: newOpaqueKey(ADMIN_KEY_PREFIX).text,
}

/** Marks secrets in paths: the request lines of the log contain paths, but nothing else that a client sends. */
const IN_PATH = '-in-path'

interface Operation {
  readonly parameters?: { readonly name: string; readonly in: string }[]
}

/** Every place of a request that can carry a value, for one route. */
const placesOf = (path: string, operation: Operation, secret: string): Record<string, InjectOptions> => {
  const url = path.replace(/\{\w+\}/g, '01890000-0000-7000-8000-000000000000')
  const json = { 'content-type': 'application/json' }
  const body = (payload: string | Buffer, headers = json): InjectOptions => ({ url, payload, headers })
  const text = JSON.stringify(secret)
  const inPath = secret + IN_PATH
  const query = (operation.parameters ?? []).filter(each => each.in === 'query').map(each => each.name)
  return {
    'body: password': body(`{"email":"${freshEmail('canary')}","password":${text}}`),
    'body: password of a wrong type': body(`{"email":"a@example.com","password":{"value":[${text}]}}`),
    'body: e-mail': body(`{"email":${text},"password":"x"}`),
    'body: unknown property': body(`{"nonsense":${text}}`),
    'body: a key': body(`{"name":${text},"scopes":[${text}],"expiresAt":${text}}`),
    'body: a boolean': body(`{"disabled":${text},"emailVerified":${text}}`),
    'body: named twice': body(`{"password":${text},"password":${text}}`),
    'body: malformed': body(`{"password":${text}`),
    'body: malformed within': body(`{"password":${secret}}`),
    'body: not UTF-8': body(Buffer.concat([Buffer.from(`{"a":${text}`), Buffer.from([0xff, 0x7d])])),
    'body: text': body(secret, { 'content-type': 'text/plain' }),
    'body: a form': body(`password=${secret}`, { 'content-type': 'application/x-www-form-urlencoded' }),
    'body: too long': body(`{"password":"${secret.repeat(1000)}"}`),
    'media type': body('{}', { 'content-type': secret }),
    'query: unknown': { url, query: { password: secret, access_token: secret } },
    ...Object.fromEntries(query.map(name => [`query: ${name}`, { url, query: { [name]: secret } }])),
    cookie: { url, headers: { cookie: `ACCESS_TOKEN=${secret}` } },
    'another cookie': { url, headers: { cookie: `session=${secret}; ACCESS_TOKEN="${secret}"` } },
    bearer: { url, headers: { authorization: `Bearer ${secret}` } },
    basic: { url, headers: { authorization: `Basic ${secret}` } },
    authorization: { url, headers: { authorization: secret } },
    'x-admin-key': { url, headers: { 'x-admin-key': secret } },
    'path parameter': {
      url: path.includes('{') ? path.replace(/\{\w+\}/g, inPath) : `${path}/${inPath}`,
    },
    'bad URL': { url: `${url}/%zz${inPath}` },
    'path and key': {
      url: path.replace(/\{\w+\}/g, inPath),
      headers: { 'x-admin-key': KEY, ...json },
      payload: '{}',
    },
  }
}

for (const NODE_ENV of ['development', 'production'])
  t.test(`secrets appear in no log line and no response in ${NODE_ENV}`, async t => {
    const log = logCapture()
    const app = await build(t, {
      logStream: log.stream,
      env: {
        NODE_ENV,
        LOG_LEVEL: 'trace',
        LOG_REQUESTS: 'on',
        RATE_LIMIT: 'off',
        ADMIN_KEY: KEY,
        JWT_SECRET,
      },
    })
    const openapi = (await app.inject({ url: '/openapi.json' })).json()
    const operations = Object.entries<Record<string, Operation>>(openapi.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        path: path === '/' ? path : path.replace(/\/$/, ''),
        method: method.toUpperCase() as 'GET',
        operation,
      })),
    )
    t.ok(operations.length >= 9, 'the core routes at least')

    const issued: string[] = []
    const leaks: string[] = []
    /** Sends a request and notes every secret in the response. Only SignedIn may have a token: the one it issues. */
    const send = async (title: string, options: InjectOptions) => {
      const response = await app.inject(options)
      const sent = JSON.stringify(response.headers) + response.body
      const signedIn = /^\/account\/sign-(up|in)$/.test(String(options.url)) && response.statusCode < 300
      const secrets = [...Object.values(WRONG), 'canary-signature', KEY, JWT_SECRET, PASSWORD, ...issued]
      for (const secret of secrets) if (sent.includes(secret)) leaks.push(`${title}: ${sent}`)
      if (signedIn) issued.push(response.json().accessToken)
      return response
    }

    t.test('wrong secrets in every place of every route do not appear in responses', async t => {
      const kinds = Object.entries(WRONG)
      // Every route has one in each place, and every place has each kind, on other routes.
      for (const [route, { path, method, operation }] of operations.entries())
        for (const [index, place] of Object.keys(placesOf(path, operation, '')).entries()) {
          const [kind, secret] = kinds[(route + index) % kinds.length] as [string, string]
          const options = placesOf(path, operation, secret)[place]
          await send(`${method} ${path}, ${kind} in ${place}`, { ...options, method })
        }
      t.strictSame(leaks, [], 'no response contains one')
    })

    t.test('correct secrets do not appear in responses', async t => {
      const email = freshEmail('canary')
      const payload = { email, password: PASSWORD }
      const signUp = await send('sign-up', { method: 'POST', url: '/account/sign-up', payload })
      t.equal(signUp.statusCode, 201)
      const signIn = await send('sign-in', { method: 'POST', url: '/account/sign-in', payload })
      t.equal(signIn.statusCode, 200)
      const { accessToken, user } = signIn.json()
      const taken = await send('taken', { method: 'POST', url: '/account/sign-up', payload })
      t.equal(taken.statusCode, 409)
      // Shown by the response that creates them, and nowhere else.
      const create = async (url: string, scopes: string[], headers: Record<string, string>) => {
        const response = await app.inject({
          method: 'POST',
          url,
          headers,
          payload: { name: 'canary', scopes },
        })
        t.equal(response.statusCode, 201, response.body)
        const { token, adminKey } = response.json()
        issued.push(token ?? adminKey)
        return token ?? adminKey
      }
      const session = { authorization: `Bearer ${accessToken}` }
      const apiKey = await create('/account/api-keys', ['account:read', 'account:write'], session)
      const scopes = ['users:read', 'events:read', 'keys:write']
      const adminKey = await create('/admin/keys', scopes, { 'x-admin-key': KEY })
      const carriers: Record<string, string>[] = [
        { authorization: `Bearer ${apiKey}`, 'x-admin-key': adminKey },
        { authorization: `Bearer ${adminKey}`, 'x-admin-key': apiKey },
        { authorization: `Bearer ${accessToken}` },
        { cookie: `ACCESS_TOKEN=${accessToken}` },
        { 'x-admin-key': KEY },
        { authorization: `Bearer ${accessToken}`, 'x-admin-key': KEY },
      ]
      for (const headers of carriers)
        for (const { path, method } of operations) {
          const url = path.replace(/\{\w+\}/g, user.id)
          const input = path.startsWith('/account/sign-') ? payload : { lastName: 'Lovelace' }
          const title = `${method} ${url} with ${Object.keys(headers)}`
          await send(title, { method, url, headers, ...(method === 'GET' ? {} : { payload: input }) })
          await send(`${title}, refused`, {
            method: 'PATCH' as 'GET',
            url: `${url}/nope`,
            headers,
            payload: {},
          })
        }
      t.strictSame(leaks, [], 'no response contains one')
    })

    t.test('no log line contains a secret', async t => {
      const lines = log.text().split('\n')
      t.ok(lines.length > operations.length, 'there are log lines')
      const parts = issued.flatMap(text => (text.startsWith('gate_') ? text : text.split('.').slice(1)))
      const secrets = { ...WRONG, signature: 'canary-signature', KEY, JWT_SECRET, PASSWORD }
      for (const [name, secret] of Object.entries(secrets)) {
        const spellings = [secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64')]
        const found = lines.filter(line => spellings.some(each => line.includes(each)))
        const elsewhere = found.filter(line => !line.includes(IN_PATH))
        t.strictSame(elsewhere.slice(0, 3), [], `${name}, in any place but the path`)
        t.strictSame(found.filter(line => line.includes(IN_PATH)).slice(0, 3), [], `${name}, in the path`)
      }
      const found = lines.filter(line => parts.some(part => line.includes(part)))
      t.strictSame(found.slice(0, 3), [], 'issued tokens and keys')
    })
  })
