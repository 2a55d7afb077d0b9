/** What protects the console: the admin key, the cookie, other sites, scopes, hostile text. */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { RATE_LIMITS } from '#core/rate-limits/limits'
import { createKey, revokeKey } from '../support/admin-keys.ts'
import { ADMIN_KEY, asAdmin, build, manualClock, signUp, updateUser } from '../support/build.ts'
import { signedInTo } from '../support/console.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { FormClient } from '../support/form-client.ts'

const ENV = { CONSOLE: 'on' }
const COOKIE = 'gatehouse-console'
const MINUTE = 60_000

const cookieOf = (client: FormClient) => ({ cookie: `${COOKIE}=${client.cookie(COOKIE)}` })

/** Every page of the console with a GET. */
const pagesOf = (app: FastifyInstance): readonly string[] =>
  app.routeTable
    .filter(({ url, methods }) => url.startsWith('/console') && methods.includes('GET'))
    .map(({ url }) => url)

await onEnginesOfRun(t, async (t, { build }) => {
  const clock = manualClock(Date.now())
  const app = await build(t, {
    clock: clock.now,
    env: { ...ENV, ENCRYPTION_KEY: 'test-encryption-key-0123456789abcdef0123456789abcdef' },
  })

  t.test('a session ends after 30 minutes without a page, and after 12 hours', async t => {
    const idle = await signedInTo(app)
    const used = await signedInTo(app)
    clock.advance(29 * MINUTE)
    await used.open('/console/users')
    clock.advance(2 * MINUTE)
    await idle.open('/console/users')
    t.equal(idle.path, '/console/sign-in')
    t.match(idle.page, 'Your session of the console has ended.')
    for (let time = 31; time < 12 * 60; time += 25) {
      await used.open('/console/users')
      t.equal(used.path, '/console/users', `after ${time} minutes`)
      clock.advance(25 * MINUTE)
    }
    await used.open('/console/users')
    t.equal(used.path, '/console/sign-in')
  })

  t.test('a refresh by the script does not count as a use', async t => {
    const client = await signedInTo(app)
    const refreshing = { ...cookieOf(client), 'console-refresh': '1' }
    clock.advance(20 * MINUTE)
    t.equal((await app.inject({ url: '/console/events', headers: refreshing })).statusCode, 200)
    clock.advance(11 * MINUTE)
    t.equal((await app.inject({ url: '/console/events', headers: refreshing })).statusCode, 303)
  })

  t.test('the stream does not count as a use, and is no way back', async t => {
    const client = await signedInTo(app)
    const headers = cookieOf(client)
    clock.advance(20 * MINUTE)
    t.equal((await app.inject({ url: '/console/events/live', headers })).statusCode, 200)
    clock.advance(11 * MINUTE)
    const response = await app.inject({ url: '/console/events/live', headers })
    t.equal(response.headers.location, '../../console/sign-in')
  })

  t.test('S5: a session ends with its key: revoked, or expired', async t => {
    const revoked = await createKey(app, ['users:read'])
    const expiring = await createKey(app, ['users:read'], {
      expiresAt: new Date(clock.now() + 10 * MINUTE).toISOString(),
    })
    const clients = [await signedInTo(app, revoked.text), await signedInTo(app, expiring.text)]
    await revokeKey(app, revoked.id)
    clock.advance(11 * MINUTE)
    for (const client of clients) {
      await client.open('/console/users')
      t.equal(client.path, '/console/sign-in')
      t.equal(client.cookie(COOKIE), undefined)
    }
  })

  t.test('a secret of the browser is no key, and the store has neither secret nor key', async t => {
    const client = await signedInTo(app)
    const secret = client.cookie(COOKIE) ?? ''
    t.match(secret, /^[\w-]{43}$/)
    t.equal((await app.inject({ url: '/admin/users', headers: { 'x-admin-key': secret } })).statusCode, 401)
    const forged = { cookie: `${COOKIE}=${'A'.repeat(43)}` }
    t.equal((await app.inject({ url: '/console/users', headers: forged })).statusCode, 303)
    await client.submit('sign-out')
    const after = { cookie: `${COOKIE}=${secret}` }
    t.equal((await app.inject({ url: '/console/users', headers: after })).statusCode, 303, 'signed out')
  })
})

