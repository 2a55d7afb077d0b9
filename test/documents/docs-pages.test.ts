/** Headers of the pages at /docs, and the redirect of `GET /` (Browsers; docs/design.md, "Failures and hostile input"). */
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import packageJson from '../../package.json' with { type: 'json' }
import { build, cookie, signUp } from '../support/build.ts'
import { exchange, parseResponse } from '../support/process.ts'

const app = await build(t)

const PAGES = {
  '/docs': 'text/html',
  '/docs/static/swagger-ui.css': 'text/css',
  '/docs/static/index.css': 'text/css',
  '/docs/static/swagger-ui-bundle.js': 'text/javascript',
  '/docs/static/swagger-initializer.js': 'text/javascript',
  '/docs/static/favicon-32x32.png': 'image/png',
  '/openapi.json': 'application/json',
}

t.test('pages have headers against framing, form posts, referrer leaks and MIME sniffing', async t => {
  for (const [url, type] of Object.entries(PAGES)) {
    const { statusCode, headers } = await app.inject(url)
    t.equal(statusCode, 200, url)
    t.match(headers['content-type'], type)
    const policy = String(headers['content-security-policy']).split('; ')
    for (const directive of [
      "default-src 'self'",
      "frame-ancestors 'none'",
      "form-action 'self'",
      "base-uri 'self'",
    ])
      t.ok(policy.includes(directive), `${url}: ${directive}`)
    t.match(headers, {
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    })
  }
})

t.test('pages are compressed on request, with the same content', async t => {
  for (const [url, type] of Object.entries(PAGES)) {
    const plain = await app.inject({ url, headers: { 'accept-encoding': 'br;q=1, gzip;q=0' } })
    t.equal(plain.headers['content-encoding'], undefined)
    const gzipped = await app.inject({ url, headers: { 'accept-encoding': 'gzip, deflate, br' } })
    const isCompressed = gzipped.headers['content-encoding'] === 'gzip'
    t.equal(isCompressed, plain.rawPayload.length >= 1_024 && type !== 'image/png', url)
    if (!isCompressed) continue
    t.ok(gzipped.rawPayload.length < plain.rawPayload.length / 3, `${url}: ${gzipped.rawPayload.length}`)
    t.same(gunzipSync(gzipped.rawPayload), plain.rawPayload)
    for (const { headers } of [plain, gzipped]) t.equal(headers.vary, 'accept-encoding')
  }
})

t.test('pages are cached by a content hash, the same on every instance', async t => {
  const other = await build(t)
  for (const url of Object.keys(PAGES))
    for (const encoding of ['gzip', 'identity']) {
      const headers = { 'accept-encoding': encoding }
      const first = await app.inject({ url, headers })
      const etag = String(first.headers.etag)
      t.match(etag, /^"[\w-]{22}(-gzip)?"$/)
      t.equal(first.headers['cache-control'], 'public, no-cache')
      t.equal((await other.inject({ url, headers })).headers.etag, etag)
      for (const tag of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
        const again = await other.inject({ url, headers: { ...headers, 'if-none-match': tag } })
        t.equal(again.statusCode, 304, tag)
        t.equal(again.body, '')
        t.equal(again.headers.etag, etag)
      }
      t.equal((await app.inject({ url, headers: { ...headers, 'if-none-match': '"x"' } })).statusCode, 200)
      const head = await app.inject({ method: 'HEAD', url, headers })
      t.equal(head.statusCode, 200)
      t.equal(head.headers.etag, etag)
    }
})

