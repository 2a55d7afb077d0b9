/** Nothing reveals whether there is an account or a code for an address (docs/design.md, "E-mail codes"). */
import Database from 'better-sqlite3'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import t from 'tap'
import { networkDigest } from '#core/rate-limits/known-networks'
import { storedEmailCodes } from '#features/email-codes/stored-email-codes'
import type { Statement } from '#storage/operations/operation'
import { freshEmail, manualClock, signUp, updateUser } from '../support/build.ts'
import { codesOf, EMAIL_CODES, otherThan, requestCode, signInByCode } from '../support/email-codes.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { query } from '../support/postgres.ts'

const MINUTE = 60_000

const seen = ({ statusCode, headers, body }: LightMyRequestResponse) => {
  const { date: _date, 'x-request-id': _id, ...others } = headers
  return { statusCode, headers: others, body }
}

/** How many rows of the table of attempts were ever written. */
const attemptsIn = async (url: string): Promise<number> => {
  const text = 'SELECT sum(attempts) AS attempts FROM email_code_attempts'
  if (url.startsWith('postgres')) return Number((await query(url, text))[0]?.attempts)
  const db = new Database(url.replace(/^sqlite:/, ''), { readonly: true })
  try {
    return db.prepare<[], number>(text).pluck().get() ?? 0
  } finally {
    db.close()
  }
}

t.test('an attempt has the same statements, whether there is a code or not', async t => {
  const run = (network: readonly object[], codes: readonly object[]): Statement[] => {
    const statements: Statement[] = []
    const steps = storedEmailCodes.operations.countAttempt('ann@example.com', 'a7', '203.0.113.9', 1_000)
    for (let step = steps.next(); !step.done; ) {
      statements.push(step.value)
      const results = [[], network, codes, codes]
      step = steps.next(results[statements.length - 1] ?? [])
    }
    return statements
  }
  const statements = run([], [])
  t.equal(statements.length, 4)
  const known = [{ id: 'y', digest: null }]
  t.strictSame(run(known, [{ id: 'x', userId: 'y', code: 'z' }]), statements)
  const texts = (run: readonly Statement[]) => run.map(({ text }) => text)
  const digest = networkDigest('y', '203.0.113.9')
  t.strictSame(texts(run([{ id: 'y', digest }], [])), texts(statements), 'on a known network too')
})

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  /** The state of an address, and a code to try. */
  const addresses = async (app: FastifyInstance, advance: (milliseconds: number) => void) => {
    const codes = codesOf(app)
    const withCode = async (): Promise<[string, string]> => {
      const { email } = await signUp(app)
      return [email, await codes.request(email)]
    }
    const [[expired, expiredCode], withoutCode] = [await withCode(), await signUp(app)]
    advance(10 * MINUTE)
    const [[wrong, code], [used, usedCode]] = [await withCode(), await withCode()]
    t.equal((await signInByCode(app, used, usedCode)).statusCode, 200)
    const [exhausted, exhaustedCode] = await withCode()
    for (let attempt = 1; attempt <= 5; attempt += 1)
      await signInByCode(app, exhausted, otherThan(exhaustedCode, attempt))
    const disabled = await signUp(app)
    const disabledCode = await codes.request(disabled.email)
    await updateUser(app, disabled.id, { disabled: true })
    return {
      'a wrong code': [wrong, otherThan(code)],
      'an unknown address': [freshEmail(), code],
      'no code': [withoutCode.email, code],
      'an expired code': [expired, expiredCode],
      'a used code': [used, usedCode],
      'too many attempts': [exhausted, exhaustedCode],
      'a disabled account': [disabled.email, disabledCode],
    } as const
  }

  t.test('every failed sign-in has the same response, and writes', async t => {
    const clock = manualClock()
    const DATABASE_URL = await newDatabase(t)
    const app = await build(t, { env: { ...EMAIL_CODES, DATABASE_URL }, clock: clock.now })
    const cases = Object.entries(await addresses(app, clock.advance))
    const responses = []
    for (const [title, [email, code]] of cases) {
      const before = await attemptsIn(DATABASE_URL)
      responses.push([title, seen(await signInByCode(app, email, code))] as const)
      t.equal(await attemptsIn(DATABASE_URL), before + 1, `${title}: a row is written`)
    }
    const [, first] = responses[0] ?? []
    t.match(first, { statusCode: 401, body: '{"errors":{"emailCode":["is wrong or has expired"]}}' })
    for (const [title, response] of responses) t.strictSame(response, first, title)
  })

  t.test('every request for a code has the same response, before any work', async t => {
    const clock = manualClock()
    const app = await build(t, { env: EMAIL_CODES, clock: clock.now })
    const cases = Object.values(await addresses(app, clock.advance))
    const responses = []
    for (const [email] of cases) responses.push(seen(await requestCode(app, email)))
    t.match(responses[0], { statusCode: 202, body: '{"status":"accepted"}' })
    for (const response of responses) t.strictSame(response, responses[0])
  })

  t.test('users without an account get no mail', async t => {
    const app = await build(t, { env: EMAIL_CODES })
    const codes = codesOf(app)
    const [unknown, known] = [freshEmail(), await signUp(app)]
    t.equal((await requestCode(app, unknown)).statusCode, 202)
    await codes.request(known.email)
    t.strictSame(await codes.mails.final(unknown), [])
  })
})
