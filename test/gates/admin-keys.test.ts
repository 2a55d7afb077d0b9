/** The admin gate (§5.2). */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import t from 'tap'
import { ADMIN_KEY, asAdmin, bearer, build, cookie, signUp } from '../support/build.ts'
import { exchange, parseResponse } from '../support/process.ts'

type Headers = Record<string, string>

const PREVIOUS = 'previous-admin-key-0123456789'

const app = await build(t)
const user = await signUp(app)

/** Both kinds of admin routes: reading, and changing the user. */
const ask = async (
  app: FastifyInstance,
  id: string,
  headers: Headers,
): Promise<[LightMyRequestResponse, LightMyRequestResponse]> => [
  await app.inject({ url: '/admin/users', headers }),
  await app.inject({ method: 'PUT', url: `/admin/users/${id}`, headers, payload: { lastName: 'Opened' } }),
]

const statuses = async (headers: Headers): Promise<number[]> =>
  (await ask(app, user.id, headers)).map(({ statusCode }) => statusCode)

const lastName = async (): Promise<string | null> =>
  (await app.inject({ url: `/admin/users?email=${user.email}`, headers: asAdmin })).json().results[0].lastName

t.test('a missing or wrong key is a 401 and changes nothing (§5.2.1, §5.2.3)', async t => {
  const key = ADMIN_KEY
  const wrong: Record<string, string> = {
    wrong: 'another-admin-key-0123456789abcd',
    empty: '',
    'one character': key.slice(0, 1),
    prefix: key.slice(0, -1),
    suffix: key.slice(1),
    'longer in front': `x${key}`,
    'longer behind': `${key}x`,
    'other case': key.toUpperCase(),
    'case of one letter': key.replace('a', 'A'),
    'one character other': `${key.slice(0, -1)}0`,
    twice: `${key}${key}`,
    'twice with a comma': `${key}, ${key}`,
    'among others': `other, ${key}`,
    'key first among others': `${key}, other`,
    quoted: `"${key}"`,
    'with Bearer': `Bearer ${key}`,
    'percent-encoded': key.replace('-', '%2D'),
    'NUL behind': `${key}\u0000`,
    'non-ASCII': 'clé-d-administration-äöüß',
    'non-ASCII behind': `${key}\u00ff`,
    'no-break space behind': `${key}\u00a0`,
    previous: PREVIOUS,
    '8 KB': 'k'.repeat(8_192),
    '100 KB that begin with it': key.padEnd(100_000, 'k'),
    'undefined as text': 'undefined',
    'null as text': 'null',
  }
  const absent: Record<string, Headers> = {
    'no header': {},
    'as Authorization': { authorization: `Bearer ${key}` },
    'as Basic': { authorization: `Basic ${Buffer.from(`admin:${key}`).toString('base64')}` },
    'as cookie': { cookie: `x-admin-key=${key}; ADMIN_KEY=${key}` },
    'another name': { 'admin-key': key, 'x-api-key': key, x_admin_key: key },
  }
  const presented = Object.entries(wrong).map(([name, value]) => [name, { 'x-admin-key': value }] as const)
  for (const [name, headers] of [...Object.entries(absent), ...presented]) {
    for (const response of await ask(app, user.id, headers)) {
      t.equal(response.statusCode, 401, name)
      t.strictSame(Object.keys(response.json()), ['errors'], `${name}: the errors body (§7.1)`)
      t.strictSame(Object.keys(response.json().errors), ['global'], name)
      t.ok(response.headers['www-authenticate'], `${name}: a challenge`)
      t.notMatch(response.body, key, `${name}: the key is not in the response`)
    }
  }
  t.equal(await lastName(), null, 'nothing was changed')
  const query = await app.inject({ url: `/admin/users?x-admin-key=${key}&ADMIN_KEY=${key}` })
  t.equal(query.statusCode, 401, 'the query is no place for a key')
})

t.test('the header name is case-insensitive (§5.2.1, RFC 9110 §5.1)', async t => {
  for (const name of ['x-admin-key', 'X-Admin-Key', 'X-ADMIN-KEY']) {
    t.strictSame(await statuses({ [name]: ADMIN_KEY }), [200, 200], name)
  }
})

t.test('a user token is no admin key, and an admin key needs no user (§5.2.4)', async t => {
  for (const token of [bearer(user.token), cookie(user.token)]) {
    t.strictSame(await statuses(token), [401, 401], 'the token alone')
    t.strictSame(
      await statuses({ ...token, 'x-admin-key': 'wrong' }),
      [401, 401],
      'the token and a wrong key',
    )
    t.strictSame(await statuses({ ...bearer(user.token), ...asAdmin }), [200, 200], 'both')
  }
  t.strictSame(await statuses(asAdmin), [200, 200], 'the key alone')
  t.strictSame(await statuses({ ...asAdmin, ...bearer('garbage') }), [200, 200], 'a bad token beside the key')
  t.strictSame(
    await statuses({ ...asAdmin, ...cookie('garbage') }),
    [200, 200],
    'a bad cookie beside the key',
  )
  t.strictSame(await statuses({ ...asAdmin, authorization: 'Basic eDp5' }), [200, 200], 'another scheme')
})

