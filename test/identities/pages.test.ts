/** Sign-in with other providers in a browser without script, by forms (CASES O). */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { call } from '../support/account-routes.ts'
import { addTotp, STEP } from '../support/authenticator-apps.ts'
import { bearer, build, confirmedUser, cookie, manualClock, PASSWORD, signUp } from '../support/build.ts'
import { FormClient } from '../support/form-client.ts'
import { freshAccount, programOf, providersEnv, startProvider } from '../support/identity-provider.ts'

const provider = await startProvider(t)
const env = providersEnv([provider.entry()], [provider.issuer])
const clock = manualClock(Date.now())
const app = await build(t, { env, clock: clock.now })
const program = programOf(app, provider)

const pathOf = (url: string): string => url.replace('https://gatehouse.test', '')

const linkIn = (page: string): string =>
  (/<a href="(http[^"]*)"/.exec(page)?.[1] ?? '').replaceAll('&amp;', '&')

/** Presses the button of the provider, and signs in there. @returns the path of the callback. */
const authorize = async (browser: FormClient): Promise<string> => {
  await browser.open('/sign-in')
  await browser.submit('sign-in/providers/test')
  return pathOf(await provider.authorize(linkIn(browser.page)))
}

const cookieOf = (setCookie: unknown, name: string): string =>
  [setCookie].flat().find(each => String(each).startsWith(`${name}=`)) as string

t.test('a browser signs up by the button of a provider', async t => {
  provider.account = freshAccount()
  const browser = new FormClient(app)
  await browser.open('/sign-in')
  t.match(browser.page, 'Sign in with Test Provider')
  await browser.submit('sign-in/providers/test')
  const link = linkIn(browser.page)
  t.ok(link.startsWith(`${provider.issuer}/auth?`))
  t.match(browser.page, '<meta http-equiv="refresh" content="0; url=')
  t.match(browser.response?.headers['content-security-policy'], "form-action 'self'")
  await browser.open(pathOf(await provider.authorize(link)))
  t.equal(browser.path, '/security')
  t.match(browser.page, provider.account.email)
  t.notOk(browser.cookie('OIDC_FLOW_test'), 'the flow is over')
})

t.test('D4: the start sets a cookie that no other host can plant, for ten minutes', async t => {
  const response = await call(app, 'POST', '/account/sign-in/providers/test', {})
  const set = cookieOf(response.headers['set-cookie'], 'OIDC_FLOW_test')
  t.match(set, /; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax$/)
  t.equal(response.headers['cache-control'], 'no-store')
  const below = await build(t, {
    env: { ...env, PUBLIC_URL: 'https://gatehouse.test/auth', NODE_ENV: 'production' },
  })
  const other = await call(below, 'POST', '/account/sign-in/providers/test', {})
  t.match(
    cookieOf(other.headers['set-cookie'], '__Host-OIDC_FLOW_test'),
    /; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
  )
  const redirectUri = new URL(other.json().authorizationUrl).searchParams.get('redirect_uri')
  t.equal(redirectUri, 'https://gatehouse.test/auth/account/sign-in/providers/test/callback')
})

t.test('R4 forged headers do not change the redirect URI', async t => {
  const headers = {
    host: 'evil.example',
    'x-forwarded-host': 'evil.example',
    'x-forwarded-proto': 'http',
    forwarded: 'host=evil.example',
  }
  const response = await call(app, 'POST', '/account/sign-in/providers/test', {}, headers)
  t.notMatch(response.json().authorizationUrl, /evil/)
})

t.test(
  'O2 a browser without the cookie of the flow is 400: nobody can sign it in to another account',
  async t => {
    provider.account = freshAccount()
    const attacker = new FormClient(app)
    const callback = await authorize(attacker)
    const victim = new FormClient(app)
    await victim.open(callback)
    t.equal(victim.status, 400)
    t.notOk(victim.cookie('ACCESS_TOKEN'))
    await authorize(victim)
    await victim.open(callback)
    t.equal(victim.status, 400, 'nor one with a flow of its own')
    await attacker.open(callback)
    t.equal(attacker.path, '/security', 'the flow still belongs to its browser')
  },
)

