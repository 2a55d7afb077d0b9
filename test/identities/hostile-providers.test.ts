/** Providers that hang, flood, redirect and lead to private addresses (CASES O10). */
import t from 'tap'
import { call } from '../support/account-routes.ts'
import { build, logCapture, manualClock, signUp } from '../support/build.ts'
import { globalErrorOf } from '../support/error-response.ts'
import { freshAccount, programOf, providersEnv, serve, startProvider } from '../support/identity-provider.ts'

const MINUTE = 60_000

const entry = (issuer: string) => ({
  id: 'test',
  name: 'Hostile',
  issuer,
  clientId: 'gatehouse',
  clientSecret: 'secret',
})

t.test(
  'O10 a provider that never responds is given up after five seconds, and no other request waits',
  async t => {
    const issuer = await serve(t, () => undefined)
    const app = await build(t, { env: providersEnv([entry(issuer)], [issuer]) })
    let isOver = false
    const starts = Promise.all(
      Array.from({ length: 20 }, () => call(app, 'POST', '/account/sign-in/providers/test', {})),
    ).finally(() => {
      isOver = true
    })
    t.ok(await signUp(app))
    t.notOk(isOver, 'other routes respond meanwhile')
    for (const response of await starts) globalErrorOf(t, response, 503)
  },
)

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
  const locations = [`${target}/.well-known/openid-configuration`, 'http://169.254.169.254/latest/meta-data/']
  const issuers = await Promise.all(
    locations.map(location =>
      serve(t, (_request, response) => void response.writeHead(302, { location }).end()),
    ),
  )
  const entries = issuers.map((issuer, index) => ({ ...entry(issuer), id: `p${index}` }))
  const app = await build(t, { env: providersEnv(entries, [...issuers, target]) })
  for (const { id } of entries)
    globalErrorOf(t, await call(app, 'POST', `/account/sign-in/providers/${id}`, {}), 503)
  t.equal(asked, 0)
})

t.test('O10 a name that resolves to a private address is not asked', async t => {
  const log = logCapture()
  const clock = manualClock()
  const asked: string[] = []
  let address = ''
  const app = await build(t, {
    env: { ...providersEnv([entry('https://idp.example')], []), OIDC_ALLOWED_HOSTS: 'other.example' },
    resolveHost: async name => {
      asked.push(name)
      return [{ address, family: address.includes(':') ? 6 : 4 }]
    },
    logStream: log.stream,
    clock: clock.now,
  })
  const addresses = ['127.0.0.1', '169.254.169.254', '10.0.0.1', '::ffff:127.0.0.1', '64:ff9b::7f00:1']
  for (address of addresses) {
    globalErrorOf(t, await call(app, 'POST', '/account/sign-in/providers/test', {}), 503)
    clock.advance(MINUTE)
  }
  t.strictSame(asked, Array(addresses.length).fill('idp.example'))
  const reasons = log.problems().flatMap(({ reason }) => reason ?? [])
  t.strictSame(reasons, Array(addresses.length).fill('blocked'))
})

t.test('O10 metadata that lead inward are not followed', async t => {
  const inward = ['token_endpoint', 'jwks_uri', 'userinfo_endpoint']
  const ids = [...inward.map(each => each.replace('_', '-')), 'script', 'test']
  const provider = await startProvider(t, { ids })
  const entries = ids.map(id => provider.entry({ id }))
  const app = await build(t, { env: providersEnv(entries, [provider.issuer]) })
  let asked = 0
  const inner = await serve(t, (_request, response) => {
    asked += 1
    response.end('{}')
  })
  const withMetadata = (metadata: object) => {
    provider.change = (path, response) => {
      if (path.startsWith('/.well-known/'))
        response.body = JSON.stringify({ ...JSON.parse(response.body), ...metadata })
    }
  }
  for (const endpoint of inward) {
    withMetadata({ [endpoint]: `${inner}/x` })
    provider.account = freshAccount()
    globalErrorOf(t, await programOf(app, provider, endpoint.replace('_', '-')).signIn(), 503)
  }
  t.equal(asked, 0)
  withMetadata({ authorization_endpoint: 'javascript:alert(1)' })
  globalErrorOf(t, await call(app, 'POST', '/account/sign-in/providers/script', {}), 503)
  provider.change = null
  t.equal((await programOf(app, provider).signIn()).statusCode, 200)
})

t.test('O10 each endpoint that fails is 503, and the next sign-in works', async t => {
  const failures = ['/token', '/jwks', '/me'].flatMap(path =>
    [
      { status: 500 },
      { status: 302 },
      { status: 404 },
      { headers: { 'content-type': 'text/html' }, body: '<html>' },
      // As with a client secret that was replaced.
      ...(path === '/token' ? [{ status: 401, body: '{"error":"invalid_client"}' }] : []),
    ].map((change, index) => ({ id: `${path.slice(1)}-${index}`, path, change })),
  )
  const provider = await startProvider(t, { ids: failures.map(({ id }) => id) })
  const entries = failures.map(({ id }) => provider.entry({ id }))
  const app = await build(t, { env: providersEnv(entries, [provider.issuer]) })
  for (const { id, path, change } of failures) {
    const program = programOf(app, provider, id)
    provider.account = freshAccount()
    provider.change = (requested, response) => {
      if (requested === path) Object.assign(response, change)
    }
    globalErrorOf(t, await program.signIn(), 503, id)
    provider.change = null
    t.equal((await program.signIn()).statusCode, 200)
  }
})
