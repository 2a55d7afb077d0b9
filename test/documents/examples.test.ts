/**
 * Examples in the OpenAPI document: every body has one, valid by its schema and accepted by the service (docs/design.md, "OpenAPI and
 * client").
 */
import { dereference } from '@readme/openapi-parser'
import { Type } from '@sinclair/typebox'
import ajv2020 from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import type { InjectOptions } from 'fastify'
import t from 'tap'
import { PLACEHOLDER } from '#http/openapi/bodies'
import { toLines } from '#http/validation/ndjson'
import { EXAMPLE_PASSWORD } from '#http/validation/schemas'
import { asAdmin, bearer, build, signUp } from '../support/build.ts'
import { NDJSON } from '../support/bulk-users.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { liveRoutes } from '../support/routes.ts'

/** Nothing is sent to the hosts of the document. */
const resolveHost = () => Promise.reject(Object.assign(new Error('unknown'), { syscall: 'getaddrinfo' }))

const app = await build(t, { hasher: quickHashing, resolveHost })
const document = (await dereference((await app.inject('/openapi.json')).json())) as { paths: object }

interface Media {
  readonly schema: object
  readonly example?: unknown
}

interface Body {
  readonly content?: Readonly<Record<string, Media>>
}

interface Operation {
  readonly requestBody?: Body
  readonly responses: Readonly<Record<string, Body>>
}

const operationsOf = ({ paths }: { paths: object }) =>
  Object.entries<Record<string, Operation>>(paths as never).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      operation,
    })),
  )

/** The bodies of requests and successful responses. */
const bodiesOf = (operations: ReturnType<typeof operationsOf>) =>
  operations.flatMap(({ method, path, operation: { requestBody, responses } }) => {
    const bodies = { request: requestBody, ...responses }
    return Object.entries(bodies).flatMap(([status, body]) =>
      Number(status) >= 400
        ? []
        : Object.values(body?.content ?? {}).map(media => ({
            title: `${method} ${path}: ${status}`,
            ...media,
          })),
    )
  })

const ajv = new ajv2020.Ajv2020({ allowUnionTypes: true })
formats.default(ajv)
ajv.addFormat('password', true)

t.test('every request body and successful response has an example that is valid by its schema', t => {
  const bodies = bodiesOf(operationsOf(document))
  t.ok(bodies.length > 40)
  for (const { title, schema, example } of bodies)
    t.ok(ajv.validate(schema, example), `${title}: ${JSON.stringify(example)} ${ajv.errorsText()}`)
  t.end()
})

const ofFeature = new Set(
  liveRoutes(app)
    .filter(route => route.ofFeature)
    .map(({ url }) => url.replace(/:(\w+)/g, '{$1}')),
)

t.test('the text of examples is declared: `examples` of the schema, a format or an enumeration', t => {
  const core = operationsOf(document).filter(({ path }) => !ofFeature.has(path))
  for (const { title, example } of bodiesOf(core))
    t.notOk(
      JSON.stringify(example).includes(`"${PLACEHOLDER}"`),
      `${title}: declare \`examples\` of the text in ${JSON.stringify(example)}`,
    )
  t.end()
})

t.test('the service accepts the examples of request bodies', async t => {
  for (const { method, path, operation } of operationsOf(document)) {
    const content = operation.requestBody?.content
    if (content === undefined) continue
    const signedUp = await signUp(app, { password: EXAMPLE_PASSWORD })
    const credentials = path.startsWith('/admin') ? asAdmin : bearer(signedUp.token)
    const [[type = '', { example = {} } = {}] = []] = Object.entries(content)
    const lines = type === NDJSON['content-type'] && { payload: toLines([example as object]) }
    const response = await app.inject({
      method: method as InjectOptions['method'] & string,
      url: path.replace(/\{\w+\}/g, signedUp.id),
      headers: { ...credentials, 'content-type': type },
      payload: example as object,
      ...lines,
    })
    const title = `${method} ${path}: ${response.body}`
    t.ok(response.statusCode < 500, title)
    if (lines) t.match(response.body, /^{"line":1,"status":"(created|exists)"/, title)
    // No token and no credential of the document is valid, and no host exists. Features may have more of that kind.
    else if (response.statusCode === 400 && !ofFeature.has(path))
      t.match(Object.keys(response.json().errors).join(), /^(token|credential|url)$/, title)
    t.notOk([413, 415].includes(response.statusCode), title)
  }
})

const Deep = Type.Object({
  either: Type.Union([Type.Object({ count: Type.Integer({ minimum: 3 }) }), Type.Null()]),
  items: Type.Array(Type.Number()),
  text: Type.String(),
  kind: Type.Unsafe<string>({ type: 'string', enum: ['small', 'large'] }),
  on: Type.String({ format: 'date' }),
  title: Type.Unsafe<string | null>({ type: ['string', 'null'], examples: ['a title'] }),
  userMetadata: Type.Unsafe<object>({ type: 'object', title: 'UserMetadata' }),
})

t.test('a route that declares no examples gets them from its schemas', async t => {
  const own = await build(t, {
    hasher: quickHashing,
    extend: app => {
      const Given = Type.Object({ text: Type.String() }, { examples: [{ text: 'of the route' }] })
      app.post('/deep', { schema: { body: Given, response: { 200: Deep, 204: Type.Null() } } }, () => ({}))
    },
  })
  const { paths, components } = (await own.inject('/openapi.json')).json()
  const { requestBody, responses } = paths['/deep'].post
  const request = requestBody.content['application/json']
  t.same(request.example, { text: 'of the route' })
  t.same(request.schema, { $ref: '#/components/schemas/DeepRequest' })
  t.same(components.schemas.DeepRequest.required, ['text'])
  t.notOk('content' in responses['204'])
  t.same(responses['200'].content['application/json'], {
    schema: { $ref: '#/components/schemas/DeepResponse' },
    example: {
      either: { count: 3 },
      items: [1],
      text: PLACEHOLDER,
      kind: 'small',
      on: '2026-11-02',
      title: 'a title',
      userMetadata: { theme: 'dark' },
    },
  })
})

t.test('two schemas of one title: the second stays in its place', async t => {
  const own = await build(t, {
    hasher: quickHashing,
    extend: app => {
      const same = (type: object) => ({ 200: Type.Object({ id: Type.Unsafe(type) }, { title: 'Thing' }) })
      app.get('/first', { schema: { response: same({ type: 'string' }) } }, () => ({ id: 'a' }))
      app.get('/again', { schema: { response: same({ type: 'string' }) } }, () => ({ id: 'a' }))
      app.get('/other', { schema: { response: same({ type: 'integer' }) } }, () => ({ id: 1 }))
    },
  })
  const { paths } = (await own.inject('/openapi.json')).json()
  const schemaOf = (path: string) => paths[path].get.responses['200'].content['application/json'].schema
  for (const path of ['/first', '/again']) t.same(schemaOf(path), { $ref: '#/components/schemas/Thing' })
  t.equal(schemaOf('/other').properties.id.type, 'integer')
})