t.test('O11 no return target leads away from the service', async t => {
  const targets = [
    '//e',
    '/\\e',
    'https:e',
    'JaVaScRiPt:alert(1)',
    'data:text/html,x',
    'https://good@e',
    'https://a@b@e',
    '%0d%0aLocation:x',
    '/\te',
    '..//e',
    'account/../../e',
    '?token=x',
    'security?next=//e',
    'organizations/accept?token=x&next=//e',
    'organizations/accept?token=//e',
  ]
  for (const target of targets) {
    provider.account = freshAccount()
    const { url, flow } = await program.callback()
    for (const name of ['return_to', 'redirect_uri', 'next', 'url']) {
      const query = `${name}=${encodeURIComponent(target)}`
      const start = await call(app, 'POST', `/account/sign-in/providers/test?${query}`, {})
      t.notMatch(start.body, target)
    }
    const response = await app.inject({
      url: `${pathOf(url)}&return_to=${encodeURIComponent(target)}`,
      headers: { cookie: `OIDC_FLOW_test=${flow}; PAGE_NEXT=${encodeURIComponent(target)}` },
    })
    t.equal(response.statusCode, 303)
    t.match(response.headers.location, /^(?:\.\.\/)+security$/)
    const token = cookieOf(response.headers['set-cookie'], 'ACCESS_TOKEN').split(';', 1)[0]
    const security = await app.inject({
      url: '/security',
      headers: { accept: 'text/html', cookie: `${token}; PAGE_NEXT=${encodeURIComponent(target)}` },
    })
    t.equal(security.statusCode, 200, `${target} is ignored`)
  }
})

t.test('O14 what a provider says of an error is not shown', async t => {
  const texts = [
    '<script>alert(1)</script>',
    'x'.repeat(10_000),
    '\u202e\u0000\ud83d',
    '%00%ff',
    '" onload="x',
  ]
  for (const text of texts) {
    const browser = new FormClient(app)
    const state = new URL(await authorize(browser), 'http://x').searchParams.get('state')
    const query = new URLSearchParams({
      error: text,
      error_description: text,
      error_uri: text,
      state: state ?? '',
      iss: provider.issuer,
    })
    await browser.open(`/account/sign-in/providers/test/callback?${query}`)
    t.equal(browser.status, 401)
    t.equal(browser.heading, 'This did not work')
    t.notMatch(browser.page, text.slice(0, 20))
    t.ok(browser.page.length < 3_000)
  }
})

t.test('O14 what a provider calls a user is escaped', async t => {
  const name = '<img src=x onerror=alert(1)>'
  provider.account = freshAccount({ given_name: name })
  const browser = new FormClient(app)
  await browser.open(await authorize(browser))
  t.equal(browser.path, '/security')
  t.notMatch(browser.page, name)
})

t.test('O15 a flow that an attacker has prepared does not become the victim’s', async t => {
  const victim = await confirmedUser(app)
  const prepared = await program.start()
  const started = await call(
    app,
    'POST',
    '/account/identities',
    { provider: 'test' },
    {
      ...cookie(victim.token),
      cookie: `ACCESS_TOKEN=${victim.token}; OIDC_FLOW_test=${prepared.flow}`,
      origin: 'https://gatehouse.test',
      host: 'gatehouse.test',
      'sec-fetch-site': 'same-origin',
    },
  )
  t.equal(started.statusCode, 201, started.body)
  t.not(started.json().flow, prepared.flow)
  t.match(cookieOf(started.headers['set-cookie'], 'OIDC_FLOW_test'), started.json().flow)
  provider.account = freshAccount()
  const url = await provider.authorize(prepared.authorizationUrl)
  const response = await app.inject({
    url: pathOf(url),
    headers: { cookie: `ACCESS_TOKEN=${victim.token}; OIDC_FLOW_test=${started.json().flow}` },
  })
  t.equal(response.statusCode, 400)
  const listed = await call(app, 'GET', '/account/identities', undefined, bearer(victim.token))
  t.strictSame(listed.json().results, [])
})

t.test('O16 every redirect is a 303', async t => {
  provider.account = freshAccount()
  const { url, flow } = await program.callback()
  const response = await app.inject({ url: pathOf(url), headers: { cookie: `OIDC_FLOW_test=${flow}` } })
  t.equal(response.statusCode, 303)
  t.equal(response.headers['cache-control'], 'no-store')
  const form = await app.inject({
    method: 'POST',
    url: '/account/sign-in/providers/test/callback/form',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      origin: 'https://appleid.apple.com',
      'sec-fetch-site': 'cross-site',
    },
    payload: 'code=c&state=s&user=%7B%7D',
  })
  t.equal(form.statusCode, 303)
  t.match(form.headers.location, /account\/sign-in\/providers\/test\/callback\?code=c&state=s$/)
  const unknown = await app.inject({
    method: 'POST',
    url: '/account/sign-in/providers/nothing/callback/form',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    payload: 'code=c',
  })
  t.equal(unknown.statusCode, 404)
})

