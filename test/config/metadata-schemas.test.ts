/** USER_METADATA_SCHEMA and APP_METADATA_SCHEMA (docs/design.md, "Contract"). */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { validate } from '@readme/openapi-parser'
import t, { type Test } from 'tap'
import { ConfigError } from '#base/settings/readers'
import { accountOf, call } from '../support/account-routes.ts'
import { createUser, postUser } from '../support/admin-routes.ts'
import {
  asAdmin,
  bearer,
  build,
  freshEmail,
  JWT_SECRET,
  signUp,
  temporaryFolder,
  updateUser,
} from '../support/build.ts'
import { importAll } from '../support/bulk-users.ts'
import { runCli } from '../support/cli.ts'
import { loadConfig } from '../support/config.ts'
import { errorsOf } from '../support/error-response.ts'
import { quickHashing } from '../support/fake-hashing.ts'

const USER_SCHEMA = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  $id: 'https://example.com/user.schema.json',
  type: 'object',
  properties: {
    address: { $ref: '#/$defs/address' },
    birthday: { type: 'string', format: 'date' },
    point: { type: 'array', prefixItems: [{ type: 'number' }, { type: 'number' }], items: false },
    children: { type: 'array', items: { $ref: '#' } },
    language: { enum: ['de', 'en'] },
    code: { type: 'string', pattern: '^[A-Z]+$' },
  },
  required: ['address'],
  unevaluatedProperties: false,
  $defs: {
    address: {
      type: 'object',
      properties: { city: { type: 'string', minLength: 2 }, zip: { type: 'string' } },
      required: ['city'],
      additionalProperties: false,
    },
  },
}

const APP_SCHEMA = {
  type: 'object',
  properties: { plan: { enum: ['free', 'pro'] } },
  additionalProperties: { type: 'number' },
}

const fileWith = (t: Test, content: unknown): string => {
  const file = join(temporaryFolder(t), 'schema.json')
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
  return file
}

const schemaEnv = (t: Test) => ({
  USER_METADATA_SCHEMA: fileWith(t, USER_SCHEMA),
  APP_METADATA_SCHEMA: fileWith(t, APP_SCHEMA),
})

const WRONG: [unknown, Record<string, string[]>][] = [
  [{}, { 'userMetadata.address': ['is required'] }],
  [{ address: {} }, { 'userMetadata.address.city': ['is required'] }],
  [
    { address: { city: 'x', street: 1 } },
    {
      'userMetadata.address.city': ['must have at least 2 characters'],
      'userMetadata.address.street': ['is not allowed'],
    },
  ],
  [{ address: { city: 'Rom' }, shoe: 1 }, { 'userMetadata.shoe': ['is not allowed'] }],
  [
    { address: { city: 'Rom' }, birthday: '2026-02-30' },
    { 'userMetadata.birthday': ['must be a valid date'] },
  ],
  [{ address: { city: 'Rom' }, point: [1, '2'] }, { 'userMetadata.point.1': ['must be number'] }],
  [{ address: { city: 'Rom' }, language: 'fr' }, { 'userMetadata.language': ['must be one of de, en'] }],
  [{ address: { city: 'Rom' }, code: 'a' }, { 'userMetadata.code': ['must match pattern "^[A-Z]+$"'] }],
  [
    { address: { city: 'Rom' }, children: [{ address: { city: 'Rom' } }, { address: 1 }] },
    { 'userMetadata.children.1.address': ['must be object'] },
  ],
]

const GOOD = {
  address: { city: 'Rom', zip: '1' },
  birthday: '2000-02-29',
  point: [1, 2],
  children: [],
  language: 'de',
  code: 'A',
}

t.test('metadata must match its schema wherever it is written, and violations are fields', async t => {
  const app = await build(t, { env: schemaEnv(t), hasher: quickHashing })
  const { id, token } = await signUp(app)
  t.strictSame((await accountOf(app, token)).userMetadata, {}, 'new users have none, whatever it requires')
  const put = (userMetadata: unknown) => call(app, 'PUT', '/account', { userMetadata }, bearer(token))
  for (const [userMetadata, expected] of WRONG) {
    t.strictSame(errorsOf(t, await put(userMetadata), 400, JSON.stringify(userMetadata)), expected)
    t.strictSame(errorsOf(t, await updateUser(app, id, { userMetadata }), 400), expected)
    t.strictSame(errorsOf(t, await postUser(app, { email: freshEmail(), userMetadata }), 400), expected)
    t.match(await importAll(app, [{ email: freshEmail(), userMetadata }]), [
      { status: 'failed', errors: expected },
      {},
    ])
  }
  const accepted = await put(GOOD)
  t.equal(accepted.statusCode, 200)
  t.strictSame(accepted.json().userMetadata, GOOD, 'unchanged')
  const plan = errorsOf(t, await updateUser(app, id, { appMetadata: { plan: 'gold', seats: '3' } }), 400)
  t.strictSame(plan, {
    'appMetadata.plan': ['must be one of free, pro'],
    'appMetadata.seats': ['must be number'],
  })
  t.equal((await updateUser(app, id, { appMetadata: { plan: 'pro', seats: 3 } })).statusCode, 200)
  const nul = errorsOf(t, await put({ shoe: '\u0000' }), 400)
  t.strictSame(nul, { 'userMetadata.shoe': ['must not contain NUL'] }, 'the rules of all metadata come first')
})

