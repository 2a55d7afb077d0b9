/** Providers that hang, flood, redirect and lead to private addresses (CASES O10). */
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { call } from '../support/account-routes.ts'
import { build, type Context, logCapture, signUp } from '../support/build.ts'
import { globalErrorOf } from '../support/error-response.ts'
import { freshAccount, programOf, providersEnv, startProvider } from '../support/identity-provider.ts'

const serve = async (t: Context, listener: RequestListener): Promise<string> => {
  const server: Server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const entry = (issuer: string) => ({
  id: 'test',
  name: 'Hostile',
  issuer,
  clientId: 'gatehouse',
  clientSecret: 'secret',
})

t.test('O10 a provider that never responds costs five seconds, and no other request waits', async t => {
  const issuer = await serve(t, () => undefined)
  const app = await build(t, { env: providersEnv([entry(issuer)], [issuer]) })
  const before = Date.now()
  const starts = Array.from({ length: 20 }, () => call(app, 'POST', '/account/sign-in/providers/test', {}))
  t.ok(await signUp(app))
  t.ok(Date.now() - before < 2_000, 'other routes respond meanwhile')
  for (const response of await Promise.all(starts)) globalErrorOf(t, response, 503)
  t.ok(Date.now() - before < 8_000)
})

t.test('O10 a provider that sends without end is cut at 1 MiB', async t => {
  let sent = 0
  const issuer = await serve(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    const chunk = Buffer.alloc(65_536, 0x20)
    const more = (): void => {
      if (response.destroyed || sent > 100_000_000) return void response.end()
      sent += chunk.length
      if (response.write(chunk)) setImmediate(more)
      else response.once('drain', more)
    }
    more()
  })
  const app = await build(t, { env: providersEnv([entry(issuer)], [issuer]) })
  globalErrorOf(t, await call(app, 'POST', '/account/sign-in/providers/test', {}), 503)
  t.ok(sent < 20_000_000, `${sent} bytes were sent`)
})

t.test('O10 a redirect is not followed', async t => {
  let asked = 0
  const target = await serve(t, (_request, response) => {
    asked += 1
    response.end('{}')
  })
  for (const location of [
    `${target}/.well-known/openid-configuration`,
    'http://169.254.169.254/latest/meta-data/',
  ]) {
    const issuer = await serve(t, (_request, response) => void response.writeHead(302, { location }).end())
    const app = await build(t, { env: providersEnv([entry(issuer)], [issuer, target]) })
    globalErrorOf(t, await call(app, 'POST', '/account/sign-in/providers/test', {}), 503)
  }
  t.equal(asked, 0)
})

t.test('O10 a name that resolves to a private address is not asked', async t => {
  const log = logCapture()
  for (const address of ['127.0.0.1', '169.254.169.254', '10.0.0.1', '::ffff:127.0.0.1', '64:ff9b::7f00:1']) {
    const app = await build(t, {
      env: { ...providersEnv([entry('https://idp.example')], []), OIDC_ALLOWED_HOSTS: 'other.example' },
      resolveHost: async () => [{ address, family: address.includes(':') ? 6 : 4 }],
      logStream: log.stream,
    })
    globalErrorOf(t, await call(app, 'POST', '/account/sign-in/providers/test', {}), 503)
  }
  t.match(log.problems(), [{ provider: 'test', reason: 'blocked' }])
})

t.test('O10 metadata that lead inward are not followed', async t => {
  const provider = await startProvider(t)
  const app = await build(t, { env: providersEnv([provider.entry()], [provider.issuer]) })
  const program = programOf(app, provider)
  let asked = 0
  const inner = await serve(t, (_request, response) => {
    asked += 1
    response.end('{}')
  })
  for (const endpoint of ['token_endpoint', 'jwks_uri', 'userinfo_endpoint']) {
    const other = await build(t, { env: providersEnv([provider.entry()], [provider.issuer]) })
    provider.change = (path, response) => {
      if (path.startsWith('/.well-known/'))
        response.body = JSON.stringify({ ...JSON.parse(response.body), [endpoint]: `${inner}/x` })
    }
    provider.account = freshAccount()
    globalErrorOf(t, await programOf(other, provider).signIn(), 503)
  }
  t.equal(asked, 0)
  provider.change = (path, response) => {
    if (path.startsWith('/.well-known/'))
      response.body = JSON.stringify({
        ...JSON.parse(response.body),
        authorization_endpoint: 'javascript:alert(1)',
      })
  }
  const third = await build(t, { env: providersEnv([provider.entry()], [provider.issuer]) })
  globalErrorOf(t, await call(third, 'POST', '/account/sign-in/providers/test', {}), 503)
  provider.change = null
  t.equal((await program.signIn()).statusCode, 200)
})

t.test('O10 each endpoint that fails is 503, and the next sign-in works', async t => {
  const provider = await startProvider(t)
  const app = await build(t, { env: providersEnv([provider.entry()], [provider.issuer]) })
  const program = programOf(app, provider)
  for (const path of ['/token', '/jwks', '/me'])
    for (const change of [
      { status: 500 },
      { status: 302 },
      { status: 404 },
      { headers: { 'content-type': 'text/html' }, body: '<html>' },
    ]) {
      // Keys are cached with the metadata.
      const fresh = await build(t, { env: providersEnv([provider.entry()], [provider.issuer]) })
      provider.account = freshAccount()
      provider.change = (requested, response) => {
        if (requested === path) Object.assign(response, change)
      }
      const response = await programOf(fresh, provider).signIn()
      globalErrorOf(t, response, 503)
      provider.change = null
      t.equal((await programOf(fresh, provider).signIn()).statusCode, 200)
    }
  t.equal((await program.signIn()).statusCode, 200)
})

t.test('keys are fetched once, and again for an unknown key at most once a minute', async t => {
  const provider = await startProvider(t)
  const app = await build(t, { env: providersEnv([provider.entry()], [provider.issuer]) })
  const program = programOf(app, provider)
  for (let count = 0; count < 5; count += 1) t.equal((await program.signIn()).statusCode, 200)
  provider.changeToken = async token =>
    provider.sign(JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()), {
      kid: 'unknown',
    })
  for (let count = 0; count < 5; count += 1) globalErrorOf(t, await program.signIn(), 401)
  t.equal(provider.requests.filter(each => each === 'GET /jwks').length, 1)
  t.equal(provider.requests.filter(each => each.startsWith('GET /.well-known/')).length, 1)
})
