/** Five attempts for a code, and one sign-in: also on two instances at once (docs/design.md, "E-mail codes"). */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import t from 'tap'
import { accountStatus, freshEmail, logCapture, signUp } from '../support/build.ts'
import { codesOf, EMAIL_CODES, otherThan, signInByCode } from '../support/email-codes.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt } from '../support/error-response.ts'
import { execute } from '../support/stored-rows.ts'

const AT_ONCE = 50

/** Sends attempts at the same time, to the instances in turn. */
const atOnce = (
  apps: readonly FastifyInstance[],
  email: string,
  codeOf: (index: number) => string,
): Promise<LightMyRequestResponse[]> =>
  Promise.all(
    Array.from({ length: AT_ONCE }, (_, index) =>
      signInByCode(apps[index % apps.length] as FastifyInstance, email, codeOf(index)),
    ),
  )

const statusesOf = (responses: readonly LightMyRequestResponse[]) => ({
  200: responses.filter(({ statusCode }) => statusCode === 200).length,
  401: responses.filter(({ statusCode }) => statusCode === 401).length,
})

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  t.test('after five wrong attempts the correct code does not work either', async t => {
    const app = await build(t, { env: EMAIL_CODES })
    const codes = codesOf(app)
    for (const [wrong, status] of [[4, 200] as const, [5, 401] as const]) {
      const { email } = await signUp(app)
      const code = await codes.request(email)
      for (let attempt = 1; attempt <= wrong; attempt += 1)
        errorsAt(t, await signInByCode(app, email, otherThan(code, attempt)), 401, ['emailCode'])
      t.equal((await signInByCode(app, email, code)).statusCode, status, `${wrong} wrong attempts`)
      if (status === 401)
        t.equal((await signInByCode(app, email, await codes.request(email, 2))).statusCode, 200, 'a new code')
    }
  })

  t.test('attempts for one address do not use up those of another', async t => {
    const app = await build(t, { env: EMAIL_CODES })
    const { email } = await signUp(app)
    const code = await codesOf(app).request(email)
    for (let attempt = 1; attempt <= 6; attempt += 1)
      errorsAt(t, await signInByCode(app, freshEmail(), code), 401, ['emailCode'])
    t.equal((await signInByCode(app, email, code)).statusCode, 200)
  })

  const DATABASE_URL = await newDatabase(t)
  const logs = [logCapture(), logCapture()]
  const apps: FastifyInstance[] = []
  for (const { stream } of logs)
    apps.push(await build(t, { env: { ...EMAIL_CODES, DATABASE_URL }, logStream: stream }))
  const codes = codesOf(apps[0] as FastifyInstance)

  t.test('of 50 simultaneous guesses on two instances at most five are compared', async t => {
    const { email } = await signUp(apps[0] as FastifyInstance)
    const code = await codes.request(email)
    // Each comparison with a code that cannot be decrypted is logged.
    await execute(DATABASE_URL, `UPDATE email_codes SET code = 'v1.x.y'`)
    const statuses = statusesOf(await atOnce(apps, email, index => otherThan(code, index)))
    t.same(statuses, { 200: 0, 401: AT_ONCE })
    const compared = logs.flatMap(log => log.records()).filter(({ msg }) => /decrypted/.test(String(msg)))
    t.equal(compared.length, 5)
  })

  t.test('of 50 simultaneous sign-ins with the correct code on two instances one succeeds', async t => {
    for (let round = 0; round < 10; round += 1) {
      const { email } = await signUp(apps[0] as FastifyInstance)
      const code = await codes.request(email)
      const responses = await atOnce(apps, email, () => code)
      t.same(statusesOf(responses), { 200: 1, 401: AT_ONCE - 1 })
      const winner = responses.find(({ statusCode }) => statusCode === 200)
      t.equal(await accountStatus(apps[1] as FastifyInstance, winner?.json().accessToken), 200)
    }
  })

  t.test('of 50 simultaneous guesses that contain the correct code at most one signs in', async t => {
    for (let round = 0; round < 10; round += 1) {
      const { email } = await signUp(apps[0] as FastifyInstance)
      const code = await codes.request(email)
      const responses = await atOnce(apps, email, index => (index < 4 ? code : otherThan(code, index)))
      const statuses = statusesOf(responses)
      t.ok(statuses[200] <= 1)
      t.equal(statuses[200] + statuses[401], AT_ONCE)
      errorsAt(t, await signInByCode(apps[1] as FastifyInstance, email, code), 401, ['emailCode'])
    }
  })
})
