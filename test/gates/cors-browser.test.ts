/** CORS (docs/design.md, "Tokens and sessions") as a real browser enforces it, for pages of several origins. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { BrowserContext } from 'playwright-core'
import t, { type Test } from 'tap'
import { RATE_LIMITS } from '#core/rate-limits/limits'
import { launchBrowser, withoutBrowser } from '../support/browser.ts'
import { asAdmin, build, freshEmail, PASSWORD } from '../support/build.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { perAddress } from '../support/limits.ts'

/** Serves an empty page. @returns its port; `localhost` and `127.0.0.1` are two origins of it, and of two sites. */
const servePage = async (t: Test): Promise<number> => {
  const server = createServer((_request, response) =>
    response.setHeader('content-type', 'text/html').end('<!DOCTYPE html><title>Page</title>'),
  )
  await new Promise<void>(resolve => server.listen(0, () => resolve()))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

interface Sent {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: unknown
  readonly credentials?: 'include' | 'omit'
}

/** What a script of the page could read. */
interface Read {
  readonly status: number
  readonly headers: Record<string, string>
  // biome-ignore lint/suspicious/noExplicitAny: the body of any route
  readonly body: any
}

const skip = withoutBrowser

t.test('pages of other origins in a browser', { skip }, async t => {
  const [listed, both, unlisted] = [await servePage(t), await servePage(t), await servePage(t)]
  const app = await build(t, {
    hasher: quickHashing,
    env: {
      RATE_LIMIT: 'on',
      CORS_ORIGINS: `http://localhost:${listed},http://127.0.0.1:${listed},http://127.0.0.1:${both}`,
      ALLOWED_ORIGINS: `http://127.0.0.1:${both}`,
    },
    rateLimits: { ...RATE_LIMITS, perAddress: perAddress({ mail: 2 }) },
    extend: app =>
      app.get('/fails', () => {
        throw new Error('broken')
      }),
  })
  const service = await app.listen({ host: '127.0.0.1', port: 0 })
  const browser = await launchBrowser(t)

  /** Opens a page. @returns a function that sends a request from it: the response, or `null` if the page cannot read it. */
  const open = async (origin: string, context?: BrowserContext) => {
    const page = await (context ?? (await browser.newContext())).newPage()
    await page.goto(origin)
    return (path: string, { body, headers, ...rest }: Sent = {}): Promise<Read | null> =>
      page.evaluate(
        async ([url, init]) => {
          try {
            const response = await fetch(url, init)
            const text = await response.text()
            return {
              status: response.status,
              headers: Object.fromEntries(response.headers),
              body: text === '' ? null : JSON.parse(text),
            }
          } catch {
            return null
          }
        },
        [
          service + path,
          {
            ...rest,
            headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
            ...(body !== undefined && { body: JSON.stringify(body) }),
          },
        ] as const,
      )
  }

  const signUpFields = () => ({ email: freshEmail('cors'), password: PASSWORD })

  t.test('an allowed origin signs up and works with a bearer token', async t => {
    const send = await open(`http://localhost:${listed}`)
    const signedUp = await send('/account/sign-up', { method: 'POST', body: signUpFields() })
    t.match(signedUp, { status: 201, headers: { location: '/account' } })
    const headers = { authorization: `Bearer ${signedUp?.body.accessToken}` }
    const read = await send('/account', { headers })
    t.match(read, { status: 200, headers: { etag: '"1"' } })
    const change = { method: 'PUT', body: { firstName: 'Ada' } }
    t.match(await send('/account', { ...change, headers: { ...headers, 'if-match': '"1"' } }), {
      status: 200,
      body: { firstName: 'Ada' },
    })
    t.match(await send('/account/sign-out', { method: 'POST', headers }), { status: 204 })
    t.match(await send('/account', { headers }), { status: 401 })
  })

  t.test('it reads every error with its headers', async t => {
    const send = await open(`http://localhost:${listed}`)
    const errors = { errors: {} }
    t.match(await send('/account'), { status: 401, headers: { 'www-authenticate': 'Bearer' }, body: errors })
    const headers = { authorization: 'Bearer x', traceparent: '00-1-1-00' }
    const invalid = await send('/account', { headers })
    t.equal(invalid?.headers['www-authenticate'], 'Bearer error="invalid_token"')
    for (const method of ['GET', 'POST'])
      t.match(
        await send('/unknown', { method, headers }),
        { status: 404, body: errors },
        `unknown, ${method}`,
      )
    t.match(await send('/users', { method: 'POST', headers }), {
      status: 405,
      headers: { allow: 'GET, HEAD' },
      body: errors,
    })
    const signIn = { method: 'POST' }
    t.match(await send('/account/sign-in', { ...signIn, body: { email: 5 } }), { status: 400, body: errors })
    const large = { email: 'a'.repeat(20_000) }
    t.match(await send('/account/sign-in', { ...signIn, body: large }), { status: 413, body: errors })
    const text = { ...signIn, body: 'x', headers: { 'content-type': 'text/plain' } }
    t.match(await send('/account/sign-in', text), { status: 415, body: errors })
    const forgot = () => send('/account/forgot-password', { ...signIn, body: { email: freshEmail() } })
    t.match(await forgot(), { status: 202, headers: { ratelimit: /^"mail";r=0/ } })
    t.match(await forgot(), { status: 429, headers: { 'retry-after': /^\d+$/ }, body: errors })
    t.match(await send('/fails'), { status: 500, body: { errors: { global: ['broken'] } } })
  })

  t.test('it sends no admin key, and no method that the path does not have', async t => {
    const send = await open(`http://localhost:${listed}`)
    t.equal(await send('/admin/users', { headers: asAdmin }), null)
    t.equal(await send('/users', { method: 'DELETE' }), null)
    t.match(await send('/admin/users'), { status: 401 })
  })

  t.test('another origin reads nothing', async t => {
    for (const host of ['localhost', '127.0.0.1']) {
      const send = await open(`http://${host}:${unlisted}`)
      for (const path of ['/health', '/account', '/unknown']) t.equal(await send(path), null, path)
      t.equal(await send('/account', { headers: { authorization: 'Bearer x' } }), null)
      t.equal(await send('/account/sign-up', { method: 'POST', body: signUpFields() }), null)
    }
  })

  t.test('only origins that are also in ALLOWED_ORIGINS use the cookie', async t => {
    // Of one site, so that the browser sends the cookie.
    const context = await browser.newContext()
    const credentials = 'include'
    const own = await open(`http://127.0.0.1:${both}`, context)
    const payload = signUpFields()
    const created = await app.inject({ method: 'POST', url: '/admin/users', headers: asAdmin, payload })
    const signedIn = await own('/account/sign-in', { method: 'POST', body: payload, credentials })
    t.equal(signedIn?.status, 200)
    const read = () => own('/account', { credentials })
    t.match(await read(), { status: 200, body: { id: created.json().id } })
    const rename = (firstName: string) => ({ method: 'PUT', body: { firstName }, credentials }) as const
    t.match(await own('/account', rename('Own')), { status: 200 })

    for (const origin of [`http://127.0.0.1:${listed}`, `http://127.0.0.1:${unlisted}`]) {
      const other = await open(origin, context)
      t.equal(await other('/account', { credentials }), null, `${origin} does not read the account`)
      t.equal(await other('/account', rename('Other')), null, `${origin} does not change it`)
      const signOut = { method: 'POST', credentials } as const
      t.equal(await other('/account/sign-out', signOut), null, 'a request without a preflight')
      t.match(await read(), { status: 200, body: { firstName: 'Own' } })
    }
    const anonymous = await open(`http://127.0.0.1:${listed}`, context)
    t.match(await anonymous('/account', { credentials: 'omit' }), { status: 401 })
  })
})