t.test('an admin key does not identify a user (§5.1.4)', async t => {
  for (const url of ['/account', '/users']) {
    t.equal((await app.inject({ url, headers: asAdmin })).statusCode, 401, url)
    t.equal((await app.inject({ url, headers: { ...asAdmin, ...bearer(ADMIN_KEY) } })).statusCode, 401, url)
  }
  t.equal((await app.inject({ url: '/health', headers: { 'x-admin-key': 'wrong' } })).statusCode, 200)
  const headers = { ...bearer(user.token), 'x-admin-key': 'wrong' }
  t.equal((await app.inject({ url: '/account', headers })).statusCode, 200, 'a wrong key harms no user')
})

t.test('a client without a key learns nothing about payloads, users or queries', async t => {
  const json = { 'content-type': 'application/json' }
  const none = '01900000-0000-7000-8000-000000000000'
  for (const key of [{}, { 'x-admin-key': 'wrong' }]) {
    for (const id of [user.id, none, 'garbage']) {
      for (const payload of ['{}', '{not json', '{"unknown":1}', '"x"', 'x'.repeat(20_000)]) {
        const request = { method: 'PUT', url: `/admin/users/${id}`, payload } as const
        for (const headers of [
          { ...key, ...json },
          { ...key, 'content-type': 'text/plain' },
        ]) {
          t.equal(
            (await app.inject({ ...request, headers })).statusCode,
            401,
            `${id} ${payload.slice(0, 20)}`,
          )
        }
      }
    }
    const query = await app.inject({ url: '/admin/users?limit=-1&nonsense=1&cursor=x', headers: key })
    t.equal(query.statusCode, 401, 'a bad query')
  }
})

t.test(
  'duplicate x-admin-key headers are rejected, and keys are compared byte for byte (§5.2.3)',
  async t => {
    const port = Number(new URL(await app.listen({ port: 0, host: '127.0.0.1' })).port)
    const status = async (...keys: (string | Buffer)[]): Promise<number> => {
      const lines = keys.flatMap(key => [Buffer.from('x-admin-key: '), Buffer.from(key), Buffer.from('\r\n')])
      const head = Buffer.from('GET /admin/users HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n')
      const bytes = Buffer.concat([head, ...lines, Buffer.from('\r\n')])
      return parseResponse(await exchange(port, bytes, 5_000)).status
    }
    t.equal(await status(ADMIN_KEY), 200, 'control')
    t.equal(
      await status(`  ${ADMIN_KEY}\t `),
      200,
      'white space around a value is no part of it (RFC 9110 §5.5)',
    )
    t.equal(await status(ADMIN_KEY, ADMIN_KEY), 400, 'the right one twice')
    t.equal(await status(ADMIN_KEY, 'wrong'), 400, 'right, wrong')
    t.equal(await status('wrong', ADMIN_KEY), 400, 'wrong, right')
    t.equal(await status('', ADMIN_KEY), 400, 'empty, right')
    t.equal(await status(''), 401, 'empty')
    t.equal(await status(`${ADMIN_KEY}ÿ`), 401, 'UTF-8')
    t.equal(await status(Buffer.from([0xff, 0xfe, 0x80])), 401, 'bytes that are no UTF-8')
  },
)

t.test('the previous key is accepted while it is configured (§5.2.2)', async t => {
  const app = await build(t, { env: { ADMIN_KEY_PREVIOUS: PREVIOUS } })
  const { id } = await signUp(app)
  const withKey = async (key: string) =>
    (await ask(app, id, { 'x-admin-key': key })).map(({ statusCode }) => statusCode)
  t.strictSame(await withKey(ADMIN_KEY), [200, 200], 'the current key')
  t.strictSame(await withKey(PREVIOUS), [200, 200], 'the previous key')
  for (const key of [PREVIOUS.slice(1), `${ADMIN_KEY}${PREVIOUS}`, `${ADMIN_KEY}, ${PREVIOUS}`, '']) {
    t.strictSame(await withKey(key), [401, 401], key)
  }
})

t.test('without ADMIN_KEY no key is accepted', async t => {
  const app = await build(t, { env: { ADMIN_KEY: '' } })
  const { id, token } = await signUp(app)
  const tries: Headers[] = [{}, ...['', 'undefined', 'null', ADMIN_KEY].map(key => ({ 'x-admin-key': key }))]
  for (const headers of [...tries, bearer(token)]) {
    for (const response of await ask(app, id, headers)) {
      t.equal(response.statusCode, 401, JSON.stringify(headers))
      t.strictSame(Object.keys(response.json()), ['errors'])
    }
  }
  t.equal((await app.inject({ url: '/account', headers: bearer(token) })).statusCode, 200)
})

t.test('the gate runs before the handler too, not only before the body (§5.2.3)', async t => {
  const app = await build(t, {
    extend: app => {
      app.addHook('preValidation', (request, _reply, done) => {
        delete request.headers['x-admin-key']
        done()
      })
    },
  })
  t.equal((await app.inject({ url: '/admin/users', headers: { 'x-admin-key': ADMIN_KEY } })).statusCode, 401)
})
