/** Codes in the store: clean-up and copies (docs/design.md, "Storage", "Account life cycle" and "E-mail codes"). */
import { join } from 'node:path'
import t from 'tap'
import { build, manualClock, signUp, temporaryFolder } from '../support/build.ts'
import { copyHere } from '../support/copy-runs.ts'
import {
  checkLink,
  codesOf,
  EMAIL_CODES,
  linksOf,
  MAILED_SIGN_INS,
  otherThan,
  signInByCode,
  signInByLink,
} from '../support/email-codes.ts'
import { onEveryEngine } from '../support/engines.ts'
import { errorsAt } from '../support/error-response.ts'
import { createDatabase } from '../support/postgres.ts'
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

t.test('`copy` moves pending codes and links with their attempts, and restores no used one', async t => {
  const file = join(temporaryFolder(t), 'test.db')
  const url = await createDatabase(t)
  const source = await build(t, { env: { ...MAILED_SIGN_INS, DATABASE_URL: `sqlite:${file}` } })
  const codes = codesOf(source)
  const [ann, ben, cat] = [await signUp(source), await signUp(source), await signUp(source)]
  const [codeOfAnn, codeOfBen] = [await codes.request(ann.email), await codes.request(ben.email)]
  for (let attempt = 1; attempt <= 3; attempt += 1)
    await signInByCode(source, ben.email, otherThan(codeOfBen, attempt))
  const token = await linksOf(source).request(cat.email)
  const link = (await checkLink(source, token)).json()
  t.match(await copyHere(file, url), { tables: { email_codes: { added: 3 } }, complete: true })

  const target = await build(t, { env: { ...MAILED_SIGN_INS, DATABASE_URL: url } })
  t.equal((await signInByCode(target, ann.email, codeOfAnn)).statusCode, 200)
  for (let attempt = 4; attempt <= 5; attempt += 1)
    errorsAt(t, await signInByCode(target, ben.email, otherThan(codeOfBen, attempt)), 401, ['emailCode'])
  errorsAt(t, await signInByCode(target, ben.email, codeOfBen), 401, ['emailCode'], 'five attempts in all')
  t.same((await checkLink(target, token)).json(), link)
  t.equal((await signInByLink(target, token)).statusCode, 200)
  await copyHere(file, url)
  errorsAt(t, await signInByLink(target, token), 400, ['token'], 'used in the target')
  errorsAt(t, await signInByCode(target, ann.email, codeOfAnn), 401, ['emailCode'], 'used in the target')
})
