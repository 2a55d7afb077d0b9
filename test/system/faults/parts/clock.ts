/**
 * The clock of a real process is set back an hour and forth again: no token expires, no data is lost, no rate limit lasts
 * longer.
 */
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ADMIN_KEY, PASSWORD, temporaryFolder } from '../../../support/build.ts'
import { type Running, startServer } from '../../../support/process.ts'
import { until } from '../../../support/until.ts'
import { bearer, bodyOf, type Call, calls, send } from '../../instances/http.ts'
import { Report } from '../../instances/report.ts'
import type { FaultPart } from '../part.ts'

const HOUR = 3_600_000

/** The steps of the clock, in hours from the correct time. */
const OFFSETS = [-1, 0, 1, -1, -2, 0]

/** Milliseconds until the process has read its new clock. */
const PATIENCE = 10_000

/** More sign-ins than one address has in a window, and the window in seconds. */
const SIGN_INS = 130
const WINDOW = 60

export const run = async ({ context }: FaultPart): Promise<Report> => {
  const report = new Report('A clock set back and forth')
  const folder = temporaryFolder(context)
  const offsetFile = join(folder, 'offset')
  writeFileSync(offsetFile, '0')
  const start = (): Promise<Running> =>
    startServer(context, {
      databaseFile: join(folder, 'clock.db'),
      env: {
        NODE_ENV: 'production',
        RATE_LIMIT: 'on',
        CLOCK_OFFSET: offsetFile,
        NODE_OPTIONS: `--import=${join(import.meta.dirname, '../clock-offset.ts')}`,
      },
    })
  let server = await start()
  const ask = (call: Call) => send(server.url, call, false)
  const setClock = async (hours: number): Promise<void> => {
    const clockChanges = (): number => server.output().split('the clock is ').length
    const before = clockChanges()
    // Replaces the file atomically.
    writeFileSync(`${offsetFile}.new`, String(hours * HOUR))
    renameSync(`${offsetFile}.new`, offsetFile)
    await until(clockChanges, count => count > before, PATIENCE)
  }

  const wrong: string[] = []
  let requests = 0
  const expect = async (call: Call, status: number, when: string): Promise<Record<string, unknown>> => {
    requests += 1
    const response = await ask(call)
    if (response.status !== status)
      wrong.push(`${call.method} ${call.path} ${when}: ${response.status} ${response.text}`)
    return response.text === '' ? {} : bodyOf(response)
  }
  const tokens: string[] = []
  const account = (token: string): Call => calls.account(token)
  let latest = ''
  let changes = 0
  /** Checks that hold at any clock. */
  const check = async (when: string): Promise<void> => {
    const email = `clock-${tokens.length}@example.com`
    const signedUp = await expect(calls.signUp(email, PASSWORD), 201, when)
    tokens.push(String(signedUp.accessToken))
    for (const token of tokens) await expect(account(token), 200, when)
    const [first = ''] = tokens
    changes += 1
    await expect(calls.rename(first, `Name ${changes}`), 200, when)
    const { firstName, lastRequestAt } = await expect(account(first), 200, when)
    if (firstName !== `Name ${changes}`) wrong.push(`${when}: the name is ${firstName}`)
    if (String(lastRequestAt) < latest) wrong.push(`${when}: the last request moved back to ${lastRequestAt}`)
    latest = String(lastRequestAt)
  }

  await check('at the right time')
  for (const hours of OFFSETS) {
    await setClock(hours)
    await check(`at ${hours} hours`)
    await server.stop('SIGTERM')
    server = await start()
    await check(`at ${hours} hours, after a restart`)
  }

  const signIn: Call = { method: 'POST', path: '/account/sign-in', body: {} }
  for (let count = 0; count < SIGN_INS; count += 1) await ask(signIn)
  await setClock(-1)
  const limited = await ask(signIn)
  const retryAfter = Number(limited.headers['retry-after'])
  report.expect(limited.status === 429, `a limited client got ${limited.status}`)
  report.expect(retryAfter <= WINDOW, `a limited client has to wait ${retryAfter} s`)

  const [first = ''] = tokens
  await expect(
    { method: 'PUT', path: '/account', headers: bearer(first), body: { lastName: 'Last' } },
    200,
    'at the end',
  )
  const events: unknown[] = []
  let path = '/admin/events?limit=5'
  while (path !== '') {
    const page = await expect(
      { method: 'GET', path, headers: { 'x-admin-key': ADMIN_KEY } },
      200,
      'at the end',
    )
    events.push(...(page.results as { id: string }[]).map(({ id }) => id))
    path = page.nextCursor === null ? '' : `/admin/events?limit=5&cursor=${page.nextCursor}`
  }
  const expected = tokens.length + changes + 1
  report.expect(new Set(events).size === expected, `${new Set(events).size} events, not ${expected}`)
  report.expect(events.length === expected, 'an event is listed twice')
  report.expect((await server.stop('SIGTERM')) === 0, 'the process did not stop cleanly')
  report.figure('steps of the clock, with a restart after each', OFFSETS.length)
  report.figure('requests', requests)
  report.figure('Retry-After of a limited client', `${retryAfter} s`)
  report.failures('wrong responses', wrong)
  return report
}
