/** The console in Chromium: every page and action with and without script, accessibility, colours, widths, the policy. */
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { createKey as createApiKey } from '../support/api-keys.ts'
import { addTotp } from '../support/authenticator-apps.ts'
import {
  checkPage,
  checkWidth,
  focusByTab,
  follow,
  launchBrowser,
  openBrowser,
  withoutBrowser,
} from '../support/browser.ts'
import { ADMIN_KEY, build, freshEmail, signIn, signUp, updateUser } from '../support/build.ts'
import { receiver } from '../support/webhook-receiver.ts'

/** What a user may have in every cell: markup, a script's URL, text that turns its surroundings round, and much of it. */
const HOSTILE = {
  name: '<img src=x onerror=alert(1)> "\' שלום',
  metadata: {
    '<b>': 'javascript:alert(1)',
    long: 'x'.repeat(7_000),
    deep: { '\u202E': ['</pre><script>'] },
  },
}

const PHONE = { width: 360, height: 740 }
const DESKTOP = { width: 1200, height: 900 }

/** One page of each kind. The others have the same elements, so the same colours. */
const OF_EACH_KIND: ReadonlySet<string> = new Set([
  'sign-in with errors',
  'overview',
  'users with a wrong filter',
  'no users',
  'user',
  'delete',
  'impersonated',
  'audit log',
  'selected users',
  'sessions of a user',
  'events of a user',
  'new admin key with errors',
  'admin keys',
  'webhook',
  'user who is gone',
  'import that is complete',
])

