import { existsSync } from 'node:fs'
import { dereference, validate } from '@readme/openapi-parser'
import { chromium } from 'playwright-core'
import t from 'tap'
import { asAdmin, bearer, build, signIn, signUp } from './support/build.ts'
import { liveRoutes } from './support/routes.ts'

const CHROMIUM = '/usr/bin/chromium'

const app = await build(t)
const routes = liveRoutes(app)
const document = (await app.inject('/openapi.json')).json()

t.test('the document is valid OpenAPI 3.1 and names every live route, no other (DESIGN §1)', async t => {
  t.match(document.openapi, /^3\.1\./)
  const result = await validate(structuredClone(document))
  t.ok(result.valid, JSON.stringify(result))
  const live = routes
    .filter(({ documentation, method }) => !documentation && method !== 'HEAD')
    .map(({ method, url }) => `${method.toLowerCase()} ${url.replace(/:(\w+)/g, '{$1}')}`)
  const documented = Object.entries<object>(document.paths).flatMap(([path, operations]) =>
    Object.keys(operations)
      .filter(method => method !== 'head')
      .map(method => `${method} ${path}`),
  )
  t.same(documented.sort(), live.sort())
  t.notMatch(
    JSON.stringify(document),
    /"(normalize|chosenPassword)":|"text":"/,
    'no keyword that only this service knows',
  )
})

t.test('each status that a route really answers is in the document (DESIGN §1)', async t => {
  const { token, email } = await signUp(app)
  const admin = await signUp(app)
  const answers = [
    [
      'post',
      '/account/sign-up',
      await app.inject({ method: 'POST', url: '/account/sign-up', payload: { email } }),
    ],
    ['post', '/account/sign-in', await signIn(app, email)],
    ['post', '/account/sign-in', await signIn(app, email, 'wrong')],
    ['get', '/account', await app.inject('/account')],
    ['get', '/account', await app.inject({ url: '/account', headers: bearer(token) })],
    ['get', '/users', await app.inject({ url: '/users?limit=0', headers: bearer(token) })],
    ['get', '/admin/users', await app.inject({ url: '/admin/users?count=true', headers: asAdmin })],
    [
      'put',
      '/admin/users/{id}',
      await app.inject({
        method: 'PUT',
        url: `/admin/users/${admin.id}`,
        headers: asAdmin,
        payload: { email },
      }),
    ],
  ] as const
  const { paths } = (await dereference(structuredClone(document))) as typeof document
  for (const [method, path, { statusCode, body }] of answers) {
    const response = paths[path][method].responses[statusCode]
    t.ok(response, `${method} ${path} ${statusCode}`)
    const { properties } = response.content['application/json'].schema
    t.same(
      Object.keys(JSON.parse(body)).filter(key => !(key in properties)),
      [],
      'no property besides those documented',
    )
  }
})

const skip = existsSync(CHROMIUM) ? false : "needs Debian's chromium"

t.test('the pages at /docs show the routes in a browser, from this service alone', { skip }, async t => {
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-sync',
      '--no-first-run',
    ],
  })
  t.teardown(() => browser.close())
  const page = await browser.newPage()
  const elsewhere: string[] = []
  const problems: string[] = []
  page.on('request', request => {
    if (!request.url().startsWith(url) && !request.url().startsWith('data:')) elsewhere.push(request.url())
  })
  page.on('console', message => {
    if (message.type() === 'error') problems.push(message.text())
  })
  await page.goto(`${url}/docs`)
  await page.waitForSelector('.opblock-summary-path')
  const shown = await page.locator('.opblock-summary-path').allTextContents()
  t.ok(
    shown.some(path => path.replaceAll('\u200b', '').includes('/account/sign-up')),
    shown.join(' '),
  )
  t.same(elsewhere, [], 'nothing is loaded from elsewhere')
  t.same(problems, [])
  if (process.env.SCREENSHOT) await page.screenshot({ path: process.env.SCREENSHOT, fullPage: true })
})
