/** The pages of organizations in Chromium, with axe (docs/organizations.md). */
import t from 'tap'
import { checkPage, follow, launchBrowser, openBrowser, VIEWS, withoutBrowser } from '../support/browser.ts'
import { build, confirmedUser, freshEmail, PASSWORD } from '../support/build.ts'
import { mailbox } from '../support/mailbox.ts'
import { invitationLink } from '../support/organizations.ts'

const app = await build(t)
const mails = mailbox(app)

const linkOf = async (email: string): Promise<string> =>
  `/organizations/accept?token=${await mails.token(email, 'organizationInvitation')}`

t.test('the pages of organizations in a browser', { skip: withoutBrowser }, async t => {
  const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }))
  const service = `http://localhost:${port}`
  const browser = await launchBrowser(t)
  for (const [view, options] of VIEWS)
    t.test(view, async t => {
      const ann = await confirmedUser(app)
      const { page, complaints } = await openBrowser(browser, options)
      const seen = (name: string) => checkPage(t, page, view, name)
      const press = (form: string): Promise<void> =>
        follow(page, `form[action$="${form}"] button:not([type="button"])`)
      await page.goto(`${service}/sign-in`)
      await page.fill('#email', ann.email)
      await page.fill('#password', PASSWORD)
      await press('sign-in')
      await page.waitForURL(`${service}/security?signed-in`)
      await page.goto(`${service}/security/organizations`)
      await seen('no organizations')
      await page.fill('#name', 'Otters')
      await press('security/organizations')
      await seen('a new organization')
      await page.fill('#invite-email', 'x@')
      await page.evaluate(`document.querySelector('#invite-email').form.noValidate = true`)
      await press('/invite')
      await seen('an invitation with errors')
      const email = freshEmail()
      await page.fill('#invite-email', email)
      await press('/invite')
      await seen('an organization with an invitation')
      await page.click('summary')
      await seen('roles of a member')
      await follow(page, 'a[href$="/delete"]')
      await seen('deletion')
      const link = await linkOf(email)
      await page.goto(`${service}${link}`)
      await seen('an invitation for another')
      await page.goto(`${service}/organizations/accept?token=x`)
      await seen('an invitation that does not work')
      await page.goto(`${service}/security/organizations`)
      await seen('organizations')
      t.strictSame(complaints, [])
    })
  for (const javaScriptEnabled of [true, false])
    t.test(`sign-up from an invitation, ${javaScriptEnabled ? 'with' : 'without'} script`, async t => {
      const { page, complaints } = await openBrowser(browser, { javaScriptEnabled })
      const seen = (name: string) => (javaScriptEnabled ? checkPage(t, page, '', name) : Promise.resolve())
      const email = freshEmail()
      const link = await invitationLink(app, email)
      // As from a mail: the request comes from another site.
      await page.goto(`data:text/html,<a href="${service}${link}">Accept</a>`)
      await follow(page, 'a')
      await seen('an invitation before sign-up')
      await follow(page, 'a[href*="sign-up"]')
      await page.fill('#password', PASSWORD)
      await follow(page, 'form[action*="sign-up"] button.primary')
      await page.waitForURL(`${service}${link}`)
      await seen('an invitation after sign-up')
      await follow(page, 'form[action$="organizations/accept"] button')
      await seen('a new member')
      t.strictSame(complaints, [])
    })
})