t.test('D11: a page is not sent again for a tag that a proxy has marked', async t => {
  for (const url of [...Object.keys(PAGES), '/pages/style.css'])
    for (const encoding of ['gzip', 'identity']) {
      const isFresh = async (tag: string) => {
        const headers = { 'accept-encoding': encoding, 'if-none-match': tag }
        return (await app.inject({ url, headers })).statusCode === 304
      }
      const { headers } = await app.inject({ url, headers: { 'accept-encoding': encoding } })
      const tag = String(headers.etag).slice(1, -1)
      for (const marked of ['', '-gzip', '--gzip', '-br', '-zstd', '-gunzip', '-gunzip-gzip', '--br--gzip'])
        for (const weak of ['', 'W/'])
          t.ok(await isFresh(`${weak}"${tag}${marked}"`), `${weak}${marked} ${encoding} ${url}`)
      t.ok(await isFresh(`"${tag.replace('-gzip', '')}"`), `Caddy has taken our own coding off ${url}`)
      for (const other of [`x${tag}`, `${tag}-other`, tag.slice(0, -6), '-gzip', ''])
        t.notOk(await isFresh(`"${other}"`), `${other} ${url}`)
    }
})

t.test('unknown pages get the error body', async t => {
  const port = Number(new URL(await app.listen({ host: '127.0.0.1', port: 0 })).port)
  for (const path of [
    '/docs/static/../../package.json',
    '/docs/static/%2e%2e/%2e%2e/package.json',
    '/docs/static/..%2f..%2fpackage.json',
    '/docs/static/..%5c..%5cpackage.json',
    '/docs/static/.env',
    '/docs/static/unknown.js',
    '/docs/static/',
    '/docs/static',
    '/docs/static/%00',
    '/docs/unknown',
    '//docs',
  ]) {
    const response = await exchange(port, `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    const { status, body } = parseResponse(response)
    t.equal(status, 404, path)
    t.equal(body, '{"errors":{"global":["There is no such route"]}}', path)
  }
  for (const [path, status] of [
    ['/docs?x=1', 400],
    ['/docs/static/%ff', 400],
  ] as const) {
    const response = parseResponse(
      await exchange(port, `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`),
    )
    t.equal(response.status, status, path)
    t.same(Object.keys(JSON.parse(response.body)), ['errors'])
  }
  const slash = await app.inject('/docs/')
  t.match(slash, { statusCode: 303, headers: { location: '../docs' } })
})

t.test('GET / names the service; browsers are redirected to their page, without pages to /docs', async t => {
  const { version } = packageJson
  for (const accept of [undefined, '*/*', 'application/json', 'application/json, text/html;q=0.5']) {
    const response = await app.inject({ url: '/', headers: { ...(accept && { accept }) } })
    t.equal(response.statusCode, 200)
    t.same(response.json(), { name: 'gatehouse', version, docs: '/docs', openapi: '/openapi.json' })
    t.equal(response.headers.vary, 'accept')
  }
  const headers = { accept: 'text/html,*/*;q=0.8' }
  const redirected = (location: string) => ({ statusCode: 303, headers: { location, vary: 'accept' } })
  t.match(await app.inject({ url: '/', headers }), redirected('./sign-in'))
  const { token } = await signUp(app)
  t.match(await app.inject({ url: '/', headers: { ...headers, ...cookie(token) } }), redirected('./security'))
  const withoutPages = await build(t, { env: { PAGES: 'off', WEB_URL: 'https://app.example.com' } })
  t.match(await withoutPages.inject({ url: '/', headers }), redirected('/docs'))
})

t.test('DOCS=off removes /docs, /openapi.json and the redirect', async t => {
  const env = { DOCS: 'off', PAGES: 'off', WEB_URL: 'https://app.example.com' }
  const off = await build(t, { env })
  for (const url of [...Object.keys(PAGES), '/docs/', '/docs/json', '/docs/yaml']) {
    const response = await off.inject(url)
    t.equal(response.statusCode, 404, url)
    t.same(response.json(), { errors: { global: ['There is no such route'] } })
  }
  for (const accept of ['*/*', 'text/html']) {
    const response = await off.inject({ url: '/', headers: { accept } })
    t.equal(response.statusCode, 200)
    t.same(response.json(), { name: 'gatehouse', version: packageJson.version })
  }
  t.equal((await off.inject('/health')).statusCode, 200)
})
