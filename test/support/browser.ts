/** A real Chromium, for what only browsers do. */
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { RunOptions } from 'axe-core'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import type { Test } from 'tap'
import type { Context } from './build.ts'

const CHROMIUM = '/usr/bin/chromium'

/** Why a test that needs the browser is skipped; `false` where there is one. */
export const withoutBrowser = existsSync(CHROMIUM) ? false : "needs Debian's chromium"

/** A browser that is closed with the test. @param args further options of its command line. */
export const launchBrowser = async (t: Context, args: readonly string[] = []): Promise<Browser> => {
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-sync',
      '--no-first-run',
      ...args,
    ],
  })
  t.teardown(() => browser.close())
  return browser
}

/** Both widths, colour schemes and languages. German, whose words are longer, has the narrow one: a phone of 360 px. */
export const VIEWS = [
  ['desktop, light, en', { viewport: { width: 1200, height: 900 }, colorScheme: 'light', locale: 'en-GB' }],
  ['phone, dark, de', { viewport: { width: 360, height: 740 }, colorScheme: 'dark', locale: 'de-DE' }],
] as const satisfies readonly (readonly [string, BrowserContextOptions])[]

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** A folder for pictures of all pages, for the eyes of a developer. */
const { PICTURES } = process.env

/** In a world of its own, which the policy of the page does not concern. @returns the violations. */
export const violationsOf = async (page: Page): Promise<string[]> => {
  const session = await page.context().newCDPSession(page)
  const { frameTree } = await session.send('Page.getFrameTree')
  const { executionContextId } = await session.send('Page.createIsolatedWorld', {
    frameId: frameTree.frame.id,
  })
  const options: RunOptions = { resultTypes: ['violations'] }
  const { result, exceptionDetails } = await session.send('Runtime.evaluate', {
    contextId: executionContextId,
    expression: `${AXE};axe.run(document, ${JSON.stringify(options)}).then(({ violations }) =>
      violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html)))`,
    awaitPromise: true,
    returnByValue: true,
  })
  await session.detach()
  return exceptionDetails === undefined ? result.value : [exceptionDetails.text]
}

/** Chromium reports every status from 400 on, and the page behind a link that resets a password does not know its user. */
const EXPECTED = /the server responded with a status of 4|Password forms should have .* username fields/

/** Opens a page, and collects what the browser complains about. */
export const openBrowser = async (browser: Browser, options: BrowserContextOptions) => {
  const context = await browser.newContext(options)
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', message => {
    if (!EXPECTED.test(message.text())) complaints.push(message.text())
  })
  page.on('pageerror', error => complaints.push(String(error)))
  return { context, page, complaints }
}

/** Clicks what leads to another document, and waits for it: a click alone may end before the navigation begins. */
export const follow = async (page: Page, selector: string): Promise<void> => {
  await Promise.all([page.waitForEvent('load'), page.click(selector)])
}

/** Types of the DOM are not known here. */
interface Labelled {
  readonly labels?: ArrayLike<{ readonly textContent: string | null }> | null
}

/** Presses Tab until an element whose label, or text, begins with a text has the focus. */
export const focusByTab = async (t: Pick<Test, 'fail'>, page: Page, text: string): Promise<void> => {
  for (let presses = 0; presses < 60; presses += 1) {
    await page.keyboard.press('Tab')
    const focused = await page.locator('html').evaluate(({ ownerDocument: { activeElement } }) => {
      const label = (activeElement as Labelled | null)?.labels?.[0] ?? activeElement
      return activeElement?.getAttribute('aria-label') ?? label?.textContent ?? ''
    })
    if (focused.trim().startsWith(text)) return
  }
  t.fail(`${text} is not reached`)
}

/** Checks that the page that is open does not scroll to the side. */
export const checkWidth = async (t: Pick<Test, 'ok'>, page: Page, name: string): Promise<void> => {
  const { scrollWidth, clientWidth } = await page
    .locator('html')
    .evaluate(({ scrollWidth, clientWidth }) => ({ scrollWidth, clientWidth }))
  t.ok(scrollWidth <= clientWidth, `${name}: no horizontal scrolling (${scrollWidth} in ${clientWidth})`)
}

/** Checks the page that is open: accessibility and width. */
export const checkPage = async (
  t: Pick<Test, 'same' | 'ok'>,
  page: Page,
  view: string,
  name: string,
): Promise<void> => {
  t.same(await violationsOf(page), [], `${name}: axe`)
  await checkWidth(t, page, name)
  if (PICTURES === undefined) return
  mkdirSync(PICTURES, { recursive: true })
  const file = `${name} ${view}`.replaceAll(/\W+/g, '-')
  await page.screenshot({ path: join(PICTURES, `${file}.png`), fullPage: true })
}