t.test('the console', async t => {
  const app = await build(t, { env: ENV })

  t.test('G10: the key is in no URL, no page, no header, and no cookie', async t => {
    const client = await signedInTo(app)
    const headers = cookieOf(client)
    const paths = pagesOf(app).filter(url => !url.includes(':') && !url.endsWith('/live'))
    for (const path of paths) {
      const url = path.includes('/bulk/') ? `${path}?id:${randomUUID()}=on` : path
      const response = await app.inject({ url, headers })
      t.equal(response.statusCode, url.endsWith('*') ? 404 : 200, url)
      t.notOk(response.body.includes(ADMIN_KEY), url)
      t.notOk(JSON.stringify(response.headers).includes(ADMIN_KEY), url)
      t.equal(response.headers['cache-control'], 'no-store', url)
      t.equal(response.headers['referrer-policy'], 'strict-origin', url)
    }
    t.notOk(client.cookie(COOKIE)?.includes(ADMIN_KEY))
  })

  t.test('G10: a form of another site with the cookie is 403, and changes nothing', async t => {
    const { id } = await signUp(app)
    const client = await signedInTo(app)
    const post = (more: Record<string, string>) =>
      app.inject({
        method: 'POST',
        url: `/console/users/${id}/disable`,
        headers: { ...cookieOf(client), 'content-type': 'application/x-www-form-urlencoded', ...more },
        payload: '',
      })
    t.equal((await post({ origin: 'https://evil.example' })).statusCode, 403)
    t.equal((await post({ origin: 'null' })).statusCode, 403)
    t.equal((await post({ 'sec-fetch-site': 'same-site' })).statusCode, 403)
    const { disabled } = (await app.inject({ url: `/admin/users/${id}`, headers: asAdmin })).json()
    t.equal(disabled, false)
    const signInOfAnother = await app.inject({
      method: 'POST',
      url: '/console/sign-in',
      headers: { origin: 'https://evil.example', 'content-type': 'application/x-www-form-urlencoded' },
      payload: `adminKey=${ADMIN_KEY}`,
    })
    t.equal(signInOfAnother.statusCode, 403)
  })

  t.test('G9: strict policy, no frames, no inline script or style, no other host', async t => {
    const client = await signedInTo(app)
    await client.open('/console/users')
    const policy = String(client.response?.headers['content-security-policy'])
    t.equal(
      policy,
      "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    )
    t.equal(client.response?.headers['x-frame-options'], 'DENY')
    t.notMatch(client.page, /<script>|<style|\sstyle=|\son\w+=|(?:src|href|action)="(?:https?:)?\/\//)
  })

  t.test('G9: names and metadata with markup are text', async t => {
    const markup = '<script>alert(1)</script>"\'><a href="javascript:alert(1)">'
    const { id } = await signUp(app, { firstName: markup })
    t.equal(
      (await updateUser(app, id, { appMetadata: { [markup]: [markup, '\u202E\u0007'] } })).statusCode,
      200,
    )
    const client = await signedInTo(app)
    for (const url of [`/console/users/${id}`, '/console/users', `/console/users/${id}/disable`]) {
      await client.open(url)
      t.equal(client.status, 200)
      t.notOk(/<script>|<a href="javascript/i.test(client.page), url)
    }
    await client.open(`/console/users?search=${encodeURIComponent(markup)}`)
    t.notOk(/<script>|<a href="javascript/i.test(client.page), 'the filter')
  })

  t.test('K4: a key without a scope sees and does nothing more, by URL or form', async t => {
    const { id, email } = await signUp(app)
    const key = await createKey(app, ['status:read'])
    const client = await signedInTo(app, key.text)
    t.notMatch(client.page, /console\/(?:users|organizations|events|webhooks|admin-keys)/)
    const urls = app.routeTable.filter(({ url }) => url.startsWith('/console'))
    for (const { url: template, methods } of urls) {
      if (/sign-in|sign-out|status|^\/console\/?$/.test(template)) continue
      const url = template.replace(/:\w+/g, id)
      for (const method of methods.filter(each => each !== 'OPTIONS')) {
        const response = await app.inject({
          method: method as 'GET' | 'POST' | 'HEAD',
          url,
          headers: {
            ...cookieOf(client),
            ...(method === 'POST' && { 'content-type': 'application/x-www-form-urlencoded' }),
          },
          // The scope decides before the form is read.
          ...(method === 'POST' && { payload: 'unknown=1' }),
        })
        t.equal(response.statusCode, url.endsWith('*') ? 404 : 403, `${method} ${url}`)
        t.notOk(response.body.includes(email), url)
      }
    }
    t.equal((await app.inject({ url: `/admin/users/${id}`, headers: asAdmin })).json().disabled, false)
  })

  t.test('K6, K7: forged cursors and broken text are 400', async t => {
    const client = await signedInTo(app)
    for (const query of [
      'cursor=x',
      `cursor=${'a'.repeat(100_000)}`,
      'cursor=%27%20OR%201%3D1',
      'search=%00',
      'search=%ED%A0%80',
      'search=a&search=b',
    ])
      for (const path of ['users', 'events'].filter(path => path === 'users' || query.startsWith('cursor'))) {
        const { statusCode } = await app.inject({
          url: `/console/${path}?${query}`,
          headers: { ...cookieOf(client), accept: 'text/html' },
        })
        t.ok(
          statusCode === 400 || statusCode === 414 || statusCode === 431,
          `${path}: ${query.slice(0, 30)} ${statusCode}`,
        )
      }
  })

  t.test('behind a link of another site a page opens itself, and then has the cookie', async t => {
    const crossSite = { 'sec-fetch-site': 'cross-site', accept: 'text/html' }
    const { body, statusCode } = await app.inject({ url: '/console/users?role=editor', headers: crossSite })
    t.equal(statusCode, 200)
    t.match(body, '<meta http-equiv="refresh" content="0; url=../console/users?role=editor">')
  })

  t.test('R5: a request line with another host leads nowhere else', async t => {
    await app.listen({ host: '127.0.0.1', port: 0 })
    const { port } = app.server.address() as AddressInfo
    for (const site of ['cross-site', 'same-origin']) {
      const request = get({
        ...{ host: '127.0.0.1', port, path: 'http://evil.example/console/users' },
        headers: { 'sec-fetch-site': site, connection: 'close' },
      })
      const [response] = (await once(request, 'response')) as [IncomingMessage]
      t.notMatch(await text(response), 'evil.example', site)
      t.notMatch(JSON.stringify(response.headers), 'il.example', site)
    }
  })

  t.test('O11: the sign-in leads back to a page of the console, without a cookie', async t => {
    const url = '/console/users?search=a%20b'
    const { statusCode, headers, cookies } = await app.inject({ url })
    t.equal(statusCode, 303)
    t.equal(cookies.length, 0)
    const client = await new FormClient(app).open(`/console/${headers.location}`)
    await client.submit('console/sign-in', { adminKey: 'wrong key of an admin' })
    await client.submit('console/sign-in', { adminKey: ADMIN_KEY })
    t.equal(client.path, '/console/users')
    t.match(client.page, 'value="a b"')
  })

  t.test('O11: a way back of a stranger leads to no other host, and to no other page', async t => {
    const own = app.config.publicUrl
    for (const target of [
      'https://evil.example',
      '//evil.example',
      '/\\evil.example',
      `${own}.evil.example/console/users`,
      `${own}@evil.example/console/users`,
      `${own}:evil.example/console/users`,
      `${own}/consoles/users?x=1`,
      `${own}/security?x=1`,
      `${own}/console/../security`,
      `${own}/console.evil.example?x=1`,
      `${own}/console/users?x=1\r\nlocation:x`,
      `${own}/console/${'a'.repeat(9_000)}`,
      'javascript:alert(1)',
    ]) {
      const { statusCode, headers } = await app.inject({
        method: 'POST',
        url: `/console/sign-in?return_to=${encodeURIComponent(target)}`,
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        payload: `adminKey=${ADMIN_KEY}`,
      })
      t.ok([303, 400].includes(statusCode), target)
      if (statusCode === 303) t.equal(headers.location, '../console?signed-in', target)
    }
    const { headers } = await app.inject({
      method: 'POST',
      url: `/console/sign-in?return_to=${encodeURIComponent(`${own}/console//evil.example/x`)}`,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      payload: `adminKey=${ADMIN_KEY}`,
    })
    t.equal(headers.location, '../console//evil.example/x?signed-in', 'below the console all the same')
  })

  t.test('D4: a browser that does not keep the cookie is told so', async t => {
    const client = new FormClient(app, { changeCookies: () => '' })
    await client.open('/console/sign-in')
    await client.submit('console/sign-in', { adminKey: ADMIN_KEY })
    t.equal(client.status, 401)
    t.match(client.page, 'your browser has not kept the cookie')
  })

  t.test('what gives access needs the key again', async t => {
    const { id } = await signUp(app)
    const client = await signedInTo(app)
    const send = async (path: string, fields: Record<string, string>) =>
      (
        await app.inject({
          method: 'POST',
          url: `/console/${path}`,
          headers: { ...cookieOf(client), 'content-type': 'application/x-www-form-urlencoded' },
          payload: new URLSearchParams(fields).toString(),
        })
      ).statusCode
    for (const path of [
      `users/${id}/roles`,
      `users/${id}/impersonate`,
      `users/${id}/remove-factors`,
      `organizations/${id}/put-member`,
      'webhooks/create',
      `webhooks/${id}/rotate-secret`,
    ])
      t.equal(await send(path, {}), 400, `${path} without the key`)
    t.equal(await send(`users/${id}/roles`, { roles: 'editor', adminKey: 'wrong' }), 403)
    t.equal(await send(`users/${id}/roles`, { roles: 'editor', adminKey: ADMIN_KEY }), 303)
    const { roles } = (await app.inject({ url: `/admin/users/${id}`, headers: asAdmin })).json()
    t.strictSame(roles, ['editor'])
  })

  t.test('a new admin key needs the key again', async t => {
    const client = await signedInTo(app)
    const create = (fields: Record<string, string>) =>
      app.inject({
        method: 'POST',
        url: '/console/admin-keys/create',
        headers: { ...cookieOf(client), 'content-type': 'application/x-www-form-urlencoded' },
        payload: new URLSearchParams({ name: 'mine', 'scopes:users:read': 'on', ...fields }).toString(),
      })
    t.equal((await create({})).statusCode, 400)
    t.equal((await create({ adminKey: 'wrong' })).statusCode, 403)
    t.equal((await create({ adminKey: ADMIN_KEY })).statusCode, 200)
    for (const days of ['abc', '99999999999', '1e3', '-5'])
      t.equal((await create({ adminKey: ADMIN_KEY, days })).statusCode, 400, days)
  })
})

t.test('G10: ALLOWED_ORIGINS and CORS_ORIGINS may neither read the console nor send its forms', async t => {
  const origin = 'https://app.example.com'
  const app = await build(t, {
    env: {
      ...{ ...ENV, CORS_ORIGINS: origin, PUBLIC_URL: 'https://id.example.com' },
      ALLOWED_ORIGINS: `${origin},https://id.example.com`,
    },
  })
  const { id } = await signUp(app)
  const client = await signedInTo(app)
  const send = (method: 'GET' | 'POST', url: string, more: Record<string, string>) =>
    app.inject({
      ...{ method, url, payload: '' },
      headers: {
        ...cookieOf(client),
        ...(method === 'POST' && { 'content-type': 'application/x-www-form-urlencoded' }),
        ...more,
      },
    })
  const ofAnother = { origin, 'sec-fetch-site': 'same-site' }
  for (const [method, url, status] of [
    ['POST', '/console/sign-in', 403],
    ['POST', '/console/sign-out', 403],
    ['POST', `/console/users/${id}/disable`, 403],
    ['GET', '/console/users', 200],
    ['GET', '/console/events/live', 200],
    ['GET', '/console/sign-in', 200],
  ] as const) {
    const { statusCode, headers } = await send(method, url, ofAnother)
    t.equal(statusCode, status, `${method} ${url}`)
    t.notOk(
      Object.keys(headers).some(name => name.startsWith('access-control-')),
      url,
    )
  }
  // A proxy that does not pass on the host (docs/configuration.md).
  const ofPublicUrl = { origin: 'https://id.example.com' }
  t.equal((await send('POST', `/console/users/${id}/disable`, ofPublicUrl)).statusCode, 303)
})

t.test('sign-ins with keys are limited by address', async t => {
  const app = await build(t, { env: { ...ENV, RATE_LIMIT: 'on' }, rateLimits: RATE_LIMITS })
  const client = new FormClient(app)
  await client.open('/console/sign-in')
  for (let attempt = 0; attempt < 10; attempt += 1) {
    await client.submit('sign-in', { adminKey: 'wrong' })
    t.equal(client.status, 401)
  }
  await client.submit('sign-in', { adminKey: ADMIN_KEY })
  t.equal(client.status, 429)
})

t.test('entering the key again counts towards the same limit', async t => {
  const app = await build(t, { env: { ...ENV, RATE_LIMIT: 'on' }, rateLimits: RATE_LIMITS })
  const { id } = await signUp(app)
  const client = await signedInTo(app)
  for (let attempt = 1; attempt < 10; attempt += 1) {
    await client.open(`/console/users/${id}/delete`)
    await client.submit('delete', { adminKey: 'wrong' })
    t.equal(client.status, 403)
  }
  await client.open(`/console/users/${id}/delete`)
  await client.submit('delete', { adminKey: ADMIN_KEY })
  t.equal(client.status, 429)
  t.equal((await app.inject({ url: `/admin/users/${id}`, headers: asAdmin })).statusCode, 200)
})

t.test('in production the cookie has the prefix __Host-, and its attributes', async t => {
  const strong = {
    ADMIN_KEY: 'kX9-qWz3-Lm7r-Tb2v-Yc8n-Hd5p',
    JWT_SECRET: 'zQ4m-Rt8w-Xb2k-Nv6j-Pc1h-Lf9s-Gd3y-Wa7e',
  }
  const app = await build(t, {
    env: { ...ENV, ...strong, NODE_ENV: 'production', PUBLIC_URL: 'https://id.example.com' },
  })
  const response = await app.inject({
    method: 'POST',
    url: '/console/sign-in',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    payload: `adminKey=${strong.ADMIN_KEY}`,
  })
  t.equal(response.statusCode, 303)
  const [cookie] = [response.headers['set-cookie']].flat()
  t.match(cookie, /^__Host-gatehouse-console=[\w-]{43}; Path=\/; HttpOnly; Secure; SameSite=Strict$/)
})

t.test('S12: without a key for encryption PostgreSQL refuses to start with the console', async t => {
  t.rejects(
    build(t, { env: { ...ENV, DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' } }),
    /ENCRYPTION_KEY is needed with PostgreSQL and CONSOLE/,
  )
})
