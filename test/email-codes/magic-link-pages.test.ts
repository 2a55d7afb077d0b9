/** The pages of mailed links (docs/design.md, "Magic links"): opening one changes nothing, its button signs in. */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { addTotp, STEP } from '../support/authenticator-apps.ts'
import { accountStatus, build, confirmedUser, freshEmail, manualClock, signUp } from '../support/build.ts'
import { checkLink, linksOf, MAILED_SIGN_INS } from '../support/email-codes.ts'
import { FormClient } from '../support/form-client.ts'

const HOSTILE = `"><script>alert('1')</script>&amp;`
const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:146.0) Gecko/20100101 Firefox/146.0'

/** Asks for a link on the page. @returns the path of the link in the mail. */
const ask = async (app: FastifyInstance, email: string, headers = {}, count = 1): Promise<string> => {
  const browser = await new FormClient(app, { headers, remoteAddress: '203.0.113.77' }).open('/sign-in')
  await browser.open('/sign-in/magic-link')
  await browser.submit('magic-link', { email })
  if (browser.status !== 200) throw new Error(browser.page)
  return `/magic-link?token=${await linksOf(app).mails.token(email, 'magicLink', count)}`
}

t.test('pages of magic links', async t => {
  const clock = manualClock()
  const app = await build(t, { env: MAILED_SIGN_INS, clock: clock.now })

  t.test('the page to ask says the same whether there is an account', async t => {
    const { email } = await signUp(app)
    const browser = await new FormClient(app).open('/sign-in')
    t.match(
      browser.page,
      '<button formaction="./sign-in/magic-link" formnovalidate>E-mail me a link</button>',
    )
    await browser.open('/sign-in/magic-link')
    await browser.submit('magic-link', { email: HOSTILE })
    t.equal(browser.status, 400)
    t.match(browser.page, 'E-mail: This is not an e-mail address.')
    const unknown = browser.twin()
    await browser.submit('magic-link', { email })
    await unknown.submit('magic-link', { email: freshEmail() })
    t.equal(browser.heading, 'Check your mail')
    t.equal(unknown.page, browser.page)
  })

  t.test('another browser signs in, after it has seen the account and who has asked', async t => {
    const { email } = await confirmedUser(app)
    const link = await ask(app, email, { 'user-agent': FIREFOX })
    const browser = await new FormClient(app, { remoteAddress: '198.51.100.3' }).open(link)
    t.match(browser.page, `You are signing in to the account ${email}.`)
    const asked = /<p class="muted">(.*)<\/p>/.exec(browser.page)?.[1]?.replaceAll(/<[^>]*>/g, '')
    t.equal(asked, 'The link was asked for on Jan 1, 2026, 12:00 AM UTC · Firefox, Linux · 203.0.113.0/24')
    t.notMatch(browser.page, 'confirmed', 'nothing is removed')
    const again = browser.twin()
    await browser.submit('magic-link')
    t.equal(browser.path, '/security')
    t.match(browser.page, email)
    await again.submit('magic-link')
    t.equal(again.status, 400)
    t.equal(again.heading, 'This link does not work any more')
    t.equal(again.cookie('ACCESS_TOKEN'), undefined)
  })

  t.test('opening the link changes nothing, however often scanners do', async t => {
    const { email, token: session } = await confirmedUser(app)
    const link = await ask(app, email)
    for (const method of ['GET', 'HEAD', 'GET', 'HEAD'] as const) {
      const { statusCode, headers, cookies } = await app.inject({ method, url: link })
      t.equal(statusCode, 200)
      t.same(cookies, [])
      t.match(headers, { 'cache-control': 'no-store', 'referrer-policy': 'strict-origin' })
      t.match(headers['content-security-policy'], "default-src 'none'")
    }
    t.equal((await checkLink(app, link.slice(link.indexOf('=') + 1))).statusCode, 200)
    t.equal(await accountStatus(app, session), 200)
  })

  t.test('the page of the code stays while wrong codes make it wait', async t => {
    const limited = await build(t, { env: { ...MAILED_SIGN_INS, RATE_LIMIT: 'on' } })
    const { email, token } = await confirmedUser(limited)
    await addTotp(limited, token)
    const browser = await new FormClient(limited).open(await ask(limited, email))
    await browser.submit('magic-link')
    for (let wrong = 0; wrong < 12 && browser.status !== 429; wrong += 1) {
      t.equal(browser.heading, 'Enter your code')
      await browser.submit('magic-link', { code: '000000' })
    }
    t.equal(browser.status, 429)
    t.equal(browser.heading, 'Enter your code')
  })

  t.test('O16, S1: with an app the page asks for its code, and leads on by 303', async t => {
    const { email, token } = await confirmedUser(app)
    const totp = await addTotp(app, token)
    clock.advance(STEP)
    const link = await ask(app, email)
    const browser = await new FormClient(app).open(link)
    t.notMatch(browser.page, 'id="code"')
    await browser.submit('magic-link')
    t.equal(browser.status, 200)
    t.equal(browser.heading, 'Enter your code')
    t.match(browser.page, email)
    t.equal(browser.cookie('ACCESS_TOKEN'), undefined)
    await browser.submit('magic-link', { code: '000000' })
    t.match(browser.page, 'The code is wrong or was used already.')
    t.equal((await browser.twin().open('/security')).path, '/sign-in')
    const url = new URL(link, 'http://gatehouse.test')
    const response = await app.inject({
      method: 'POST',
      url: '/magic-link',
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'text/html' },
      payload: `token=${url.searchParams.get('token')}&code=${totp.code()}`,
    })
    t.equal(response.statusCode, 303)
    t.equal(response.headers.location, './security?signed-in')
  })

  t.test('an account that was never confirmed: the page says what is removed', async t => {
    const { email, token } = await signUp(app)
    const browser = await new FormClient(app, { headers: { 'accept-language': 'de' } }).open(
      await ask(app, email),
    )
    t.match(browser.page, 'Die Adresse dieses Kontos ist noch nicht bestätigt.')
    t.match(browser.page, `Sie melden sich beim Konto ${email} an.`)
    t.equal(await accountStatus(app, token), 200, 'not yet')
    await browser.submit('magic-link')
    t.equal(browser.path, '/security')
    t.equal(await accountStatus(app, token), 401)
  })

  t.test('D8: what a stranger sends as user agent is not shown', async t => {
    const { email } = await signUp(app)
    const browser = await new FormClient(app).open(await ask(app, email, { 'user-agent': HOSTILE }))
    t.match(browser.page, ' · Unknown device · ')
    t.notMatch(browser.page, '&quot;&gt;')
    t.notMatch(browser.page, 'alert(')
  })

  t.test('a form of another site signs nobody in', async t => {
    const { email } = await signUp(app)
    const link = await ask(app, email)
    const response = await app.inject({
      method: 'POST',
      url: '/magic-link',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        origin: 'https://evil.example',
        'sec-fetch-site': 'cross-site',
      },
      payload: `token=${link.slice(link.indexOf('=') + 1)}`,
    })
    t.equal(response.statusCode, 403)
    t.same(response.cookies, [])
    t.equal((await app.inject(link)).statusCode, 200)
  })

  t.test('a link that is dead, incomplete or guessed', async t => {
    const { email } = await signUp(app)
    const link = await ask(app, email)
    for (const url of ['/magic-link?token=', '/magic-link?token=x', '/magic-link', link.slice(0, -1)])
      t.equal((await new FormClient(app).open(url)).heading, 'This link does not work any more', url)
    clock.advance(600_000)
    t.equal((await new FormClient(app).open(link)).heading, 'This link does not work any more')
  })
})
