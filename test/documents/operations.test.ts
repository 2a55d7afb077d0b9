/** Names of the operations in the OpenAPI document, from which client generators make methods (docs/design.md, "OpenAPI and client"). */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Type } from '@sinclair/typebox'
import t from 'tap'
import { build } from '../support/build.ts'
import { MAILED_SIGN_INS } from '../support/email-codes.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { documentOf, operationIds, operationsOf } from '../support/openapi.ts'

const RELEASES = join(import.meta.dirname, '..', 'releases')

/** Routes of a release that are gone (CHANGELOG.md). */
const REMOVED = ['POST /admin/warm-up']

/** By release, the operationId of each route that `npm run record-release` stored. A change of one breaks generated clients. */
const RELEASED = globSync('*/operations.json', { cwd: RELEASES }).map(file => ({
  file,
  released: JSON.parse(readFileSync(join(RELEASES, file), 'utf8')) as Record<string, string>,
}))

t.test('operationIds are camelCase, unique and stable', async t => {
  const app = await build(t, { env: MAILED_SIGN_INS, hasher: quickHashing })
  const document = await documentOf(app)
  const operations = operationsOf(document)
  const ids = Object.values(operations).map(({ operationId }) => operationId)
  for (const id of ids) t.match(id, /^[a-z][a-zA-Z\d]*$/)
  t.equal(new Set(ids).size, ids.length)
  const current = operationIds(document)
  for (const { file, released } of RELEASED) {
    for (const route of REMOVED) delete released[route]
    t.same(
      Object.fromEntries(Object.keys(released).map(route => [route, current[route]])),
      released,
      `the routes in test/releases/${file} keep their operationIds`,
    )
  }
  for (const [route, { summary, description, tags }] of Object.entries(operations))
    t.ok(summary && description && tags.length === 1, `${route}: summary, description, tag`)
})

const response = { 200: Type.Object({}) }
const list = { 200: Type.Object({ results: Type.Array(Type.String()) }) }

t.test('a route that declares no names gets them from its method and URL', async t => {
  const app = await build(t, {
    hasher: quickHashing,
    extend: app => {
      app.get('/stories', { schema: { response: list } }, () => ({ results: [] }))
      app.get('/boxes', { schema: { response: { 200: Type.Array(Type.String()) } } }, () => [])
      app.post('/stories', { schema: { response } }, () => ({}))
      app.post('/stories/import', { schema: { response } }, () => ({}))
      app.get('/stories/:id', { schema: { response } }, () => ({}))
      app.put('/stories/:id', { schema: { response } }, () => ({}))
      app.delete('/stories/:id', { schema: { response } }, () => ({}))
      app.post('/stories/:id/publish', { schema: { response } }, () => ({}))
      app.get('/stories/:id/page-marks/:mark', { schema: { response } }, () => ({}))
      app.get('/address', { schema: { response } }, () => ({}))
      app.get('/admin/stories', { schema: { response: list } }, () => ({ results: [] }))
      const own = { operationId: 'readAloud', tags: ['voices'], response }
      app.get('/stories/voice', { schema: own }, () => ({}))
    },
  })
  const operations = operationsOf(await documentOf(app))
  const names = Object.entries(operations)
    .filter(([route]) => /stor|box|address/.test(route))
    .map(([route, { operationId, tags }]) => [route, operationId, tags?.join()])
  t.same(names, [
    ['GET /stories', 'listStories', 'stories'],
    ['POST /stories', 'createStory', 'stories'],
    ['GET /boxes', 'listBoxes', 'boxes'],
    ['POST /stories/import', 'importStories', 'stories'],
    ['GET /stories/{id}', 'getStory', 'stories'],
    ['PUT /stories/{id}', 'updateStory', 'stories'],
    ['DELETE /stories/{id}', 'deleteStory', 'stories'],
    ['POST /stories/{id}/publish', 'publishStory', 'stories'],
    ['GET /stories/{id}/page-marks/{mark}', 'getStoryPageMark', 'stories'],
    ['GET /address', 'getAddress', 'address'],
    ['GET /admin/stories', 'listAdminStories', 'admin stories'],
    ['GET /stories/voice', 'readAloud', 'voices'],
  ])
})

t.test('the service does not start with one operationId for two routes', async t => {
  const twice = (schema: object) =>
    build(t, {
      hasher: quickHashing,
      extend: app => {
        app.get('/a-b', { schema: { response } }, () => ({}))
        app.get('/a/b', { schema: { response, ...schema } }, () => ({}))
      },
    })
  await t.rejects(twice({}), {
    message: 'GET /a-b and GET /a/b have the operationId getAB: declare another one in a schema',
  })
  await twice({ operationId: 'getB' })
})
