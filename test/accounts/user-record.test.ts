/** Roles and metadata over HTTP: who writes and sees them, and what is refused (docs/design.md, "Contract"). */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { accountOf, call } from '../support/account-routes.ts'
import { allEvents, createUser, getEvents, postUser } from '../support/admin-routes.ts'
import { asAdmin, bearer, build, freshEmail, signIn, signUp, updateUser } from '../support/build.ts'
import { exportAll, importAll } from '../support/bulk-users.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsOf, globalErrorOf } from '../support/error-response.ts'
import { quickHashing } from '../support/fake-hashing.ts'

const LIMIT = 8_192

const METADATA = {
  name: 'Zoë \u{1f600}',
  'a.b/c~d': [null, true, -1.5, 9_007_199_254_740_991, { deep: [[]] }],
  constructor: 'text',
  hasOwnProperty: 1,
  '': '',
}

const change = (app: FastifyInstance, token: string, payload: object, headers = {}) =>
  call(app, 'PUT', '/account', payload, { ...bearer(token), ...headers })

const putText = (app: FastifyInstance, token: string, payload: string) =>
  app.inject({
    method: 'PUT',
    url: '/account',
    headers: { ...bearer(token), 'content-type': 'application/json' },
    payload,
  })

/** Metadata whose JSON has so many bytes. */
const ofSize = (bytes: number, filler = 'x'): object => {
  const empty = Buffer.byteLength(JSON.stringify({ a: '' }))
  const room = bytes - empty
  const width = Buffer.byteLength(filler)
  return { a: filler.repeat(Math.floor(room / width)) + 'x'.repeat(room % width) }
}

/** Nested objects, this many levels. */
const ofDepth = (levels: number): object => (levels === 1 ? {} : { a: ofDepth(levels - 1) })

