/** The page at /docs in Chromium. */
import t from 'tap'
import { launchBrowser, withoutBrowser } from '../support/browser.ts'
import { build, freshEmail } from '../support/build.ts'

const app = await build(t)

t.test('/docs shows the routes in a browser, without other origins', { skip: withoutBrowser }, async t => {
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const page = await (await launchBrowser(t)).newPage()
  const elsewhere: string[] = []
  const problems: string[] = []
  page.on('request', request => {
    if (!request.url().startsWith(url) && !request.url().startsWith('data:')) elsewhere.push(request.url())
  })
  page.on('console', message => {
    if (message.type() === 'error') problems.push(message.text())
  })
  await page.goto(`${url}/docs`)
  await page.waitForSelector('.opblock-summary-path')
  const shown = await page.locator('.opblock-summary-path').allTextContents()
  t.ok(
    shown.some(path => path.replaceAll('\u200b', '').includes('/account/sign-up')),
    shown.join(' '),
  )
  await page.locator('#operations-account-signUp').click()
  await page.locator('.try-out__btn').click()
  const body = JSON.parse(await page.locator('textarea.body-param__text').inputValue())
  t.match(body, { email: 'ann@example.com', password: 'four hens crossed the moat', firstName: 'Ann' })
  const fresh = { ...body, email: freshEmail() }
  await page.locator('textarea.body-param__text').fill(JSON.stringify(fresh))
  await page.locator('button.execute').click()
  await page.waitForSelector('.live-responses-table tbody .response-col_status')
  t.match(await page.locator('.live-responses-table tbody .response-col_status').first().innerText(), /201/)
  t.same(elsewhere, [], 'nothing is loaded from elsewhere')
  t.same(problems, [])
  if (process.env.SCREENSHOT) await page.screenshot({ path: process.env.SCREENSHOT, fullPage: true })
})
