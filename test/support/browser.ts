/** A real Chromium, for what only browsers do. */
import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'
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
