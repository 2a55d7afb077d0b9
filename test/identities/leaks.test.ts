/** No secret of a sign-in with another provider is in a log, a metric, a trace, an event, a URL or the database. */
import { readFileSync } from 'node:fs'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { asAdmin } from '../support/build.ts'
import { startCollector } from '../support/collector.ts'
import {
  CLIENT_SECRET,
  freshAccount,
  programOf,
  providersEnv,
  startProvider,
} from '../support/identity-provider.ts'
import { newDatabaseFile, startServer } from '../support/process.ts'

interface Injected {
  readonly method?: string
  readonly url: string
  readonly headers?: Record<string, string>
  readonly payload?: object
}

/** A service in another process, as tests use one in theirs. */
const remote = (url: string) =>
  ({
    async inject({ method = 'GET', url: path, headers = {}, payload }: Injected) {
      const body = payload === undefined ? null : JSON.stringify(payload)
      const type = body === null ? {} : { 'content-type': 'application/json' }
      const response = await fetch(url + path, {
        method,
        headers: { ...type, ...headers },
        body,
        redirect: 'manual',
      })
      const text = await response.text()
      return {
        statusCode: response.status,
        headers: Object.fromEntries(response.headers),
        body: text,
        json: () => JSON.parse(text),
      }
    },
  }) as unknown as FastifyInstance

t.test('what a run keeps and writes has none of its secrets', async t => {
  const provider = await startProvider(t)
  const collector = await startCollector(t)
  const databaseFile = await newDatabaseFile(t)
  const server = await startServer(t, {
    databaseFile,
    env: {
      ...providersEnv([provider.entry()], [provider.issuer]),
      LOG_LEVEL: 'trace',
      LOG_REQUESTS: 'on',
      ...collector.env,
    },
  })
  const app = remote(server.url)
  const program = programOf(app, provider)
  const secrets = new Map<string, string>([['client secret', CLIENT_SECRET]])
  provider.change = (path, response) => {
    if (path !== '/token' || response.status !== 200) return
    const { access_token, id_token } = JSON.parse(response.body)
    secrets.set(`access token ${secrets.size}`, access_token)
    secrets.set(`ID token ${secrets.size}`, id_token)
  }
  const note = (callback: { url: string; flow: string }, authorizationUrl = '') => {
    const query = new URL(callback.url).searchParams
    for (const name of ['code', 'state']) secrets.set(`${name} ${secrets.size}`, query.get(name) ?? '')
    secrets.set(`flow ${secrets.size}`, callback.flow)
    const nonce = authorizationUrl && new URL(authorizationUrl).searchParams.get('nonce')
    if (nonce) secrets.set(`nonce ${secrets.size}`, nonce)
  }
  const locations: string[] = []
  /** Programs, browsers and failures. */
  for (const fails of [false, true]) {
    provider.account = freshAccount()
    const started = await program.start()
    const callback = { url: await provider.authorize(started.authorizationUrl), flow: started.flow }
    note(callback, started.authorizationUrl)
    provider.changeToken = fails ? (_, token) => `${token.slice(0, -8)}AAAAAAAA` : null
    await program.finish(callback)
    await program.finish(callback)
    const browser = await program.callback()
    note(browser)
    const { headers } = await app.inject({
      url: browser.url.replace('https://gatehouse.test', ''),
      headers: { cookie: `OIDC_FLOW_test=${browser.flow}`, accept: 'text/html' },
    })
    locations.push(String(headers.location))
  }
  provider.changeToken = null
  // One that stays in the database.
  const open = await program.start()
  secrets.set('open flow', open.flow)
  for (const name of ['state', 'nonce'])
    secrets.set(`open ${name}`, new URL(open.authorizationUrl).searchParams.get(name) ?? '')

  const metrics = (await app.inject({ url: '/admin/metrics', headers: asAdmin })).body
  const events = (await app.inject({ url: '/admin/events?limit=100', headers: asAdmin })).body
  t.equal(await server.stop('SIGTERM'), 0)
  const places = {
    log: server.output(),
    metrics,
    events,
    traces: collector.text(),
    locations: locations.join('\n'),
    database: readFileSync(databaseFile).toString('latin1'),
  }
  for (const place of ['log', 'traces'] as const) t.match(places[place], 'sign-in/providers')
  t.match(places.locations, /security$/m)
  t.ok(secrets.size > 12)
  for (const secret of [open.flow, CLIENT_SECRET])
    t.notOk(decodeURIComponent(open.authorizationUrl).includes(secret))
  for (const [name, secret] of secrets) {
    t.ok(secret.length > 10, name)
    for (const [place, text] of Object.entries(places))
      for (const form of [secret, encodeURIComponent(secret)])
        t.notOk(text.includes(form), `${name} in ${place}`)
  }
})
