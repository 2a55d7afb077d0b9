/** When schemas are compiled (docs/design.md, "Start and idle memory"): in development at the start, else on demand. */
import type { FastifySchema } from 'fastify'
import t, { type Test } from 'tap'
import { serializerFactory } from '#http/serializer-compiler'
import { lazyJsonValidator, lazyQueryValidator } from '#http/validation/compile'
import { ADMIN_KEY, build, freshEmail, PASSWORD, signUp } from '../support/build.ts'

const PRODUCTION = { NODE_ENV: 'production', PUBLIC_URL: 'https://accounts.example.com' }

const DEVELOPMENT = { NODE_ENV: 'development' }

const BROKEN = { type: 'object', properties: { name: { type: 'text' } } }

const handler = async () => ({})

const buildWith = (t: Test, schema: FastifySchema, env: Record<string, string> = DEVELOPMENT) =>
  build(t, { env, extend: app => void app.post('/notes', { schema }, handler) })

t.test('in development an error in a schema stops the start', async t => {
  await t.resolves(build(t, { env: DEVELOPMENT }), 'the schemas of the service have none')
  await t.rejects(buildWith(t, { body: BROKEN }), {
    code: 'FST_ERR_SCH_VALIDATION_BUILD',
    message: /POST: \/notes, .*data\/properties\/name\/type/,
  })
  await t.rejects(buildWith(t, { querystring: BROKEN }), { code: 'FST_ERR_SCH_VALIDATION_BUILD' })
  await t.rejects(buildWith(t, { response: { 200: BROKEN } }), {
    code: 'FST_ERR_SCH_SERIALIZATION_BUILD',
    message: /POST: \/notes, .*data\/properties\/name\/type/,
  })
  for (const env of [PRODUCTION, { NODE_ENV: 'test' }])
    await t.resolves(buildWith(t, { body: BROKEN, response: { 200: BROKEN } }, env))
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
  const compile = serializerFactory('production')({})
  const serialize = compile({ method: 'GET', url: '/notes', httpStatus: '200', schema })
  t.equal(reads.count, 0)
  t.equal(serialize({ name: 'Ann', secret: 'x' }), '{"name":"Ann"}')
  const once = reads.count
  t.equal(serialize({ name: 'Bo' }), '{"name":"Bo"}')
  t.ok(once > 0 && reads.count === once)
})

t.test('undeclared input has the errors that the compiled schema would have', async t => {
  const app = await build(t, { env: PRODUCTION })
  for (const url of ['/health?b=1&a=2', '/health?__proto__=1', '/ready?a=%ff']) {
    const { statusCode, body } = await app.inject(url)
    const names = Array.from(url.matchAll(/[?&]([^=]+)/g), ([, name = '']) => name)
    t.equal(statusCode, 400)
    t.equal(body, `{"errors":{${names.map(name => `"${name}":["is not allowed"]`).join()}}}`)
  }
  t.equal((await app.inject('/health')).statusCode, 200)
})

t.test('a burst to a route whose schemas are not compiled yet has all its responses', async t => {
  const app = await build(t, { env: PRODUCTION })
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