t.test('for a taken address the user signs in to the account, and then links', async t => {
  const user = await confirmedUser(app)
  provider.account = freshAccount({ email: user.email })
  const browser = new FormClient(app)
  await browser.open(await authorize(browser))
  t.equal(browser.path, '/account/sign-in/providers/test/confirm')
  t.equal(browser.heading, 'You have an account already')
  t.match(browser.page, user.email)
  await browser.follow('Sign in')
  await browser.submit('sign-in', { email: user.email, password: PASSWORD })
  t.equal(browser.path, '/account/sign-in/providers/test/confirm', 'it comes back')
  t.equal(browser.heading, 'Link Test Provider')
  t.match(browser.page, `The account ${user.email} of Test Provider will sign in to your account`)
  const twin = browser.twin()
  await browser.submit('providers/test/link')
  t.equal(browser.path, '/security')
  t.match(browser.page, 'The provider is linked.')
  await twin.submit('providers/test/link')
  t.equal(twin.status, 400, 'once')
  const again = new FormClient(app)
  await again.open(await authorize(again))
  t.equal(again.path, '/security')
})

t.test('D4: the page to link says that the provider has not confirmed the address', async t => {
  const user = await confirmedUser(app)
  provider.account = freshAccount({ email: user.email, email_verified: false })
  const browser = new FormClient(app)
  await browser.open(await authorize(browser))
  await browser.follow('Sign in')
  await browser.submit('sign-in', { email: user.email, password: PASSWORD })
  t.equal(browser.heading, 'Link Test Provider')
  t.match(browser.page, 'Test Provider has not confirmed that')
})

t.test('D4: a planted session of an account that a stranger has opened gets no link', async t => {
  for (const isConfirmed of [false, true]) {
    const { email, token } = isConfirmed ? await confirmedUser(app) : await signUp(app)
    clock.advance(STEP)
    provider.account = freshAccount({ email, email_verified: false })
    const browser = new FormClient(app, { changeCookies: own => `ACCESS_TOKEN=${token}; ${own}` })
    await browser.open(await authorize(browser))
    t.equal(browser.page.includes('providers/test/link'), isConfirmed)
    if (isConfirmed) continue
    const signedIn = new FormClient(app)
    await signedIn.open(await authorize(signedIn))
    await signedIn.follow('Sign in')
    await signedIn.submit('sign-in', { email, password: PASSWORD })
    await signedIn.submit('providers/test/link')
    t.match(signedIn.page, 'The provider is linked.')
  }
})

t.test('D4: a cookie that another host has planted continues no flow', async t => {
  const user = await confirmedUser(app)
  provider.account = freshAccount({ email: user.email })
  const attacker = new FormClient(app)
  await attacker.open(await authorize(attacker))
  const planted = attacker.cookie('OIDC_FLOW_test') ?? ''
  const path = '/account/sign-in/providers/test/confirm'
  const statusOf = async (service: FastifyInstance, header: string): Promise<number> =>
    (await service.inject({ url: path, headers: { accept: 'text/html', cookie: header } })).statusCode
  t.equal(await statusOf(app, `OIDC_FLOW_test=${planted}`), 200)
  for (const header of [
    `OIDC_FLOW_test=${planted}; OIDC_FLOW_test=own`,
    `OIDC_FLOW_test=own; OIDC_FLOW_test=${planted}`,
    `OIDC_FLOW_other=${planted}`,
    `OIDC_FLOW=${planted}`,
  ])
    t.equal(await statusOf(app, header), 400, header.slice(0, 20))
  const production = await build(t, { env: { ...env, NODE_ENV: 'production' } })
  const { url, flow } = await programOf(production, provider).callback()
  const open = async (name: string) =>
    (await production.inject({ url: pathOf(url), headers: { cookie: `${name}=${flow}` } })).statusCode
  for (const name of ['OIDC_FLOW_test', '__Host-OIDC_FLOW_other', '\u00a0__Host-OIDC_FLOW_test'])
    t.equal(await open(name), 400, name)
  t.equal(await open('__Host-OIDC_FLOW_test'), 303)
})

