/** The hosted pages in Chromium (docs/design.md, "Hosted pages"): without script, accessibility, colours, widths, the policy, passkeys. */
import { Secret, TOTP } from 'otpauth'
import type { Page } from 'playwright-core'
import t from 'tap'
import { accountOf } from '../support/account-routes.ts'
import { addTotp } from '../support/authenticator-apps.ts'
import {
  checkPage,
  focusByTab,
  follow,
  launchBrowser,
  openBrowser,
  VIEWS,
  withoutBrowser,
} from '../support/browser.ts'
import { accountStatus, build, freshEmail, manualClock, PASSWORD, signUp } from '../support/build.ts'
import { MAILED_SIGN_INS } from '../support/email-codes.ts'
import { mailbox } from '../support/mailbox.ts'

const NEW = 'nine otters crossed a bridge'

/** The button that sends a form. Others show a password, or copy. */
const submitOf = (form: string): string => `form[action$="${form}"] button:not([type="button"])`

/** From the menu of the account page. */
const signOut = async (page: Page): Promise<void> => {
  await page.click('[popovertarget="me"]')
  await follow(page, submitOf('sign-out'))
}

t.test('the hosted pages in a browser', { skip: withoutBrowser }, async t => {
  const clock = manualClock(Date.now())
  const app = await build(t, {
    clock: clock.now,
    env: { ...MAILED_SIGN_INS, TERMS_URL: 'https://example.com/terms' },
  })
  const mails = mailbox(app)
  const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }))
  const service = `http://localhost:${port}`
  const browser = await launchBrowser(t)

  const local = (link: string): string => {
    const { pathname, search } = new URL(link)
    return service + pathname + search
  }
  const linkTo = async (
    email: string,
    kind: 'verification' | 'passwordReset' | 'magicLink',
  ): Promise<string> => {
    const [mail] = await mails.to(email, kind)
    return local(/https?:\/\/\S+\?token=\S+/.exec(mail?.text ?? '')?.[0] ?? '')
  }

  t.test('sign-up, the code step and sign-out work with the keyboard alone', async t => {
    const { page, complaints } = await openBrowser(browser, { locale: 'en-GB' })
    const enter = async (path: RegExp): Promise<void> => {
      await Promise.all([page.waitForURL(path), page.keyboard.press('Enter')])
    }
    const email = freshEmail()
    await page.goto(`${service}/sign-up`)
    await focusByTab(t, page, 'E-mail')
    await page.keyboard.type(email)
    await focusByTab(t, page, 'Password')
    await page.keyboard.type(PASSWORD)
    await focusByTab(t, page, 'Create the account')
    await enter(/\/security/)
    const token = (await page.context().cookies()).find(({ name }) => name === 'ACCESS_TOKEN')?.value ?? ''
    const totp = await addTotp(app, token)
    // Each code works once.
    clock.advance(60_000)
    await page.goto(`${service}/sign-out`)
    await focusByTab(t, page, 'Sign out')
    await Promise.all([page.waitForEvent('load'), page.keyboard.press('Enter')])
    await page.goto(`${service}/sign-in`)
    await focusByTab(t, page, 'E-mail')
    await page.keyboard.type(email)
    await focusByTab(t, page, 'Password')
    await page.keyboard.type(PASSWORD)
    await Promise.all([page.waitForEvent('load'), page.keyboard.press('Enter')])
    t.equal(await page.textContent('h1'), 'Enter your code')
    // The field has the focus.
    await page.keyboard.type(totp.code())
    await enter(/\/security/)
    t.same(complaints, [])
  })

  for (const [view, options] of VIEWS)
    t.test(`every page: ${view}`, async t => {
      const { email } = await signUp(app)
      const { page, complaints } = await openBrowser(browser, options)
      const seen = (name: string) => checkPage(t, page, view, name)
      const press = (form: string): Promise<void> => follow(page, submitOf(form))
      /** A browser gives it when it first renders the page, which may be after the load. */
      const hasFocus = (className: string) =>
        t.resolves(page.waitForFunction(`document.activeElement.className === '${className}'`), className)

      await page.goto(await linkTo(email, 'verification'))
      await seen('confirm e-mail')
      await page.fill('#password', 'not the one')
      await press('confirm')
      await seen('confirm e-mail, wrong')
      await page.fill('#password', PASSWORD)
      await press('confirm')
      await seen('e-mail confirmed')
      await page.goto(await linkTo(email, 'verification'))
      await seen('link used up')
      await page.goto(`${service}/forgot-password`)
      await seen('forgotten password')
      await page.fill('#email', email)
      await press('forgot-password')
      await seen('link sent')
      await page.goto(await linkTo(email, 'passwordReset'))
      await page.fill('#password', 'password1')
      await press('reset-password')
      await seen('reset with errors')
      await hasFocus('notice bad')
      await page.fill('#password', NEW)
      await press('reset-password')
      await page.waitForURL(`${service}/security?signed-in`)
      await hasFocus('notice good')
      await seen('security after the reset')
      await signOut(page)
      await page.waitForURL(`${service}/sign-in`)
      await seen('sign-in')
      await page.goto(`${service}/sign-in/email-code`)
      await seen('request of a mailed code')
      await page.fill('#email', email)
      await press('email-code')
      await seen('mailed code')
      await page.goto(`${service}/sign-in/magic-link`)
      await seen('request of a mailed link')
      await page.fill('#email', email)
      await press('magic-link')
      await seen('mailed link sent')
      await page.goto(await linkTo(email, 'magicLink'))
      await seen('mailed link')
      await page.goto(`${service}/sign-in`)
      await page.fill('#email', email)
      await page.fill('#password', 'wrong')
      await press('sign-in')
      await seen('sign-in with errors')
      await page.fill('#password', NEW)
      await press('sign-in')
      await page.waitForURL(`${service}/security?signed-in`)
      await page.goto(`${service}/security/password`)
      await seen('change of the password')
      await page.goto(`${service}/security/proof`)
      await seen('proof')
      await page.goto(`${service}/security`)
      await press('security/totp')
      await seen('new authenticator app')
      const secret = ((await page.textContent('.secret')) ?? '').replaceAll(' ', '')
      await page.fill('#code', '000000')
      await press('totp/confirm')
      await seen('wrong first code')
      const totp = new TOTP({ secret: Secret.fromBase32(secret) })
      await page.fill('#code', totp.generate({ timestamp: clock.now() }))
      await press('totp/confirm')
      await seen('recovery codes')
      await page.goto(`${service}/security/proof`)
      await seen('proof with codes')
      await page.goto(`${service}/security/api-keys`)
      await seen('new API key')
      await page.fill('#name', 'A key with a rather long name, as people give them to their programs')
      await press('api-keys')
      await seen('API key with errors')
      await page.check('input[name="scope:users:read"]')
      await press('api-keys')
      await seen('API key created')
      await page.goto(`${service}/security`)
      await seen('security')
      await signOut(page)
      await page.fill('#email', email)
      await page.fill('#password', NEW)
      await press('sign-in')
      await seen('sign-in with a code')
      t.same(complaints, [], 'no violation of the policy, no error')
    })

  t.test('everything works with JavaScript turned off', async t => {
    const { email } = await signUp(app)
    const { page, complaints } = await openBrowser(browser, { javaScriptEnabled: false, locale: 'de-DE' })
    await page.goto(`${service}/sign-in`)
    t.notOk(await page.isVisible('#passkey-sign-in'))
    await page.fill('#email', email)
    await page.fill('#password', PASSWORD)
    await page.press('#password', 'Enter')
    await page.waitForURL(`${service}/security?signed-in`)
    t.equal(await page.textContent('h1'), 'Ihr Konto')
    await page.click('details:has(#passkey-add) > summary')
    t.ok(await page.isVisible('#passkey-add-needs'))
    await follow(page, submitOf('end-others'))
    t.match(await page.textContent('.notice.good'), 'Alle anderen Sitzungen sind beendet.')
    await signOut(page)
    await page.waitForURL(`${service}/sign-in`)
    t.same(complaints, [])
  })

  t.test('the page to sign up opens an account, with and without script', async t => {
    for (const [view, options] of VIEWS) {
      const javaScriptEnabled = view !== VIEWS[1][0]
      const { page, complaints } = await openBrowser(browser, { ...options, javaScriptEnabled })
      const seen = (name: string) => (javaScriptEnabled ? checkPage(t, page, view, name) : Promise.resolve())
      const email = freshEmail()
      await page.goto(`${service}/sign-in`)
      await follow(page, 'a[href$="sign-up"]')
      await page.waitForURL(`${service}/sign-up`)
      await seen('sign-up')
      t.equal(await page.locator('main a[href="https://example.com/terms"]').count(), 1)
      await page.fill('#email', email)
      await page.fill('#password', 'password1')
      await page.fill('#firstName', 'Ann')
      await page.press('#firstName', 'Enter')
      await page.waitForSelector('#password-error')
      await seen('sign-up with errors')
      t.equal(await page.inputValue('#password'), '')
      t.equal(await page.inputValue('#email'), email)
      t.equal(await page.inputValue('#firstName'), 'Ann')
      await page.fill('#password', PASSWORD)
      await follow(page, submitOf('sign-up'))
      await page.waitForURL(`${service}/security?signed-in`)
      t.match(await page.textContent('main'), email)
      t.same(complaints, [], view)
    }
  })

  t.test('with required verification the page to sign up leads to the mail', async t => {
    const own = await build(t, { env: { REQUIRE_EMAIL_VERIFICATION: 'true' } })
    const address = `http://localhost:${new URL(await own.listen({ host: '127.0.0.1', port: 0 })).port}`
    const [view, options] = VIEWS[1]
    const { page, complaints } = await openBrowser(browser, options)
    const email = freshEmail()
    await page.goto(`${address}/sign-up`)
    await page.fill('#email', email)
    await page.fill('#password', PASSWORD)
    await page.press('#password', 'Enter')
    await page.waitForSelector('h1 >> text=Sehen Sie in Ihre Mails')
    t.match(await page.textContent('main'), email)
    await checkPage(t, page, view, 'sign-up sent')
    t.same(complaints, [])
  })

  t.test('a mailed link signs in another browser than the one that asked, without script too', async t => {
    for (const javaScriptEnabled of [true, false]) {
      const { email } = await signUp(app)
      const asking = await openBrowser(browser, {})
      await asking.page.goto(`${service}/sign-in`)
      await asking.page.fill('#email', email)
      await follow(asking.page, 'button[formaction$="sign-in/magic-link"]')
      const { page, context, complaints } = await openBrowser(browser, { javaScriptEnabled })
      await page.goto(await linkTo(email, 'magicLink'))
      const text = await page.textContent('main')
      t.match(text, email)
      t.match(text, /Chrome, Linux · 127\.0\.0\.0\/24|Chrome, Linux · 0:0:0::\/48/)
      t.same(await context.cookies(service), [], 'not yet')
      await follow(page, submitOf('magic-link'))
      await page.waitForURL(`${service}/security?signed-in`)
      t.match(await page.textContent('main'), email)
      t.same(await asking.context.cookies(service), [], 'the browser that asked is not signed in')
      t.same([...complaints, ...asking.complaints], [])
    }
  })

  for (const javaScriptEnabled of [true, false])
    t.test(`a double click confirms, ${javaScriptEnabled ? 'with' : 'without'} script`, async t => {
      const { email, token } = await signUp(app)
      const { page } = await openBrowser(browser, { javaScriptEnabled })
      await page.goto(await linkTo(email, 'verification'))
      await page.fill('#password', PASSWORD)
      await page.dblclick(submitOf('confirm'))
      await page.waitForSelector('main a.button')
      // Which of the two responses the browser shows depends on how fast they are.
      const heading = (await page.textContent('h1')) ?? ''
      t.ok(['Your e-mail is confirmed', 'This link does not work any more'].includes(heading), heading)
      t.equal((await accountOf(app, token)).emailVerified, true)
    })

  for (const javaScriptEnabled of [true, false])
    t.test(
      `“This was not me” removes the account, ${javaScriptEnabled ? 'with' : 'without'} script`,
      async t => {
        const { email, token } = await signUp(app)
        const { page, complaints } = await openBrowser(browser, { javaScriptEnabled })
        await page.goto(await linkTo(email, 'verification'))
        // The empty password of the other form does not keep it from being sent.
        await follow(page, submitOf('not-me'))
        t.match(await page.textContent('main'), 'The account is removed.')
        t.equal(await accountStatus(app, token), 401)
        t.same(complaints, [])
      },
    )

  t.test('over plain HTTP, where browsers send no Sec-Fetch-Site, forms pass by their Origin', async t => {
    const plain = await launchBrowser(t, ['--host-resolver-rules=MAP gatehouse.test 127.0.0.1'])
    const { email } = await signUp(app)
    const { page } = await openBrowser(plain, {})
    const requests: Promise<Record<string, string>>[] = []
    page.on('request', request => {
      if (request.method() === 'POST') requests.push(request.allHeaders())
    })
    await page.goto(`http://gatehouse.test:${port}/sign-in`)
    await page.fill('#email', email)
    await page.fill('#password', PASSWORD)
    await page.press('#password', 'Enter')
    await page.waitForURL(`http://gatehouse.test:${port}/security?signed-in`)
    await signOut(page)
    await page.waitForURL(`http://gatehouse.test:${port}/sign-in`)
    for (const headers of await Promise.all(requests)) {
      t.equal(headers['sec-fetch-site'], undefined)
      t.equal(headers.origin, `http://gatehouse.test:${port}`)
    }
    t.equal(requests.length, 2)
  })

  t.test('a form of another site signs nobody in', async t => {
    const { email } = await signUp(app)
    const { page, context } = await openBrowser(browser, {})
    await page.route('http://elsewhere.example/', route =>
      route.fulfill({
        contentType: 'text/html',
        body: `<form method="post" action="${service}/sign-in"><input name="email" value="${email}"><input name="password" value="${PASSWORD}"><button>Win</button></form>`,
      }),
    )
    await page.goto('http://elsewhere.example/')
    await follow(page, 'button')
    await page.waitForURL(`${service}/sign-in`)
    t.match(await page.textContent('.notice.bad'), 'from another site')
    t.same(await context.cookies(service), [])
  })

  t.test('the button of the mailed link may redirect to WEB_URL', async t => {
    const web = 'http://app.example:8080'
    const own = await build(t, { env: { WEB_URL: web, PAGES: 'off' } })
    const address = `http://localhost:${new URL(await own.listen({ host: '127.0.0.1', port: 0 })).port}`
    const { email } = await signUp(own)
    const token = await mailbox(own).token(email, 'verification')
    const { page, complaints } = await openBrowser(browser, {})
    await page.route(`${web}/**`, route => route.fulfill({ contentType: 'text/html', body: 'welcome' }))
    await page.goto(`${address}/account/verify-email?token=${token}`)
    await page.fill('#password', PASSWORD)
    await follow(page, submitOf('confirm'))
    await page.waitForURL(`${web}/`)
    t.equal(await page.textContent('body'), 'welcome')
    t.same(complaints, [])
  })

  t.test('a passkey is added, signs in, and is removed', async t => {
    // The default PUBLIC_URL, to which passkeys belong.
    const origin = 'http://localhost:3000'
    const { page, context, complaints } = await openBrowser(
      await launchBrowser(t, [`--host-resolver-rules=MAP localhost:3000 127.0.0.1:${port}`]),
      {},
    )
    // The virtual authenticator chooses a passkey of the autofill by itself, now before the button is pressed, now after it.
    await page.addInitScript('PublicKeyCredential.isConditionalMediationAvailable = async () => false')
    const session = await context.newCDPSession(page)
    await session.send('WebAuthn.enable')
    const options = {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    } as const
    const { authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', { options })
    const { email } = await signUp(app)
    const signInWithPassword = async (): Promise<void> => {
      await page.goto(`${origin}/sign-in`)
      await page.fill('#email', email)
      await page.fill('#password', PASSWORD)
      await page.press('#password', 'Enter')
      await page.waitForURL(`${origin}/security?signed-in`)
    }
    await signInWithPassword()
    const openPasskeys = () => page.click('details:has(#passkey-add) > summary')
    await openPasskeys()
    await page.fill('#passkey-name', 'My laptop')
    await page.click('#passkey-add button')
    t.match(await page.textContent('.notice.good'), 'The passkey is added.')
    t.match(await page.textContent('main'), 'My laptop')
    await page.reload()
    t.equal(await page.locator('.notice.good').count(), 0, 'it is said once')
    await signOut(page)
    await page.waitForURL(`${origin}/sign-in`)
    await page.click('#passkey-sign-in button')
    await page.waitForURL(`${origin}/security?signed-in`)
    t.match(await page.textContent('main'), email)

    // A passkey that the service does not know any more.
    await follow(page, submitOf('passkeys/remove'))
    t.match(await page.textContent('.notice.good'), 'The passkey is removed.')
    t.notMatch(await page.textContent('main'), 'My laptop')
    await signOut(page)
    await page.click('#passkey-sign-in button')
    await page.waitForSelector('#passkey-sign-in .error:not([hidden])')
    t.match(await page.textContent('#passkey-sign-in .error'), 'The passkey did not work.')

    clock.advance(11 * 60_000)
    await session.send('WebAuthn.clearCredentials', { authenticatorId })
    await signInWithPassword()
    clock.advance(11 * 60_000)
    await openPasskeys()
    await page.click('#passkey-add button')
    await page.waitForURL(`${origin}/security/proof`)
    await page.fill('#password', PASSWORD)
    await page.press('#password', 'Enter')
    t.match(await page.textContent('.notice.good'), 'Thank you.')
    await openPasskeys()
    await page.click('#passkey-add button')
    await page.waitForSelector('.notice.good >> text=The passkey is added.')
    t.same(complaints, [])
  })
})