t.test('each app of a process has schemas of its own', async t => {
  const plans = ['free', 'pro']
  for (const plan of plans) {
    const schema = { type: 'object', properties: { plan: { const: plan } } }
    const env = { USER_METADATA_SCHEMA: fileWith(t, schema), APP_METADATA_SCHEMA: fileWith(t, schema) }
    const app = await build(t, { env, hasher: quickHashing })
    const { id, token } = await signUp(app)
    for (const value of plans) {
      const metadata = { plan: value }
      const expected = value === plan ? 200 : 400
      const responses = [
        await call(app, 'PUT', '/account', { userMetadata: metadata }, bearer(token)),
        await updateUser(app, id, { appMetadata: metadata }),
      ]
      t.strictSame(
        responses.map(({ statusCode }) => statusCode),
        [expected, expected],
        `${value} where only ${plan} is valid`,
      )
    }
  }
})

t.test('a schema may refer to itself, with and without an id', async t => {
  const schema = { type: 'object', properties: { a: { $ref: '#' } }, additionalProperties: false }
  for (const content of [schema, { $id: 'https://example.com/schema.json', ...schema }]) {
    const { metadataSchemas } = loadConfig({ APP_METADATA_SCHEMA: fileWith(t, content) })
    t.strictSame(metadataSchemas.app?.validate({ a: { a: {} } }), [])
    t.match(metadataSchemas.app?.validate({ a: { a: { b: 1 } } }), [{ instancePath: '/a/a' }])
  }
})

t.test('what was stored before a schema stays readable, and other fields changeable', async t => {
  const DATABASE_URL = `sqlite:${join(temporaryFolder(t), 'test.db')}`
  const before = await build(t, { env: { DATABASE_URL }, hasher: quickHashing })
  const { token, id } = await signUp(before)
  await updateUser(before, id, { userMetadata: { shoe: 44 }, appMetadata: { plan: 'gold' } })
  const app = await build(t, { env: { DATABASE_URL, ...schemaEnv(t) }, hasher: quickHashing })
  const old = { userMetadata: { shoe: 44 }, appMetadata: { plan: 'gold' } }
  t.match(await accountOf(app, token), old)
  t.match((await call(app, 'PUT', '/account', { firstName: 'Ann' }, bearer(token))).json(), old)
  t.match((await app.inject({ url: `/admin/users/${id}`, headers: asAdmin })).json(), old)
})

t.test('the OpenAPI document has the schemas, with references that resolve', async t => {
  const document = async (env: Record<string, string>) =>
    (await (await build(t, { env, hasher: quickHashing })).inject('/openapi.json')).json()
  const own = await document(schemaEnv(t))
  const result = await validate(structuredClone(own))
  t.ok(result.valid, JSON.stringify(result))
  const { schemas } = own.components
  t.match(schemas.UserMetadata.properties.address, {
    $ref: '#/components/schemas/UserMetadata/$defs/address',
  })
  t.match(schemas.UserMetadata.properties.children.items, { $ref: '#/components/schemas/UserMetadata' })
  t.notOk('$id' in schemas.UserMetadata || '$schema' in schemas.UserMetadata)
  t.strictSame(schemas.AppMetadata, { title: 'AppMetadata', ...APP_SCHEMA })
  const any = (await document({})).components.schemas
  t.strictSame(any.UserMetadata, { title: 'UserMetadata', type: 'object', additionalProperties: true })
  for (const { components, paths } of [own, await document({})]) {
    for (const name of ['Account', 'AdminUser'])
      t.match(components.schemas[name].properties, {
        roles: { type: 'array' },
        userMetadata: { $ref: '#/components/schemas/UserMetadata' },
        appMetadata: { $ref: '#/components/schemas/AppMetadata' },
      })
    const bodyOf = (path: string, method: string) => {
      const { schema } = paths[path][method].requestBody.content['application/json']
      return components.schemas[schema.$ref.split('/').at(-1)].properties
    }
    t.match(bodyOf('/account', 'put'), { userMetadata: { $ref: '#/components/schemas/UserMetadata' } })
    for (const [path, method] of [
      ['/admin/users', 'post'],
      ['/admin/users/{id}', 'put'],
    ] as const)
      t.match(bodyOf(path, method), {
        roles: { maxItems: 32 },
        appMetadata: { $ref: '#/components/schemas/AppMetadata' },
      })
    t.match(components.schemas.ImportedUser.properties.appMetadata, {
      $ref: '#/components/schemas/AppMetadata',
    })
    t.notMatch(JSON.stringify([components, paths]), /"metadata":/)
  }
})

