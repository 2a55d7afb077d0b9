/** The page to sign up (docs/design.md, "Hosted pages"): a client of `POST /account/sign-up`, whose rules hold. */
import t from 'tap'
import { RATE_LIMITS } from '#core/rate-limits/limits'
import { accountOf } from '../support/account-routes.ts'
import { accountStatus, build, freshEmail, PASSWORD, signIn, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { FormClient } from '../support/form-client.ts'
import { freshAccount, providersEnv, startProvider } from '../support/identity-provider.ts'
import { perAddress } from '../support/limits.ts'
import { mailbox } from '../support/mailbox.ts'

const HOSTILE = `"><script>alert('1')</script>&amp;`
const REQUIRED = { REQUIRE_EMAIL_VERIFICATION: 'true' }

await onEnginesOfRun(t, async (t, { build }) => {
  t.test('the page opens an account and signs in', async t => {
    const app = await build(t)
    const email = freshEmail()
    const browser = await new FormClient(app, { headers: { 'accept-language': 'de-AT' } }).open('/sign-in')
    t.match(browser.page, '<a href="./sign-up">Konto erstellen</a>')
    await browser.open('/sign-up')
    t.match(browser.page, '<a href="./sign-in">Sie haben schon ein Konto? Anmelden</a>')
    await browser.submit('sign-up', { email, password: PASSWORD, firstName: 'Ann', lastName: '' })
    t.equal(browser.path, '/security')
    const account = await accountOf(app, browser.cookie('ACCESS_TOKEN') ?? '')
    t.match(account, { email, emailVerified: false, firstName: 'Ann', lastName: null, locale: 'de-AT' })
    t.same(await mailbox(app).final(email), ['Bestätigen Sie Ihre E-Mail-Adresse'], 'in the same language')
  })

  t.test('R1: with required verification the page is the same for every address', async t => {
    const app = await build(t, { env: REQUIRED })
    const [free, taken] = [freshEmail(), freshEmail()]
    const open = async (email: string) => {
      const browser = await new FormClient(app).open('/sign-up')
      return browser.submit('sign-up', { email, password: PASSWORD })
    }
    await open(taken)
    const link = /\/account\/verify-email\?token=\S+/.exec(
      (await mailbox(app).to(taken, 'signUp'))[0]?.text ?? '',
    )
    const browser = await new FormClient(app).open(link?.[0] ?? '')
    await browser.submit('confirm', { password: PASSWORD })
    t.equal(await accountStatus(app, browser.cookie('ACCESS_TOKEN') ?? ''), 200)

    const [ofFree, ofTaken] = [await open(free), await open(taken)]
    t.equal(ofFree.heading, 'Check your mail')
    t.match(ofFree.page, `A mail to ${free} is on its way.`)
    t.equal(ofFree.page.replaceAll(free, taken), ofTaken.page)
    for (const name of ['set-cookie', 'location'])
      t.equal(ofFree.response?.headers[name] ?? ofTaken.response?.headers[name], undefined)
    t.equal(ofFree.status, ofTaken.status)
    await mailbox(app).to(taken, 'accountExists')
    await mailbox(app).to(free, 'signUp')
    t.equal((await signIn(app, free)).statusCode, 401, 'there is no account yet')
  })
})

t.test('the page to sign up', async t => {
  const app = await build(t)

  t.test('errors stand at their fields, and everything but the password stays', async t => {
    const { email } = await signUp(app)
    const browser = await new FormClient(app).open('/sign-up')
    await browser.submit('sign-up', {
      email,
      password: 'wxqz',
      firstName: HOSTILE,
      lastName: 'x'.repeat(129),
    })
    t.equal(browser.status, 400)
    t.match(browser.page, '<title>Error: Create an account')
    t.match(browser.page, '<a href="#password">Password: At least 8 characters are needed.</a>')
    t.match(browser.page, /<p class="error" id="lastName-error">At most 128 characters are allowed. <\/p>/)
    t.match(browser.page, `value="${email}"`)
    t.match(browser.page, `value="${'x'.repeat(129)}"`)
    t.notMatch(browser.page, 'wxqz')
    t.notMatch(browser.page, '<script>')
    await browser.submit('sign-up', { password: PASSWORD, firstName: 'Ann', lastName: 'Lee' })
    t.equal(browser.status, 409)
    t.match(browser.page, /<p class="error" id="email-error">Another account uses this e-mail. <\/p>/)
    t.notMatch(browser.page, PASSWORD)
    t.match(browser.page, 'value="Ann"')
    await browser.submit('sign-up', { email: freshEmail(), password: PASSWORD })
    t.equal(browser.path, '/security')
    t.match(await accountOf(app, browser.cookie('ACCESS_TOKEN') ?? ''), { firstName: 'Ann', lastName: 'Lee' })
  })

  t.test('K7, K8: hostile addresses and texts are errors of their fields', async t => {
    const open = async (fields: Record<string, string>) =>
      (await new FormClient(app).open('/sign-up')).submit('sign-up', {
        email: freshEmail(),
        password: PASSWORD,
        ...fields,
      })
    for (const email of [
      'ａｎｎ＠example.com',
      'a@@b.com',
      'a@b@c.com',
      'a@b.com.',
      'ann',
      '',
      'a\0@b.com',
    ]) {
      const { status, page } = await open({ email })
      t.equal(status, 400, JSON.stringify(email))
      t.match(page, 'id="email-error"')
    }
    for (const [field, text] of [
      ['firstName', 'a\0b'],
      ['lastName', '\u202eevil'],
      ['firstName', '\ufffe'],
      ['password', '        '],
      ['password', 'password1'],
    ] as const) {
      const { status, page } = await open({ [field]: text })
      t.equal(status, 400, JSON.stringify(text))
      t.match(page, `id="${field}-error"`)
    }
    t.equal((await open({ firstName: '\ufdfa', password: `${PASSWORD}\0` })).path, '/security')
    const more = await app.inject({
      method: 'POST',
      url: '/sign-up',
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'text/html' },
      payload: new URLSearchParams({ email: freshEmail(), password: PASSWORD, roles: 'admin' }).toString(),
    })
    t.equal(more.statusCode, 400, 'no field but those of the form')
  })

  t.test('it counts towards the limit of mails, and says so', async t => {
    const rateLimits = { ...RATE_LIMITS, perAddress: perAddress({ mail: 1 }) }
    const limited = await build(t, { env: { RATE_LIMIT: 'on' }, rateLimits })
    const browser = await new FormClient(limited).open('/sign-up')
    await browser.submit('sign-up', { email: freshEmail(), password: 'short' })
    await browser.submit('sign-up', { email: freshEmail(), password: PASSWORD })
    t.equal(browser.status, 429)
    t.match(browser.page, 'That was too often.')
    t.ok(browser.response?.headers['retry-after'])
  })

  t.test('a form of another site opens no account', async t => {
    const email = freshEmail()
    const response = await app.inject({
      method: 'POST',
      url: '/sign-up',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        origin: 'https://evil.example',
        'sec-fetch-site': 'cross-site',
      },
      payload: new URLSearchParams({ email, password: PASSWORD }).toString(),
    })
    t.equal(response.statusCode, 403)
    t.same(response.cookies, [])
    t.equal((await signIn(app, email)).statusCode, 401)
  })

  t.test('O11: TERMS_URL is a link, in both languages, and no request names another', async t => {
    t.notMatch((await new FormClient(app).open('/sign-up')).page, 'terms')
    const own = await build(t, { env: { TERMS_URL: 'https://example.com/terms?a=1&b="2"' } })
    for (const [language, name] of [
      ['en', 'terms of use'],
      ['de', 'Nutzungsbedingungen'],
    ] as const) {
      const browser = new FormClient(own, { headers: { 'accept-language': language } })
      const { page } = await browser.open('/sign-up')
      t.match(page, `<a href="https://example.com/terms?a=1&amp;b=%222%22">${name}</a>`)
    }
    const { page } = await new FormClient(own).open('/sign-up?terms=//evil.example&next=//evil.example')
    t.notMatch(page, 'evil')
  })

  t.test('SIGN_UP_PAGE=off and PAGES=off turn the page off, not the route', async t => {
    for (const env of [{ SIGN_UP_PAGE: 'off' }, { PAGES: 'off' }]) {
      const own = await build(t, { env })
      for (const method of ['GET', 'POST'] as const)
        t.equal((await own.inject({ method, url: '/sign-up' })).statusCode, 404)
      t.equal(await accountStatus(own, (await signUp(own)).token), 200)
    }
    const off = await build(t, { env: { SIGN_UP_PAGE: 'off' } })
    t.notMatch((await new FormClient(off).open('/sign-in')).page, 'sign-up')
  })

  t.test('it has buttons of the providers that open accounts', async t => {
    t.notMatch((await new FormClient(app).open('/sign-up')).page, 'providers')
    const provider = await startProvider(t)
    const env = providersEnv(
      [provider.entry(), provider.entry({ id: 'staff', name: 'Staff', signUp: false })],
      [provider.issuer],
    )
    const own = await build(t, { env })
    const browser = await new FormClient(own).open('/sign-up')
    t.match(browser.page, 'Sign up with Test Provider')
    t.notMatch(browser.page, 'Staff')
    t.notMatch(browser.page, 'passkey')
    provider.account = freshAccount()
    await browser.submit('sign-in/providers/test')
    const link = (/<a href="(http[^"]*)"/.exec(browser.page)?.[1] ?? '').replaceAll('&amp;', '&')
    const callback = await provider.authorize(link)
    await browser.open(callback.replace('https://gatehouse.test', ''))
    t.equal(browser.path, '/security')
    t.match(browser.page, provider.account.email)
  })
})
