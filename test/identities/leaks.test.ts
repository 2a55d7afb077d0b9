/** No secret of a sign-in with another provider is in a log, a metric, an event, a URL of the service or the database. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { asAdmin, build, logCapture, temporaryFolder } from '../support/build.ts'
import {
  CLIENT_SECRET,
  freshAccount,
  programOf,
  providersEnv,
  startProvider,
} from '../support/identity-provider.ts'

t.test('what a run keeps and writes has none of its secrets', async t => {
  const provider = await startProvider(t)
  const log = logCapture()
  const file = join(temporaryFolder(t), 'test.db')
  const app = await build(t, {
    env: {
      ...providersEnv([provider.entry()], [provider.issuer]),
      DATABASE_URL: `sqlite:${file}`,
      LOG_LEVEL: 'trace',
      LOG_REQUESTS: 'on',
    },
    logStream: log.stream,
  })
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
  /** Programs, browsers and failures. */
  for (const fails of [false, true]) {
    provider.account = freshAccount()
    const started = await program.start()
    const callback = { url: await provider.authorize(started.authorizationUrl), flow: started.flow }
    note(callback, started.authorizationUrl)
    provider.changeToken = fails ? async token => `${token.slice(0, -8)}AAAAAAAA` : null
    await program.finish(callback)
    await program.finish(callback)
    const browser = await program.callback()
    note(browser)
    await app.inject({
      url: browser.url.replace('https://gatehouse.test', ''),
      headers: { cookie: `OIDC_FLOW=${browser.flow}`, accept: 'text/html' },
    })
  }
  provider.changeToken = null
  // One that stays in the database.
  const open = await program.start()
  secrets.set('open flow', open.flow)
  for (const name of ['state', 'nonce'])
    secrets.set(`open ${name}`, new URL(open.authorizationUrl).searchParams.get(name) ?? '')

  const metrics = (await app.inject({ url: '/admin/metrics', headers: asAdmin })).body
  const events = (await app.inject({ url: '/admin/events?limit=100', headers: asAdmin })).body
  await app.close()
  const places = {
    log: log.text(),
    metrics,
    events,
    database: readFileSync(file).toString('latin1'),
  }
  t.ok(
    log.records().some(({ req }) => /providers/.test(JSON.stringify(req ?? ''))),
    places.log.slice(0, 800),
  )
  t.ok(secrets.size > 12)
  for (const [name, secret] of secrets) {
    t.ok(secret.length > 10, name)
    for (const [place, text] of Object.entries(places))
      for (const form of [secret, encodeURIComponent(secret)])
        t.notOk(text.includes(form), `${name} in ${place}`)
  }
})
