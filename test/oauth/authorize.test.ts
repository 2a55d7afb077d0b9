/** Requests of clients at the authorization endpoint: forms, and the languages of the pages (docs/oauth.md). */
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { cookie, PASSWORD, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { FormClient } from '../support/form-client.ts'
import { buildOAuth, postForm, registerClient } from '../support/oauth.ts'
import {
  authorize,
  CALLBACK,
  challengeOf,
  newVerifier,
  openConsent,
  redeem,
  requestIn,
  targetOf,
} from '../support/oauth-flow.ts'

const WEB = { redirectUris: [CALLBACK], scopes: ['openid', 'account:read', 'offline_access'] }

const queryOf = (clientId: string, more: Readonly<Record<string, string>> = {}) => ({
  ...{ client_id: clientId, response_type: 'code', scope: 'account:read' },
  ...{ code_challenge: challengeOf(newVerifier()), code_challenge_method: 'S256', ...more },
})

/** What browsers send with a form on a page of the client. */
const FOREIGN = { origin: 'https://app.example.test', 'sec-fetch-site': 'cross-site', accept: 'text/html' }

await onEnginesOfRun(t, async (t, engine) => {
  t.test('a form begins a request as a link does, also from another site', async t => {
    const app = await buildOAuth(engine, t)
    const client = await registerClient(app, { ...WEB, firstParty: true })
    const { token } = await signUp(app)
    const verifier = newVerifier()
    const query = queryOf(client.id, { code_challenge: challengeOf(verifier), state: 'a & b' })
    for (const headers of [FOREIGN, { ...FOREIGN, ...cookie(token) }, { accept: 'text/html' }]) {
      const begun = await postForm(app, 'authorize', query, headers)
      t.equal(begun.statusCode, 303)
      t.match(begun.headers.location, /^\.\.\/oauth\/consent\?request=/)
    }
    const begun = await postForm(app, 'authorize', query, FOREIGN)
    const target = targetOf(await openConsent(app, requestIn(begun), token))
    t.equal(target.searchParams.get('state'), 'a & b')
    const code = target.searchParams.get('code') ?? ''
    t.equal((await redeem(app, client, { code, verifier }, { redirect_uri: '' })).statusCode, 400)
    const silent = await postForm(app, 'authorize', { ...query, prompt: 'none' }, FOREIGN)
    const answered = targetOf(await openConsent(app, requestIn(silent), token))
    t.ok(answered.searchParams.has('code'), 'prompt=none')
  })

  t.test('a form is refused as a link is', async t => {
    const app = await buildOAuth(engine, t)
    const client = await registerClient(app, WEB)
    const query = queryOf(client.id)
    const errorOf = async (parameters: readonly (readonly [string, string])[]) => {
      const response = await postForm(app, 'authorize', parameters, FOREIGN)
      if (response.statusCode !== 303) return response.statusCode
      const { location } = response.headers
      return String(location).startsWith('..') ? null : targetOf(response).searchParams.get('error')
    }
    const own = Object.entries(query)
    for (const name of Object.keys(query))
      t.equal(await errorOf([...own, [name, 'again']]), 400, `${name} twice`)
    t.equal(await errorOf([...own, ['unknown', '1']]), null)
    const resource = ['resource', 'https://api.example.test'] as const
    t.equal(await errorOf([...own, resource]), 'invalid_target')
    t.equal(await errorOf([...own, resource, resource]), 'invalid_target')
    t.equal(await errorOf([]), 400)
    const withNul = await authorize(app, { ...query, nonce: '\0' })
    t.equal(withNul.statusCode, 400)
    t.equal(await errorOf([...own, ['nonce', '\0']]), 400)
    t.equal(await errorOf([...own, ['nonce', 'x'.repeat(513)]]), 400)
    const json = {
      method: 'POST',
      url: '/oauth/authorize',
      headers: { accept: 'text/html' },
      payload: query,
    } as const
    t.equal((await app.inject(json)).statusCode, 415)
    const other = await postForm(app, 'authorize', { ...query, redirect_uri: 'https://evil.test/' }, FOREIGN)
    t.equal(other.statusCode, 400)
    t.equal(other.headers.location, undefined)
    const decision = await postForm(app, 'consent', { request: 'x', decision: 'allow' }, FOREIGN)
    t.equal(decision.statusCode, 403, 'the decision is still one of the user')
  })

  t.test('ui_locales is the language of the pages of a request', async t => {
    const folder = await mkdtemp(join(tmpdir(), 'texts-'))
    await writeFile(join(folder, 'fr.json'), JSON.stringify({ 'oauth.allow': 'Autoriser' }))
    const app = await buildOAuth(engine, t, { env: { TEXTS: folder } })
    const client = await registerClient(app, WEB)
    const { email, token } = await signUp(app)
    const begin = (ui_locales: string) => authorize(app, queryOf(client.id, { ui_locales }))
    const languageOf = (page: string) => /<html lang="([^"]*)"/.exec(page)?.[1]

    const browser = new FormClient(app, { headers: { 'accept-language': 'en' } })
    const begun = await begin('xx de-CH')
    await browser.open(String(begun.headers.location).replace('../', '/'))
    t.equal(browser.path, '/sign-in')
    t.equal(languageOf(browser.page), 'de')
    await browser.submit('', { email, password: 'wrong wrong wrong' })
    t.equal(languageOf(browser.page), 'de', 'with an error')
    await browser.submit('', { email, password: PASSWORD })
    t.equal(browser.path, '/oauth/consent')
    t.equal(languageOf(browser.page), 'de')
    const [, action = ''] = /<form[^>]* action="([^"]*)"/.exec(browser.page.replaceAll('&amp;', '&')) ?? []
    t.match(
      action,
      /^\.\.\/oauth\/consent\?ui_locales=xx%20de-CH$/,
      'so does the page that leads to the client',
    )

    const consentIn = async (locales: string) => {
      const path = String((await begin(locales)).headers.location).replace('../', '/')
      const page = await app.inject({ url: path, headers: { accept: 'text/html', ...cookie(token) } })
      return page.body
    }
    const french = await consentIn('fr-CA en')
    t.equal(languageOf(french), 'fr')
    t.match(french, 'Autoriser')
    t.equal(languageOf(await consentIn('xx')), 'en', 'none that there is')
    t.equal(languageOf(await consentIn(`${'xx '.repeat(10)}de`)), 'en', 'the first ten count')
    const metadata = (await app.inject('/.well-known/openid-configuration')).json()
    t.strictSame(metadata.ui_locales_supported, ['en', 'de', 'fr'])
  })
})