await onEnginesOfRun(t, async (t, { build }) => {
  const app = await build(t, { hasher: quickHashing })

  t.test('new users have none, and users and administrators see all three, others none', async t => {
    const { id, token, email } = await signUp(app, { firstName: 'Recorded' })
    const none = { roles: [], userMetadata: {}, appMetadata: {} }
    t.match(await accountOf(app, token), none)
    t.strictSame((await signIn(app, email)).json().user.appMetadata, {})
    const record = { roles: ['b', 'a:1'], userMetadata: METADATA, appMetadata: { plan: 'pro' } }
    const changed = await updateUser(app, id, record)
    t.equal(changed.statusCode, 200)
    const expected = { ...record, roles: ['a:1', 'b'] }
    const account = await accountOf(app, token)
    for (const body of [changed.json(), account, (await signIn(app, email)).json().user])
      for (const [name, value] of Object.entries(expected)) t.strictSame(body[name], value, name)
    t.equal(Object.keys(account).at(-1), 'lastRequestAt')
    const one = (await app.inject({ url: `/admin/users/${id}`, headers: asAdmin })).json()
    t.match(one, expected)
    const { results } = (await app.inject({ url: '/users?search=recorded', headers: bearer(token) })).json()
    t.strictSame(
      results.map((profile: object) => Object.keys(profile)),
      [['id', 'firstName', 'lastName', 'createdAt']],
    )
  })

  t.test('users write their own metadata, as a whole, and nothing else of it', async t => {
    const { id, token } = await signUp(app)
    await updateUser(app, id, { roles: ['member'], appMetadata: { plan: 'pro' } })
    const first = await change(app, token, { userMetadata: METADATA })
    t.equal(first.statusCode, 200)
    t.equal(first.headers.etag, '"3"')
    t.strictSame(first.json().userMetadata, METADATA)
    t.strictSame((await accountOf(app, token)).userMetadata, METADATA)
    t.strictSame((await change(app, token, { userMetadata: { b: 2 } })).json().userMetadata, { b: 2 })
    t.strictSame((await change(app, token, { firstName: 'Ann' })).json().userMetadata, { b: 2 })
    t.strictSame((await change(app, token, { userMetadata: {} })).json().userMetadata, {})
    t.match(await accountOf(app, token), {
      roles: ['member'],
      appMetadata: { plan: 'pro' },
      firstName: 'Ann',
    })
    for (const field of ['roles', 'appMetadata', 'role'])
      t.strictSame(errorsOf(t, await change(app, token, { [field]: {} }), 400), {
        [field]: ['is not allowed'],
      })
  })

  t.test('If-Match and the version cover all three', async t => {
    const { id, token } = await signUp(app)
    const stale = { 'if-match': '"1"' }
    for (const [version, payload] of [
      { roles: ['a'] },
      { userMetadata: { a: 1 } },
      { appMetadata: { a: 1 } },
    ].entries())
      t.equal((await updateUser(app, id, payload)).headers.etag, `"${version + 2}"`)
    t.equal((await change(app, token, { userMetadata: {} }, stale)).statusCode, 412)
    t.strictSame((await accountOf(app, token)).userMetadata, { a: 1 })
    t.equal((await change(app, token, { userMetadata: {} }, { 'if-match': '"4"' })).statusCode, 200)
  })

  t.test('events name the fields and contain no value', async t => {
    const { id, token } = await signUp(app)
    await updateUser(app, id, { roles: ['canary'], appMetadata: { canary: 'canary' } })
    await change(app, token, { userMetadata: { canary: ['canary'] } })
    await updateUser(app, id, { disabled: true, roles: [] })
    const events = await allEvents(app, { userId: id })
    t.match(events.map(({ type, details }) => [type, details]).slice(0, 3), [
      ['user.disabled', { fields: ['disabled', 'roles'] }],
      ['user.changed', { fields: ['userMetadata'] }],
      ['user.changed', { fields: ['roles', 'appMetadata'] }],
    ])
    t.notMatch((await getEvents(app, { userId: id })).body, 'canary')
  })

  t.test('administrators create users with all three, and find them by role', async t => {
    const fields = { roles: ['z', 'created-here'], userMetadata: { a: 1 }, appMetadata: METADATA }
    const user = await createUser(app, fields)
    t.match(user, { ...fields, roles: ['created-here', 'z'] })
    const found = async (query: string) =>
      (await app.inject({ url: `/admin/users?${query}`, headers: asAdmin })).json()
    t.strictSame((await found('role=created-here&count=true')).total, 1)
    t.match((await found('role=created-here')).results, [user])
    t.strictSame((await found('role=created-here&disabled=true')).results, [])
    t.strictSame((await found('role=created')).results, [])
    for (const wrong of ['Editor', '', '%20a', 'x'.repeat(65), '1a']) {
      const response = await app.inject({ url: `/admin/users?role=${wrong}`, headers: asAdmin })
      t.strictSame(Object.keys(errorsOf(t, response, 400)), ['role'], wrong)
    }
    t.equal(
      (await app.inject({ url: '/users?role=a', headers: bearer((await signUp(app)).token) })).statusCode,
      400,
    )
  })

  t.test('pages of a role go on by their cursor, in every order', async t => {
    for (let index = 0; index < 5; index += 1)
      await createUser(app, { roles: ['paged'], firstName: `P${index}` })
    for (const sort of ['createdAt', '-createdAt', 'firstName', '-lastName']) {
      const ids: string[] = []
      let next: string | null = ''
      while (next !== null) {
        const query: string = next === '' ? '' : `&cursor=${next}`
        const url = `/admin/users?role=paged&limit=2&sort=${sort}${query}`
        const page = (await app.inject({ url, headers: asAdmin })).json()
        ids.push(...page.results.map(({ id }: { id: string }) => id))
        next = page.nextCursor
      }
      t.equal(new Set(ids).size, 5, sort)
      t.equal(ids.length, 5, sort)
    }
  })

  t.test('wrong roles are 400 with the field, and change nothing', async t => {
    const { id } = await signUp(app)
    await updateUser(app, id, { roles: ['kept'] })
    const ROLE = 'must be a role: a to z first, then at most 63 of a to z, 0 to 9, :, _ and -'
    const names = (count: number) => Array.from({ length: count }, (_, index) => `r${index}`)
    const wrong: [unknown, Record<string, string[]>][] = [
      ['editor', { roles: ['must be array'] }],
      [null, { roles: ['must be array'] }],
      [{ 0: 'editor' }, { roles: ['must be array'] }],
      [
        ['ok', 'Editor', '', 'é', 'a b', 'a\u0000'],
        {
          'roles.1': [ROLE],
          'roles.2': [ROLE],
          'roles.3': [ROLE],
          'roles.4': [ROLE],
          'roles.5': [ROLE, 'must not contain NUL'],
        },
      ],
      [['x'.repeat(65)], { 'roles.0': [ROLE] }],
      [['a', 7, null], { 'roles.1': ['must be string'], 'roles.2': ['must be string'] }],
      [['a', 'b', 'a'], { roles: ['must not have the same entry twice'] }],
      [names(33), { roles: ['must have at most 32 entries'] }],
    ]
    for (const [roles, expected] of wrong) {
      const errors = errorsOf(t, await updateUser(app, id, { roles }), 400, JSON.stringify(roles))
      const sorted = Object.fromEntries(
        Object.entries(errors).map(([field, each]) => [field, each.toSorted()]),
      )
      t.strictSame(sorted, expected)
      t.equal((await postUser(app, { email: freshEmail(), roles })).statusCode, 400)
    }
    t.match((await app.inject({ url: `/admin/users/${id}`, headers: asAdmin })).json(), { roles: ['kept'] })
    t.equal((await updateUser(app, id, { roles: names(32) })).json().roles.length, 32)
    t.equal((await updateUser(app, id, { roles: ['x'.repeat(64)] })).statusCode, 200)
  })

  t.test('metadata is JSON that every store and client reads alike', async t => {
    const { token } = await signUp(app)
    await change(app, token, { userMetadata: { kept: true } })
    const fields: [unknown, Record<string, string[]>][] = [
      [null, { userMetadata: ['must be object'] }],
      [[], { userMetadata: ['must be object'] }],
      ['{}', { userMetadata: ['must be object'] }],
      [{ address: { city: 'a\u0000' } }, { 'userMetadata.address.city': ['must not contain NUL'] }],
      [{ list: ['ok', '\ud800'] }, { 'userMetadata.list.1': ['must be valid Unicode'] }],
      [{ 'a\u0000': 1 }, { 'userMetadata.a\u0000': ['must not contain NUL'] }],
      [{ '\udfff': 1 }, { 'userMetadata.\ufffd': ['must be valid Unicode'] }],
      [
        { a: '\u0000', b: { 'c/d': '\u0000' } },
        { 'userMetadata.a': ['must not contain NUL'], 'userMetadata.b.c/d': ['must not contain NUL'] },
      ],
    ]
    for (const [userMetadata, expected] of fields)
      t.strictSame(
        errorsOf(t, await change(app, token, { userMetadata }), 400, JSON.stringify(userMetadata)),
        expected,
      )
    const INEXACT = 'must be a number that keeps its value: write an integer beyond ±9007199254740991 as text'
    for (const number of [
      '1e999',
      '-1e999',
      '9007199254740993',
      '-9007199254740992',
      '123456789012345678901',
    ])
      t.strictSame(
        errorsOf(t, await putText(app, token, `{"userMetadata":{"a":{"b":[${number}]}}}`), 400, number),
        { 'userMetadata.a.b.0': [INEXACT] },
      )
    const bodies: [string, string][] = [
      ['{"userMetadata":{"a":1,"a":2}}', 'The body names a property twice'],
      ['{"userMetadata":{"b":{"a":1,"\\u0061":2}}}', 'The body names a property twice'],
      ['{"userMetadata":{"__proto__":{}}}', 'The body has a property with a forbidden name'],
      ['{"userMetadata":{"a":[{"__proto__":1}]}}', 'The body has a property with a forbidden name'],
      ['{"userMetadata":{"constructor":{"prototype":1}}}', 'The body has a property with a forbidden name'],
      ['{"userMetadata":{"a":01}}', 'The body is not valid JSON'],
      ['{"userMetadata":{"a":NaN}}', 'The body is not valid JSON'],
    ]
    for (const [body, message] of bodies)
      t.equal(globalErrorOf(t, await putText(app, token, body), 400), message, body)
    t.strictSame((await accountOf(app, token)).userMetadata, { kept: true })
  })

  t.test('numbers and text are returned as they were sent', async t => {
    const { token } = await signUp(app)
    const values =
      '{"a":[0,-1,0.1,1e-7,123456.789,5e-324,1.7976931348623e-300,9007199254740991],"ü\\n":"\\u0001\\u2028\\"\\\\/😀"}'
    t.equal((await putText(app, token, `{"userMetadata":${values}}`)).statusCode, 200)
    t.strictSame((await accountOf(app, token)).userMetadata, JSON.parse(values))
  })

  t.test('the response to many violations of metadata stays small', async t => {
    const { token } = await signUp(app)
    const name = 'k'.repeat(8_000)
    const payload = `{"userMetadata":{"${name}":[${Array(1_300).fill('1e999').join()}]}}`
    const headers = { ...bearer(token), 'content-type': 'application/json' }
    const response = await app.inject({ method: 'PUT', url: '/account', headers, payload })
    t.equal(response.statusCode, 400)
    t.ok(response.body.length < 10_000)
    t.match(Object.keys(response.json().errors)[0], /^userMetadata\.k+…$/)
  })

  t.test('metadata has at most 8 KiB as JSON, and 16 levels', async t => {
    const { id, token } = await signUp(app)
    const SIZE = { userMetadata: ['must have at most 8192 bytes as JSON'] }
    for (const filler of ['x', 'é', '\u{1f600}']) {
      const over = await change(app, token, { userMetadata: ofSize(LIMIT + 1, filler) })
      t.strictSame(errorsOf(t, over, 400, filler), SIZE)
      t.equal((await change(app, token, { userMetadata: ofSize(LIMIT, filler) })).statusCode, 200, filler)
    }
    t.equal((await updateUser(app, id, { appMetadata: ofSize(LIMIT) })).statusCode, 200)
    const account = await accountOf(app, token)
    t.equal(Buffer.byteLength(JSON.stringify(account.userMetadata)), LIMIT)
    t.equal(Buffer.byteLength(JSON.stringify(account.appMetadata)), LIMIT)
    const spaced = `{"userMetadata":{"a":1${' '.repeat(12_000)}}}`
    t.equal((await putText(app, token, spaced)).statusCode, 200, 'white space does not count')

    t.equal((await change(app, token, { userMetadata: ofDepth(16) })).statusCode, 200)
    const deep = errorsOf(t, await change(app, token, { userMetadata: ofDepth(17) }), 400)
    t.strictSame(deep, { [`userMetadata${'.a'.repeat(16)}`]: ['must have at most 16 levels'] })
    for (const [open, close] of [
      ['{"a":', '}'],
      ['[', ']'],
    ] as const) {
      const levels = Math.floor(16_000 / (open.length + close.length))
      const text = `{"userMetadata":{"a":${open.repeat(levels)}1${close.repeat(levels)}}}`
      const errors = errorsOf(t, await putText(app, token, text), 400, `${levels} levels`)
      t.strictSame(Object.values(errors), [['must have at most 16 levels']])
    }
    const many = `{"userMetadata":{"a":[${'1e999,'.repeat(2_000)}1]}}`
    t.equal(Object.keys(errorsOf(t, await putText(app, token, many), 400)).length, 2_000)
    t.match(await accountOf(app, token), { userMetadata: { a: {} } })
  })

  t.test('an export with all of it at its limit is imported unchanged', async t => {
    const [from, to] = [await build(t, { hasher: quickHashing }), await build(t, { hasher: quickHashing })]
    const fields = {
      email: `${'e'.repeat(64)}@${'d'.repeat(63)}.${'d'.repeat(63)}.${'d'.repeat(56)}.ab`,
      firstName: '\u{1f600}'.repeat(128),
      lastName: '"'.repeat(128),
      roles: Array.from({ length: 32 }, (_, index) => `r${String(index).padStart(63, '0')}`),
    }
    const { id } = await createUser(from, fields)
    for (const name of ['userMetadata', 'appMetadata'])
      t.equal((await updateUser(from, id, { [name]: ofSize(LIMIT, '\u{1f600}') })).statusCode, 200)
    await createUser(from, { roles: ['a'], userMetadata: METADATA })
    const exported = await exportAll(from, '?passwordHashes=true')
    t.match(exported[0], fields)
    t.ok(Buffer.byteLength(JSON.stringify(exported[0])) > 18_000)
    const results = await importAll(to, exported)
    t.match(results.at(-1), { status: 'finished', created: 2, failed: 0 })
    t.strictSame(await exportAll(to, '?passwordHashes=true'), exported)
  })

  t.test('a line of an import that breaks a rule fails alone, with its fields', async t => {
    const lines = [
      { email: freshEmail(), roles: ['Editor'] },
      { email: freshEmail(), userMetadata: ofSize(LIMIT + 1) },
      { email: freshEmail(), appMetadata: { a: ['\u0000'] } },
      { email: freshEmail(), roles: ['b', 'a'], appMetadata: { a: 1 } },
    ]
    const results = await importAll(app, lines)
    t.match(results, [
      { status: 'failed', errors: { 'roles.0': [/^must be a role/] } },
      { status: 'failed', errors: { userMetadata: ['must have at most 8192 bytes as JSON'] } },
      { status: 'failed', errors: { 'appMetadata.a.0': ['must not contain NUL'] } },
      { status: 'created' },
      { created: 1, failed: 3 },
    ])
    const { id } = results[3] ?? {}
    t.match((await app.inject({ url: `/admin/users/${id}`, headers: asAdmin })).json(), {
      roles: ['a', 'b'],
      userMetadata: {},
      appMetadata: { a: 1 },
    })
  })
})

t.test('an account is serialised once for all requests, not for each', async t => {
  const app = await build(t, { hasher: quickHashing })
  const { id, token } = await signUp(app)
  await updateUser(app, id, { roles: ['a'], appMetadata: METADATA })
  await accountOf(app, token)
  const texts = t.capture(JSON, 'stringify', JSON.stringify)
  for (let index = 0; index < 3; index += 1)
    t.equal((await app.inject({ url: '/account', headers: bearer(token) })).statusCode, 200)
  t.equal(texts().filter(({ args }) => (args[0] as { email?: unknown })?.email !== undefined).length, 0)
})
