/** Sign-up, sign-in, linking and unlinking with another provider in Chromium, without script too. */
import t from 'tap'
import { checkPage, follow, launchBrowser, openBrowser, VIEWS, withoutBrowser } from '../support/browser.ts'
import { build, confirmedUser, PASSWORD } from '../support/build.ts'
import { freshAccount, providersEnv, startProvider } from '../support/identity-provider.ts'

/** Another site than the provider's, so that the rules for cookies are those of the real world. */
const SERVICE = 'http://gatehouse.test'

t.test('another provider in a browser', { skip: withoutBrowser }, async t => {
  const provider = await startProvider(t, { publicUrl: SERVICE })
  const env = { ...providersEnv([provider.entry()], [provider.issuer]), PUBLIC_URL: SERVICE }
  const app = await build(t, { env })
  const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }))
  const browser = await launchBrowser(t, [`--host-resolver-rules=MAP gatehouse.test:80 127.0.0.1:${port}`])

  // Without script once: how a page looks does not depend on it.
  for (const [view, options] of VIEWS)
    for (const javaScriptEnabled of view === VIEWS[0][0] ? [true, false] : [true])
      t.test(`${view}, ${javaScriptEnabled ? 'with' : 'without'} script`, async t => {
        const { context, page, complaints } = await openBrowser(browser, { ...options, javaScriptEnabled })
        const seen = (name: string) =>
          javaScriptEnabled ? checkPage(t, page, view, `provider ${name}`) : Promise.resolve()
        const press = (form: string): Promise<void> => follow(page, `form[action$="${form}"] button`)
        const isAt = async (path: string) => {
          await page.waitForURL(`${SERVICE}/${path}`)
          t.equal(new URL(page.url()).pathname, `/${path}`)
        }

        provider.account = freshAccount()
        await page.goto(`${SERVICE}/sign-in`)
        await seen('sign-in')
        await follow(page, 'a[href$="sign-up"]')
        await page.waitForURL(`${SERVICE}/sign-up`)
        await seen('sign-up')
        await press('sign-in/providers/test')
        await isAt('security')
        t.match(await page.textContent('main'), provider.account.email)
        await seen('security')

        await context.clearCookies()
        await page.goto(`${SERVICE}/sign-in`)
        await press('sign-in/providers/test')
        await isAt('security')

        const user = await confirmedUser(app)
        await context.clearCookies()
        provider.account = freshAccount({ email: user.email })
        await page.goto(`${SERVICE}/sign-in`)
        await press('sign-in/providers/test')
        await isAt('account/sign-in/providers/test/confirm')
        await seen('taken address')
        await follow(page, 'main a[href*="sign-in"]')
        await page.fill('#email', user.email)
        await page.fill('#password', PASSWORD)
        await follow(page, 'form[action*="/sign-in"] button.primary')
        await isAt('account/sign-in/providers/test/confirm')
        await seen('link')
        await press('providers/test/link')
        await isAt('security')
        await seen('linked')
        await press('identities/remove')
        await isAt('security')
        t.equal(await page.locator('form[action$="identities/remove"]').count(), 0)

        provider.account = freshAccount()
        await press('identities/link')
        await isAt('security')
        t.equal(await page.locator('form[action$="identities/remove"]').count(), 1)
        t.strictSame(complaints, [])
        await context.close()
      })
})