t.test('a file that cannot be used stops the start with one sentence', t => {
  const messageOf = (name: string, file: string): string => {
    try {
      loadConfig({ [name]: file })
    } catch (error) {
      if (error instanceof ConfigError) return error.message.split('\n').slice(1).join('\n').trim()
      throw error
    }
    return ''
  }
  const wrong: [unknown, RegExp][] = [
    ['', /names a file that is not valid JSON: /],
    ['{"type":"object"', /names a file that is not valid JSON: /],
    ['[]', /names a file that is not a JSON Schema \(2020-12\): .* \(it must be a JSON object\)$/],
    ['true', /\(it must be a JSON object\)$/],
    [{ type: 'objekt' }, /is not a JSON Schema \(2020-12\): .*type/],
    [{ properties: { a: { minLength: -1 } } }, /is not a JSON Schema/],
    [{ typ: 'object' }, /unknown keyword: "typ"/],
    [{ properties: { a: { type: 'string', format: 'zip' } } }, /unknown format "zip"/],
    [{ properties: { a: { type: 'string', pattern: '(' } } }, /is not a JSON Schema/],
    [
      { $ref: 'https://example.com/other.json' },
      /refers to https:\/\/example\.com\/other\.json: only references within the file/,
    ],
    [{ properties: { a: { items: { $ref: 'other.json#/a' } } } }, /refers to other\.json#\/a: only/],
    [{ $async: true, type: 'object' }, /\(it must not have \$async\)$/],
    [{ allOf: [{ $ref: '#' }] }, /\(it refers to itself without end\)$/],
    [{ $ref: '#/$defs/missing' }, /can't resolve reference #\/\$defs\/missing/],
    [{ $schema: 'http://json-schema.org/draft-07/schema#' }, /no schema with key or ref/],
  ]
  for (const name of ['USER_METADATA_SCHEMA', 'APP_METADATA_SCHEMA']) {
    for (const [content, expected] of wrong) {
      const file = fileWith(t, content)
      const message = messageOf(name, file)
      t.match(message, expected, JSON.stringify(content))
      t.ok(
        message.startsWith(`${name} names a file`) && message.includes(file) && !message.includes('\n'),
        message,
      )
    }
    t.match(
      messageOf(name, '/nowhere/schema.json'),
      `${name} names a file that cannot be read: /nowhere/schema.json (ENOENT)`,
    )
    t.match(messageOf(name, temporaryFolder(t)), /cannot be read: .* \(EISDIR\)/)
    t.match(
      messageOf(name, 'wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY'),
      new RegExp(`^${name} names a file that cannot be read \\(ENOENT\\)$`),
    )
  }
  t.equal(messageOf('USER_METADATA_SCHEMA', ''), '', 'an empty variable counts as not set')
  t.end()
})

t.test('the command line validates by the same schemas', async t => {
  const env = { DATABASE_URL: `sqlite:${join(temporaryFolder(t), 'test.db')}`, JWT_SECRET, ...schemaEnv(t) }
  const app = await build(t, { env, hasher: quickHashing })
  await createUser(app)
  const create = (...options: string[]) =>
    runCli(['users', 'create', freshEmail(), ...options, '--json'], env).ended
  const [refused, created] = await Promise.all([
    create('--user-metadata', '{"address":{}}', '--app-metadata', '{"plan":"gold"}'),
    create('--user-metadata', '{"address":{"city":"Rom"}}', '--app-metadata', '{"plan":"pro"}'),
  ])
  t.match(refused, { code: 2, stdout: '' })
  t.match(refused.stderr, /userMetadata\.address\.city is required/)
  t.match(refused.stderr, /appMetadata\.plan must be one of free, pro/)
  t.match(JSON.parse(created.stdout), {
    userMetadata: { address: { city: 'Rom' } },
    appMetadata: { plan: 'pro' },
  })
  const broken = await runCli(['users', 'list'], { ...env, APP_METADATA_SCHEMA: '/nowhere/schema.json' })
    .ended
  t.match(broken, { code: 2, stderr: /APP_METADATA_SCHEMA names a file that cannot be read/ })
})