t.test('D4: flows of two providers go on beside each other', async t => {
  const second = await startProvider(t, { ids: ['second'] })
  const entries = [provider.entry(), second.entry({ id: 'second', name: 'Second' })]
  const own = await build(t, { env: providersEnv(entries, [provider.issuer, second.issuer]) })
  provider.account = freshAccount()
  second.account = freshAccount()
  const browser = await new FormClient(own).open('/sign-in')
  await browser.submit('sign-in/providers/test')
  const first = pathOf(await provider.authorize(linkIn(browser.page)))
  await browser.open('/sign-in')
  await browser.submit('sign-in/providers/second')
  await browser.open(first)
  t.equal(browser.path, '/security')
  t.match(browser.page, provider.account.email)
  t.ok(browser.cookie('OIDC_FLOW_second'), 'the other one goes on')
})

t.test('the page to link is bound to its browser, and to the account with the address', async t => {
  const [user, another] = [await confirmedUser(app), await confirmedUser(app)]
  provider.account = freshAccount({ email: user.email })
  const browser = new FormClient(app)
  await browser.open(await authorize(browser))
  const stranger = new FormClient(app)
  await stranger.open('/account/sign-in/providers/test/confirm')
  t.equal(stranger.status, 400)
  await browser.follow('Sign in')
  await browser.submit('sign-in', { email: another.email, password: PASSWORD })
  t.equal(browser.heading, 'You have an account already', 'not that of another address')
  t.strictSame(
    (await call(app, 'GET', '/account/identities', undefined, bearer(another.token))).json().results,
    [],
  )
})

t.test('the page asks for the code of an authenticator app', async t => {
  provider.account = freshAccount()
  const { accessToken } = (await program.signIn()).json()
  const totp = await addTotp(app, accessToken)
  clock.advance(STEP)
  const browser = new FormClient(app)
  await browser.open(await authorize(browser))
  t.equal(browser.path, '/account/sign-in/providers/test/confirm')
  t.notOk(browser.cookie('ACCESS_TOKEN'))
  await browser.submit('providers/test/confirm', { code: '000000' })
  t.equal(browser.status, 401)
  t.notOk(browser.cookie('ACCESS_TOKEN'))
  await browser.submit('providers/test/confirm', { code: totp.code() })
  t.equal(browser.path, '/security')
  t.ok(browser.cookie('ACCESS_TOKEN'))
})

t.test('the security page links and unlinks, and asks for a proof of identity', async t => {
  const user = await confirmedUser(app)
  const browser = new FormClient(app)
  await browser.open('/sign-in')
  await browser.submit('sign-in', { email: user.email, password: PASSWORD })
  clock.advance(11 * 60_000)
  provider.account = freshAccount()
  await browser.submit('identities/link')
  t.equal(browser.heading, 'Confirm that it is you')
  await browser.submit('identities/link', { password: PASSWORD })
  await browser.open(pathOf(await provider.authorize(linkIn(browser.page))))
  t.equal(browser.path, '/security')
  t.match(browser.page, 'The provider is linked.')
  t.match(browser.page, provider.account.email)
  await browser.submit('identities/remove')
  await browser.submit('identities/remove', { password: PASSWORD })
  t.match(browser.page, 'The provider is unlinked.')
  t.notMatch(browser.page, provider.account.email)
})

t.test('a provider that does not work has a page that says so', async t => {
  const broken = await startProvider(t)
  const app = await build(t, { env: providersEnv([broken.entry()], [broken.issuer]) })
  broken.change = (_path, response) => {
    response.status = 500
  }
  const browser = new FormClient(app)
  await browser.open('/sign-in')
  await browser.submit('sign-in/providers/test')
  t.equal(browser.status, 503)
  t.match(browser.page, 'The provider is not available')
})

t.test('with PAGES=off browsers come back to WEB_URL, with errors', async t => {
  const webUrl = 'https://app.example.com/in'
  const app: FastifyInstance = await build(t, { env: { ...env, WEB_URL: webUrl, PAGES: 'off' } })
  const program = programOf(app, provider)
  const open = async ({ url, flow }: { url: string; flow: string }) =>
    app.inject({ url: pathOf(url), headers: { accept: 'text/html', cookie: `OIDC_FLOW_test=${flow}` } })
  provider.account = freshAccount()
  const callback = await program.callback()
  const response = await open(callback)
  t.equal(response.statusCode, 303)
  t.equal(response.headers.location, webUrl)
  t.ok(cookieOf(response.headers['set-cookie'], 'ACCESS_TOKEN'))
  const again = await open(callback)
  t.equal(again.statusCode, 303)
  t.match(again.headers.location, /^https:\/\/app\.example\.com\/in\?error=This\+sign-in/)
  t.notOk(again.headers['set-cookie'])
  t.equal((await app.inject('/account/sign-in/providers/test/confirm')).statusCode, 404)
})
