/** The client in Chromium (docs/design.md, "OpenAPI and client"). */
import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import t from 'tap'
import { launchBrowser, withoutBrowser } from '../support/browser.ts'
import { ADMIN_KEY, build, freshEmail, PASSWORD } from '../support/build.ts'
import { listen } from '../support/clients.ts'

const CLIENT = join(import.meta.dirname, '..', '..', 'client')

/** The functions that run in the page name the module by the URL from which the page loads it. */
type ClientModule = typeof import('../../client/client.ts')

t.test('the client works in a browser', { skip: withoutBrowser }, async t => {
  const app = await build(t, {
    extend: app =>
      app.get<{ Params: { file: string } }>('/client/:file', ({ params }, reply) =>
        reply
          .type('text/javascript')
          .send(stripTypeScriptTypes(readFileSync(join(CLIENT, params.file), 'utf8'))),
      ),
  })
  const baseUrl = await listen(app)
  const context = await (await launchBrowser(t)).newContext()
  const page = await context.newPage()
  await page.goto(`${baseUrl}/health`)

  t.test('with a token in memory: no cookie', async t => {
    const result = await page.evaluate(
      async ({ email, password }) => {
        const url = '/client/client.ts'
        const { createClient, isServiceError, memoryTokens } = (await import(url)) as ClientModule
        const gatehouse = createClient({ baseUrl: '', tokens: memoryTokens() })
        const anonymous = await gatehouse
          .getAccount()
          .catch(error => [isServiceError(error, 401), error.message])
        await gatehouse.signUp({ email, password, firstName: 'Ann' })
        const { firstName } = await gatehouse.getAccount()
        const taken = await gatehouse.signUp({ email, password }).catch(error => error.errors)
        const names: unknown[] = []
        for await (const profile of gatehouse.listProfiles({ search: 'ann' })) names.push(profile.firstName)
        const controller = new AbortController()
        const { signal } = controller
        const aborted = gatehouse.getAccount({ signal }).catch(reason => reason)
        controller.abort('left')
        return { anonymous, firstName, taken, names, aborted: await aborted }
      },
      { email: freshEmail(), password: PASSWORD },
    )
    t.same(result, {
      anonymous: [true, 'GET /account: 401: Sign in to use this route'],
      firstName: 'Ann',
      taken: { email: ['is already taken'] },
      names: ['Ann'],
      aborted: 'left',
    })
    t.same(await context.cookies(), [])
  })

  t.test('with the cookie: the token is not in the page', async t => {
    const result = await page.evaluate(
      async ({ email, password }) => {
        const url = '/client/client.ts'
        const { createClient } = (await import(url)) as ClientModule
        const gatehouse = createClient({ baseUrl: '/', credentials: 'same-origin' })
        await gatehouse.signUp({ email, password })
        const sessions = (await gatehouse.listSessions()).results.length
        const changed = await gatehouse.updateAccount({ lastName: 'Keeper' })
        await gatehouse.signOut()
        const status = await gatehouse.getAccount().catch(error => error.status)
        return { sessions, lastName: changed.lastName, status }
      },
      { email: freshEmail(), password: PASSWORD },
    )
    t.same(result, { sessions: 1, lastName: 'Keeper', status: 401 })
    t.same(await context.cookies(), [])
  })

  t.test('a stream of events', async t => {
    const result = await page.evaluate(
      async ({ email, password }) => {
        const url = '/client/client.ts'
        const { createClient, memoryTokens } = (await import(url)) as ClientModule
        const gatehouse = createClient({ baseUrl: '', tokens: memoryTokens() })
        await gatehouse.signUp({ email, password })
        const { nextCursor } = await gatehouse.listOwnEvents({ sort: 'at' }).page()
        await gatehouse.updateAccount({ lastName: 'Keeper' })
        await gatehouse.updateAccount({ lastName: 'Guard' })
        const types: string[] = []
        for await (const { event } of gatehouse.streamOwnEvents({ cursor: nextCursor ?? '' }))
          if (types.push(event.type) === 2) break
        const controller = new AbortController()
        const { signal } = controller
        const next = gatehouse.streamOwnEvents({}, { signal }).next()
        controller.abort('left')
        return { types, aborted: await next.catch(reason => reason) }
      },
      { email: freshEmail(), password: PASSWORD },
    )
    t.same(result, { types: ['user.changed', 'user.changed'], aborted: 'left' })
  })

  t.test('an import in several requests, and an export', async t => {
    const requests: string[] = []
    page.on('request', request => requests.push(`${request.method()} ${new URL(request.url()).pathname}`))
    const summary = await page.evaluate(
      async ({ adminKey, baseUrl, domain }) => {
        const url = '/client/client.ts'
        const { createAdminClient } = (await import(url)) as ClientModule
        const admin = createAdminClient({ baseUrl, adminKey })
        async function* users() {
          for (let index = 0; index < 1_000; index++) yield { email: `${index}@${domain}` }
        }
        let [lines, summary]: [number, unknown] = [0, null]
        for await (const result of admin.importUsers(users())) {
          if (result.line === lines + 1) lines += 1
          summary = result
        }
        let exported = 0
        for await (const user of admin.exportUsers()) if (user.email.endsWith(domain)) exported += 1
        return { lines, summary, exported }
      },
      { adminKey: ADMIN_KEY, baseUrl, domain: 'browser.example.com' },
    )
    t.same(summary, {
      lines: 1_000,
      summary: { status: 'finished', created: 1_000, exists: 0, failed: 0 },
      exported: 1_000,
    })
    t.same(requests, ['POST /admin/users/import', 'POST /admin/users/import', 'GET /admin/users/export'])
  })
})
