/** Codes in the store: clean-up (docs/design.md, "Storage", "Account life cycle" and "E-mail codes"). */
import t from 'tap'
import { manualClock, signUp } from '../support/build.ts'
import {
  codesOf,
  EMAIL_CODES,
  linksOf,
  MAILED_SIGN_INS,
  otherThan,
  signInByCode,
  signInByLink,
} from '../support/email-codes.ts'
import { onEveryEngine } from '../support/engines.ts'
import { execute, select, storedRows } from '../support/stored-rows.ts'
import { until } from '../support/until.ts'

const MINUTE = 60_000

const codesIn = async (url: string): Promise<string> =>
  /"email_codes",\[(.*?)\]/.exec(await storedRows(url))?.[1] ?? ''

await onEveryEngine(t, async (t, { build, newDatabase }) => {
  t.test('codes are removed an hour after they have expired, others stay', async t => {
    const clock = manualClock()
    const DATABASE_URL = await newDatabase(t)
    const app = await build(t, {
      env: { ...EMAIL_CODES, DATABASE_URL },
      clock: clock.now,
      cleanUpPace: { startWithin: 1, interval: 10, pause: 1 },
    })
    const codes = codesOf(app)
    const [expired, pending] = [await signUp(app), await signUp(app)]
    await codes.request(expired.email)
    clock.advance(70 * MINUTE + 1)
    const code = await codes.request(pending.email)
    const left = await until(
      () => codesIn(DATABASE_URL),
      rows => !rows.includes(expired.email),
      30_000,
    )
    t.notOk(left.includes(expired.email))
    t.equal((await signInByCode(app, pending.email, code)).statusCode, 200)
    t.equal(await codesIn(DATABASE_URL), '')
  })

  t.test('codes and links of 0.3.0 still work, with their attempts', async t => {
    const env = { ...MAILED_SIGN_INS, DATABASE_URL: await newDatabase(t) }
    const before = await build(t, { env })
    const codes = codesOf(before)
    const [ann, ben] = [await signUp(before), await signUp(before)]
    const code = await codes.request(ann.email)
    for (let attempt = 1; attempt <= 3; attempt += 1)
      await signInByCode(before, ann.email, otherThan(code, attempt))
    const token = await linksOf(before).request(ben.email)
    await before.close()
    for (const text of [
      `DELETE FROM feature_migrations WHERE feature = 'email-codes' AND name = '0003_known_networks'`,
      'DROP INDEX email_codes_by_user_key',
      'ALTER TABLE email_codes DROP COLUMN known_network',
      'ALTER TABLE email_codes DROP COLUMN attempted_from',
      env.DATABASE_URL.startsWith('postgres')
        ? 'ALTER TABLE email_codes ADD UNIQUE (user_key)'
        : 'CREATE UNIQUE INDEX of_0_3_0 ON email_codes (user_key)',
    ])
      await execute(env.DATABASE_URL, text)
    const after = await build(t, { env })
    const rows = await select(
      env.DATABASE_URL,
      'SELECT attempts, known_network FROM email_codes ORDER BY attempts',
    )
    t.match(
      rows.map(({ attempts, known_network }) => [Number(attempts), known_network]),
      [
        [0, null],
        [3, null],
      ],
    )
    t.equal((await signInByLink(after, token)).statusCode, 200)
    t.equal((await signInByCode(after, ann.email, code)).statusCode, 200)
  })
})
