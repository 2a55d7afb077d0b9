/** Routes of features that the service cannot tell apart from others: one sentence at the start (docs/design.md, "Features"). */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import type { Feature } from '#feature/declaration'
import { build, temporaryFolder } from '../support/build.ts'
import { announcements } from './announcements.ts'
import { labels } from './labels.ts'

/** The feature with a folder of these files, by path. */
const withRoutes = (t: Test, feature: Feature, files: Readonly<Record<string, string>>): Feature => {
  const folder = temporaryFolder(t)
  for (const [path, body] of Object.entries(files)) {
    const file = join(folder, path)
    mkdirSync(join(file, '..'), { recursive: true })
    writeFileSync(file, `export default async function (app) { ${body} }`)
  }
  return { ...feature, routes: pathToFileURL(`${folder}/`) }
}

const GET = "app.get('', async () => 'ok')"

const refuses = (t: Test, message: string, ...features: readonly Feature[]) =>
  t.rejects(build(t, { features }), { code: 'FEATURE', message })

t.test('a URL that is declared twice names who declares it', async t => {
  const declares = (feature: Feature, path: string, body = GET) =>
    withRoutes(t, feature, { [`${path}/routes.js`]: body })
  await refuses(
    t,
    'The route GET /account is declared twice: by the core and by the feature labels',
    declares(labels, 'public/account'),
  )
  await refuses(
    t,
    'The route GET /openapi.json is declared twice: by the core and by the feature labels',
    declares(labels, 'private/openapi.json'),
  )
  await refuses(
    t,
    'The route GET /things is declared twice: by the feature labels and by the feature announcements',
    declares(labels, 'public/things'),
    declares(announcements, 'private/things'),
  )
  await refuses(
    t,
    'The route GET /things/:name is declared twice: by the feature labels and by the feature announcements',
    declares(labels, 'private/things/_id'),
    declares(announcements, 'private/things/_name'),
  )
  await refuses(
    t,
    'The route HEAD /things is declared twice: by the feature labels and by the feature announcements',
    declares(labels, 'public/things'),
    declares(announcements, 'public/things', "app.head('', async () => 'ok')"),
  )
  await refuses(
    t,
    'The route GET /things is declared twice: by the feature labels and by the feature labels',
    withRoutes(t, labels, { 'public/things/routes.js': GET, 'private/things/routes.js': GET }),
  )
  const [head, post] = ["app.head('', async () => 'ok')", "app.post('', async () => 'ok')"]
  const app = await build(t, {
    features: [
      declares(labels, 'public/things', `${head}; ${GET}`),
      declares(announcements, 'public/things', post),
    ],
  })
  for (const method of ['GET', 'HEAD', 'POST'] as const)
    t.equal((await app.inject({ method, url: '/things' })).statusCode, 200, method)
})

t.test('constraints are refused, also those of a hook', async t => {
  const message = (route: string) =>
    `The route ${route} of the feature labels has constraints: remove them, because a URL has one route for each method`
  const constrained = (constraints: string) =>
    `app.get('', { constraints: ${constraints} }, async () => 'ok')`
  for (const constraints of ["{ host: 'a.example' }", "{ version: '1.0.0' }"])
    await refuses(
      t,
      message('GET /account'),
      withRoutes(t, labels, { 'public/account/routes.js': constrained(constraints) }),
    )
  const hook = "app.addHook('onRoute', route => { route.constraints = { host: 'a.example' } })"
  await refuses(
    t,
    message('GET /things'),
    withRoutes(t, labels, { 'private/things/autohooks.js': hook, 'private/things/routes.js': GET }),
  )
  await build(t, { features: [withRoutes(t, labels, { 'public/things/routes.js': constrained('{}') })] })
})
