/** When schemas are compiled (DESIGN §18): those of the service on demand, those of a team at the start. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { FastifyInstance, FastifySchema } from 'fastify'
import t from 'tap'
import { isOwnRoute } from '../../src/http/own-routes.ts'
import { buildSerializer } from '../../src/http/serializer-compiler.ts'
import { jsonValidator, lazyJsonValidator, lazyQueryValidator } from '../../src/validation/compile.ts'
import { ADMIN_KEY, build, freshEmail, PASSWORD, signUp, temporaryFolder } from '../support/build.ts'
import { EMAIL_CODES } from '../support/email-codes.ts'
import { buildHost } from '../support/host.ts'
import { liveRoutes } from '../support/routes.ts'

/** Every optional route. */
const EVERYTHING = { ...EMAIL_CODES, WEB_URL: 'https://web.example.com', DOCS: 'on' }

const compileAtStart = buildSerializer({})

/** What the service compiles on demand, at once. @throws {Error} for a schema that is not valid. */
const compileAll = ({ body, querystring, params, response = {} }: FastifySchema): void => {
  for (const input of [body, querystring, params]) if (input !== undefined) jsonValidator(input as object)
  for (const [httpStatus, schema] of Object.entries(response as Record<string, { content?: object }>)) {
    const schemas = schema.content === undefined ? [schema] : Object.values(schema.content)
    for (const one of schemas)
      compileAtStart({ method: 'GET', url: '/notes', httpStatus, schema: one.schema ?? one })
  }
}

t.test('every schema of the service compiles', async t => {
  const app = await build(t, { env: EVERYTHING })
  for (const { url, methods, options } of app.routeTable)
    t.doesNotThrow(() => compileAll(options.schema ?? {}), `${methods} ${url}`)
})

t.test('the service’s own routes are those of its folders', async t => {
  const app = await build(t, { env: EVERYTHING })
  for (const { url, ofFeature } of liveRoutes(app)) if (!ofFeature) t.ok(isOwnRoute(url), url)
  for (const url of ['/notes', '/admin/notes', '/accounts', '/admin', '/healthy/ready'])
    t.notOk(isOwnRoute(url), url)
})

const BROKEN = { type: 'object', properties: { name: { type: 'text' } } }

const handler = async () => ({})

t.test('an error in a schema of a team stops the start', async t => {
  const started = (extend: (app: FastifyInstance) => void) => build(t, { extend })
  await t.rejects(
    started(app => app.post('/notes', { schema: { body: BROKEN } }, handler)),
    { code: 'FST_ERR_SCH_VALIDATION_BUILD', message: /POST: \/notes, .*data\/properties\/name\/type/ },
  )
  await t.rejects(
    started(app => app.get('/admin/notes', { schema: { querystring: BROKEN } }, handler)),
    { code: 'FST_ERR_SCH_VALIDATION_BUILD' },
  )
  await t.rejects(
    started(app => app.get('/notes', { schema: { response: { 200: BROKEN } } }, handler)),
    { code: 'FST_ERR_SCH_SERIALIZATION_BUILD', message: /GET: \/notes, .*data\/properties\/name\/type/ },
  )
})

t.test('an error in a schema of a host stops the start, also below a path of the service', async t => {
  const folder = temporaryFolder(t)
  mkdirSync(join(folder, 'public/account/notes'), { recursive: true })
  const schema = JSON.stringify({ body: BROKEN })
  writeFileSync(
    join(folder, 'public/account/notes/routes.mjs'),
    `export default async app => { app.post('', { schema: ${schema} }, async () => ({})) }`,
  )
  await t.rejects(
    buildHost(t, { routes: pathToFileURL(folder), config: { NODE_ENV: 'test' } }).then(host => host.ready()),
    { code: 'FST_ERR_SCH_VALIDATION_BUILD', message: /POST: \/auth\/account\/notes/ },
  )
})

/** A schema that counts how often it is read. */
const counted = () => {
  const reads = { count: 0 }
  const schema = Object.defineProperty({ type: 'object' }, 'properties', {
    enumerable: true,
    get() {
      reads.count += 1
      return { name: { type: 'string', maxLength: 3 } }
    },
  })
  return { reads, schema }
}

t.test('a schema is compiled with the first value, once', async t => {
  for (const compile of [lazyJsonValidator, lazyQueryValidator]) {
    const { reads, schema } = counted()
    const validate = compile(schema)
    t.equal(reads.count, 0)
    t.equal(validate({ name: 'long' }), false)
    t.match(validate.errors, [{ keyword: 'maxLength' }])
    const once = reads.count
    for (const name of ['Ann', 'Bo']) t.equal(validate({ name }), true)
    t.equal(validate({ name: 'long' }), false)
    t.ok(once > 0 && reads.count === once)
  }
  const { reads, schema } = counted()
  const serialize = compileAtStart({ method: 'GET', url: '/account', httpStatus: '200', schema })
  t.equal(typeof serialize, 'function')
  const ownSerialize = buildSerializer({})({ method: 'GET', url: '/account', httpStatus: '200', schema })
  const before = reads.count
  t.equal(ownSerialize({ name: 'Ann', secret: 'x' }), '{"name":"Ann"}')
  const once = reads.count
  t.equal(ownSerialize({ name: 'Bo' }), '{"name":"Bo"}')
  t.ok(once > before && reads.count === once)
})

t.test('undeclared input has the errors that the compiled schema would have', async t => {
  const app = await build(t)
  for (const url of ['/health?b=1&a=2', '/health?__proto__=1', '/ready?a=%ff']) {
    const { statusCode, body } = await app.inject(url)
    const names = Array.from(url.matchAll(/[?&]([^=]+)/g), ([, name = '']) => name)
    t.equal(statusCode, 400)
    t.equal(body, `{"errors":{${names.map(name => `"${name}":["is not allowed"]`).join()}}}`)
  }
  t.equal((await app.inject('/health')).statusCode, 200)
})

t.test('a burst to a route whose schemas are not compiled yet has all its responses', async t => {
  const app = await build(t)
  const { email } = await signUp(app)
  const headers = { 'x-admin-key': ADMIN_KEY }
  const requests = Array.from({ length: 30 }, (_, index) => {
    if (index % 3 === 0)
      return app.inject({ method: 'POST', url: '/account/sign-in', payload: { email, password: PASSWORD } })
    if (index % 3 === 1)
      return app.inject({ method: 'POST', url: '/account/sign-in', payload: { email: 1, more: index } })
    return app.inject({ url: `/admin/users?limit=${index}&email=${freshEmail()}`, headers })
  })
  for (const [index, { statusCode, body }] of (await Promise.all(requests)).entries()) {
    if (index % 3 === 1)
      t.strictSame(JSON.parse(body), {
        errors: { more: ['is not allowed'], password: ['is required'], email: ['must be string'] },
      })
    else t.equal(statusCode, 200, body)
  }
})
