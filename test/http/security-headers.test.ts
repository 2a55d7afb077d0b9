/** `Strict-Transport-Security` in every response (HSTS; docs/design.md, "Failures and hostile input"). */
import t from 'tap'
import { bearer, build, signUp } from '../support/build.ts'
import { loadConfig } from '../support/config.ts'

const PRODUCTION = {
  NODE_ENV: 'production',
  PUBLIC_URL: 'https://accounts.example.com',
  ADMIN_KEY: 'kHq3-vT9x_zzR1-8f2mmQpLw0YbN4cd',
  JWT_SECRET: 'Zt4-Rr8w_q1LmX0-vB7n2KcJ5hGs9dPfYa3eUo6i',
}

t.test('every response has the header, in production behind https', async t => {
  const app = await build(t, { env: PRODUCTION })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const { token } = await signUp(app)
  const page = await fetch(`${url}/pages/style.css`)
  const requests: [status: number, path: string, init?: RequestInit][] = [
    [200, '/account', { headers: bearer(token) }],
    [200, '/account', { method: 'HEAD', headers: bearer(token) }],
    [200, '/health'],
    [200, '/sign-in'],
    [200, '/docs'],
    [200, '/openapi.json'],
    [200, '/pages/style.css'],
    [304, '/pages/style.css', { headers: { 'if-none-match': String(page.headers.get('etag')) } }],
    [303, '/docs/', { redirect: 'manual' }],
    [204, '/account/sign-out', { method: 'POST', headers: bearer(token) }],
    [400, '/%zz'],
    [400, '/account/sign-in', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{' }],
    [401, '/account'],
    [401, '/admin/users'],
    [404, '/nothing'],
    [405, '/health', { method: 'DELETE' }],
  ]
  for (const [status, path, init] of requests) {
    const response = await fetch(url + path, init)
    await response.arrayBuffer()
    t.equal(response.status, status, path)
    t.equal(response.headers.get('strict-transport-security'), 'max-age=31536000', `${status} ${path}`)
  }
})

t.test('the settings decide about the header', async t => {
  const value = 'max-age=600; includeSubDomains'
  for (const [name, env, expected] of [
    ['http', { PUBLIC_URL: 'http://accounts.example.com' }, null],
    ['without PUBLIC_URL', { PUBLIC_URL: '' }, null],
    ['development', { NODE_ENV: 'development' }, null],
    ['off', { HSTS: 'off' }, null],
    ['a value', { HSTS: 'max-age=600;includeSubDomains' }, value],
    ['a value in development', { NODE_ENV: 'development', HSTS: value }, value],
    ['a value that removes it from browsers', { HSTS: 'max-age=0' }, 'max-age=0'],
  ] as const)
    t.equal(loadConfig({ ...PRODUCTION, ...env }).hsts, expected, name)
  t.throws(() => loadConfig({ HSTS: value }), /HSTS needs a PUBLIC_URL with https/)
})

t.test('without it responses have none', async t => {
  const url = await (await build(t, { env: { ...PRODUCTION, HSTS: 'off' } })).listen({
    host: '127.0.0.1',
    port: 0,
  })
  for (const path of ['/health', '/nothing', '/%zz']) {
    const { headers } = await fetch(url + path)
    t.equal(headers.has('strict-transport-security'), false, path)
    t.ok(headers.has('x-request-id'))
  }
})
