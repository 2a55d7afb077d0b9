import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'
import type { Context } from './build.ts'

const CHROMIUM = '/usr/bin/chromium'

/** For the option `skip` of tests that need a browser. */
export const withoutChromium = existsSync(CHROMIUM) ? false : "needs Debian's chromium"

/** A browser that makes no requests of its own, closed with the test. */
export const launchChromium = async (t: Context): Promise<Browser> => {
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-sync',
      '--no-first-run',
    ],
  })
  t.teardown(() => browser.close())
  return browser
}
