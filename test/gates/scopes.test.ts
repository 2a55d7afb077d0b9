import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { asAdmin, bearer, JWT_SECRET, signUp } from '../support/build.ts'
import { routesTree } from '../support/project-copy.ts'

const NOTES = `
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'

const Note = Type.Object({ text: Type.String({ minLength: 1 }) }, { additionalProperties: false })

const notes: FastifyPluginAsyncTypebox = async app => {
  app.get('/:name', { config: { scope: 'users:read' } }, async request => request.validatedData.params)
  app.post('', { config: { scope: 'users:read' }, schema: { body: Note, response: { 201: Note } } }, async (request, reply) => {
    reply.code(201)
    return { text: request.validatedData.body.text + ' by ' + request.user.id }
  })
}

export default notes
`

const USER_GATE = readFileSync(join(import.meta.dirname, '../../routes/private/autohooks.ts'), 'utf8')

const UNGATED = 'export default async function hooks(): Promise<void> {}\n'

t.test('a route file added to a scope is gated, validated and documented', async t => {
  const tree = routesTree(t, {
    'routes/private/shelves/routes.ts': NOTES,
    'routes/private/shelves/deep/er/routes.ts': NOTES,
    'routes/admin/reports/routes.ts': NOTES.replace("' by ' + request.user.id", "''")
      .replace('{}', "{ config: { scope: 'users:read' } }")
      .replace('{ schema', "{ config: { scope: 'users:read' }, schema"),
    'routes/private/shelves/helper.ts':
      'export default async function helper(): Promise<never> { throw new Error() }\n',
  })
  const app = await tree.build(t, { env: { JWT_SECRET } })
  const { id, token } = await signUp(app)

  for (const url of ['/shelves', '/shelves/deep/er']) {
    const payload = { text: 'remember' }
    const rejected = await app.inject({
      method: 'POST',
      url,
      payload: '{',
      headers: { 'content-type': 'application/json' },
    })
    t.equal(rejected.statusCode, 401, `${url} without a token, before the body is looked at`)
    const created = await app.inject({ method: 'POST', url, payload, headers: bearer(token) })
    t.equal(created.statusCode, 201)
    t.same(created.json(), { text: `remember by ${id}` })
    const invalid = await app.inject({
      method: 'POST',
      url,
      payload: { text: '', x: 1 },
      headers: bearer(token),
    })
    t.equal(invalid.statusCode, 400)
    const named = (name: string) => app.inject({ url: `${url}/${name}`, headers: bearer(token) })
    t.same((await named('caf%C3%A9')).json(), { name: 'café' }, 'a parameter without a schema is text')
    t.same(
      (await named('a%00b')).json(),
      { errors: { name: ['must not contain NUL'] } },
      'that a store can keep',
    )
    t.same(invalid.json(), { errors: { x: ['is not allowed'], text: ['must have at least 1 character'] } })
  }

  const admin = { method: 'POST', url: '/admin/reports', payload: { text: 'all' } } as const
  t.equal(
    (await app.inject({ ...admin, headers: bearer(token) })).statusCode,
    401,
    'a user is no administrator',
  )
  t.equal((await app.inject({ ...admin, headers: asAdmin })).statusCode, 201)

  const { paths } = (await app.inject('/openapi.json')).json()
  t.same(paths['/shelves'].post.security, [{ bearer: [] }, { cookie: [] }, { apiKey: [] }])
  t.same(Object.keys(paths['/shelves'].post.responses).sort(), [
    '201',
    '400',
    '401',
    '403',
    '408',
    '413',
    '415',
    '429',
    '431',
    '500',
    '503',
  ])
  t.same(paths['/admin/reports'].post.security, [{ adminKey: [] }])
})

t.test('the service does not start with a scope whose gate is missing or sets no gate', async t => {
  const broken: [string, Record<string, string | null>, RegExp][] = [
    ['missing', { 'routes/private/autohooks.ts': null }, /routes\/private\/autohooks\.ts is missing/],
    [
      'missing for administrators',
      { 'routes/admin/autohooks.ts': null },
      /routes\/admin\/autohooks\.ts is missing/,
    ],
    ['without a gate', { 'routes/private/autohooks.ts': UNGATED }, /routes\/private is not behind the gate/],
    [
      'of the other scope',
      { 'routes/admin/autohooks.ts': USER_GATE },
      /routes\/admin is not behind the gate/,
    ],
  ]
  for (const [name, files, expected] of broken) {
    await t.rejects(routesTree(t, files).build(t), { message: expected }, name)
  }
})