t.test('the console in a browser', { skip: withoutBrowser }, async t => {
  const { url } = await receiver(t)
  const { host } = new URL(url)
  const app = await build(t, { env: { CONSOLE: 'on', WEBHOOK_ALLOWED_HOSTS: host } })
  const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }))
  const service = `http://localhost:${port}`
  const browser = await launchBrowser(t)

  const signInTo = async (page: Page): Promise<void> => {
    await page.goto(`${service}/console`)
    await page.waitForURL(`${service}/console/sign-in`)
    await page.fill('#adminKey', ADMIN_KEY)
    await page.press('#adminKey', 'Enter')
    await page.waitForURL(`${service}/console`)
  }

  /** Every page and action. @param seen checks the page that is open. */
  const walk = async (t: Test, page: Page, seen: (name: string) => Promise<void>): Promise<void> => {
    const open = (path: string) => page.goto(`${service}/console${path}`)
    const submit = () => follow(page, 'main form[method="post"] button:not([type="button"])')
    /** Opens the page of an action by its button, and confirms. */
    const act = async (name: string, fields: Readonly<Record<string, string>> = {}): Promise<void> => {
      const link = `main a[href$="/${name}"]`
      if (!(await page.isVisible(link))) await page.click('main [popovertarget="more"]')
      await follow(page, link)
      await seen(name)
      for (const [field, value] of Object.entries(fields)) await page.fill(`#${field}`, value)
      await submit()
    }
    const says = async (className: string) => t.ok(await page.textContent(`.${className}`), className)

    const user = await signUp(app, { firstName: HOSTILE.name })
    const updated = await updateUser(app, user.id, { roles: ['editor'], appMetadata: HOSTILE.metadata })
    t.equal(updated.statusCode, 200, updated.body)
    await createApiKey(app, user.token, { name: HOSTILE.name })
    await addTotp(app, user.token)
    await signIn(app, user.email)

    await page.goto(`${service}/console/sign-in`)
    await seen('sign-in')
    await page.fill('#adminKey', 'no key')
    await submit()
    await seen('sign-in with errors')
    await signInTo(page)
    await seen('overview')
    await open('/users')
    await seen('users')
    await open('/users?role=no%20role')
    await seen('users with a wrong filter')
    const { email: other } = await signUp(app)
    await open(`/users?search=${encodeURIComponent(other)}`)
    // Script is needed.
    if (await page.isVisible('thead input')) {
      await page.check('thead input')
      t.ok(await page.isChecked('tbody input'), 'all are checked')
      await page.uncheck('tbody input')
      t.notOk(await page.isChecked('thead input'))
    }
    await page.check('tbody input')
    await seen('selected users')
    await follow(page, '.bulk button[formaction$="/disable"]')
    await seen('several users are disabled')
    await submit()
    await says('notice')
    await page.check('tbody input')
    await follow(page, '.bulk button[formaction$="/enable"]')
    await submit()
    await open('/users?search=nobody-of-this-name')
    await seen('no users')
    await open('/users/import')
    await seen('import of users')
    const lines = [JSON.stringify({ email: freshEmail(), firstName: HOSTILE.name }), 'no user']
    await page.setInputFiles('#file', {
      name: `${HOSTILE.name}.ndjson`,
      mimeType: 'application/x-ndjson',
      buffer: Buffer.from(lines.join('\n')),
    })
    await page.fill('#adminKey', ADMIN_KEY)
    await submit()
    await says('failures')
    await seen('import that is complete')
    t.equal(await page.locator('.progress p:visible').count(), 1, 'the last line of progress is seen')
    await open('/users/export')
    await seen('export of users')
    await open('/no-page')
    await seen('no page')
    await open(`/users/${user.id}`)
    await seen('user')
    await act('change', { firstName: 'Ann' })
    await says('notice')
    await act('roles', { roles: 'no!role', adminKey: ADMIN_KEY })
    await seen('roles with errors')
    await page.fill('#roles', 'editor admin')
    await page.fill('#adminKey', ADMIN_KEY)
    await submit()
    await says('notice')
    await open(`/users/${user.id}/api-keys`)
    await seen('API keys of a user')
    await act(`api-keys/${await rowId(page, 'revoke')}/revoke`)
    await open(`/users/${user.id}/sessions`)
    await seen('sessions of a user')
    await act(`sessions/${await rowId(page, 'end')}/end`)
    await open(`/users/${user.id}/events`)
    await seen('events of a user')
    await open(`/users/${user.id}`)
    await act('end-sessions')
    await act('remove-factors', { adminKey: ADMIN_KEY })
    await act('impersonate', { adminKey: ADMIN_KEY })
    await seen('impersonated')
    t.match(await page.textContent('.secret'), /^eyJ/)
    await follow(page, '.form-actions a')
    await act('disable')
    await act('enable')
    await act('delete', { adminKey: ADMIN_KEY })
    await page.waitForURL(`${service}/console/users`)
    await open(`/users/${user.id}`)
    await seen('user who is gone')

    await open('/events')
    await seen('audit log')
    await open('/admin-keys')
    await follow(page, 'main a.button[href$="/create"]')
    await seen('new admin key')
    await page.fill('#name', HOSTILE.name)
    await page.fill('#adminKey', ADMIN_KEY)
    await submit()
    await seen('new admin key with errors')
    await page.check('input[name="scopes:users:read"]')
    await page.fill('#adminKey', ADMIN_KEY)
    await submit()
    await seen('admin key created')
    await open('/admin-keys')
    await seen('admin keys')
    await act('revoke')

    await open('/webhooks')
    await seen('no webhooks')
    await follow(page, 'main a.button[href$="/create"]')
    await seen('new webhook')
    await page.fill('#url', 'http://192.168.0.1/')
    await page.fill('#adminKey', ADMIN_KEY)
    await submit()
    await seen('new webhook with errors')
    await page.fill('#url', `${url}?secret=1`)
    await page.fill('#description', HOSTILE.name)
    await page.fill('#adminKey', ADMIN_KEY)
    await submit()
    t.match(await page.textContent('.secret'), /^whsec_/)
    await follow(page, '.form-actions a')
    await seen('webhooks')
    await follow(page, 'main td a')
    await act('ping')
    await act('pause')
    await act('resume')
    await act('replay', { from: '2026-01-01T00:00:00Z' })
    await act('rotate-secret', { adminKey: ADMIN_KEY })
    t.match(await page.textContent('.secret'), /^whsec_/)
    await follow(page, '.form-actions a')
    await seen('webhook')
    await act('delete')
    await page.waitForURL(`${service}/console/webhooks`)
    await open('/status')
    await seen('status')
    await open('/providers')
    await seen('providers')
    await open('/settings')
    await seen('settings')
    await open('/settings/test-mail')
    await seen('test mail')
    if (!(await page.isVisible('.me'))) await page.click('[popovertarget="sidebar"]')
    await page.click('.me')
    await follow(page, 'form[action$="sign-out"] button')
    await page.waitForURL(`${service}/console/sign-in`)
  }

  const rowId = async (page: Page, action: string): Promise<string> => {
    const href = (await page.getAttribute(`td a[href$="/${action}"]`, 'href')) ?? ''
    return href.split('/').at(-2) ?? ''
  }

  t.test('every page and action, on a phone and a desktop; each kind of page also in the dark', async t => {
    const { page, complaints } = await openBrowser(browser, { viewport: PHONE, locale: 'en-GB' })
    await walk(t, page, async name => {
      await checkPage(t, page, 'phone, light, en', `console ${name}`)
      await page.setViewportSize(DESKTOP)
      if (OF_EACH_KIND.has(name)) {
        await page.emulateMedia({ colorScheme: 'dark' })
        await checkPage(t, page, 'desktop, dark, en', `console ${name}`)
        await page.emulateMedia({ colorScheme: 'light' })
      } else await checkWidth(t, page, `console ${name}`)
      await page.setViewportSize(PHONE)
    })
    t.same(complaints, [], 'no violation of the policy, no error')
  })

  t.test('every page and action without script, in German', async t => {
    const { page, complaints } = await openBrowser(browser, {
      javaScriptEnabled: false,
      viewport: PHONE,
      locale: 'de-DE',
    })
    // axe needs script.
    await walk(t, page, name => checkWidth(t, page, `console ${name}`))
    t.same(complaints, [])
  })

  t.test('with script the audit log follows events', async t => {
    const { page, complaints } = await openBrowser(browser, { locale: 'en-GB', timezoneId: 'Asia/Tokyo' })
    await signInTo(page)
    await page.goto(`${service}/console/events?type=user.signed-up`)
    t.match(await page.textContent('.live'), 'Live')
    const { id } = await signUp(app, { email: freshEmail() })
    await page.waitForSelector(`.log a[href$="${id}"]`, { state: 'attached' })
    t.match(await page.locator('.log time').first().getAttribute('title'), /UTC$/)
    await page.click('.live button')
    t.equal(await page.textContent('.live'), 'Follow')
    t.same(complaints, [])
  })

  t.test('the drawer, menus and filters work with the keyboard alone', async t => {
    const { page, complaints } = await openBrowser(browser, { viewport: PHONE, locale: 'en-GB' })
    const focus = (text: string): Promise<void> => focusByTab(t, page, text)
    const { id, email } = await signUp(app)
    await page.goto(`${service}/console/users`)
    await focus('Admin key')
    await page.keyboard.type(ADMIN_KEY)
    await page.keyboard.press('Enter')
    await page.waitForURL(`${service}/console/users`)
    const press = async (path: string): Promise<void> => {
      await Promise.all([page.waitForURL(`${service}/console${path}`), page.keyboard.press('Enter')])
    }
    await focus(email)
    await press(`/users/${id}`)
    await focus('Events')
    await press(`/users/${id}/events`)
    await focus('More actions')
    await page.keyboard.press('Enter')
    await focus('Disable')
    await press(`/users/${id}/disable`)
    await focus('Disable')
    await press(`/users/${id}`)
    t.match(await page.textContent('.notice'), 'The user is disabled.')
    await focus('Pages of the console')
    await page.keyboard.press('Enter')
    await focus('Audit log')
    await Promise.all([page.waitForURL(`${service}/console/events`), page.keyboard.press('Enter')])
    await focus('Filters')
    await page.keyboard.press('Enter')
    t.ok(await page.isVisible('#filters'))
    await page.keyboard.press('Escape')
    t.notOk(await page.isVisible('#filters'))
    t.same(complaints, [])
  })
})
