/**
 * A revoked API key is refused at once here, and within a second elsewhere (docs/design.md, "Tokens and sessions", "Storage" and "Machine
 * callers").
 */
import { setImmediate } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { adminRevoke, type CreatedKey, createKey, revokeKey } from '../support/api-keys.ts'
import {
  accountStatus,
  bearer,
  manualClock,
  PASSWORD,
  type SignedUp,
  signUp,
  updateUser,
} from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { rounds } from '../support/races.ts'
import { until } from '../support/until.ts'

/** Milliseconds within which another instance follows (docs/design.md, "Storage"). */
const SECOND = 1_000

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const DATABASE_URL = await newDatabase(t)
  const options = { env: { DATABASE_URL }, hasher: quickHashing }
  const app = await build(t, options)
  const other = await build(t, options)

  const ends: Record<
    string,
    (user: SignedUp, key: CreatedKey, on: FastifyInstance) => Promise<{ statusCode: number }>
  > = {
    'revocation by the user': ({ token }, { apiKey }, on) => revokeKey(on, token, apiKey.id),
    'revocation by an administrator': ({ id }, { apiKey }, on) => adminRevoke(on, id, apiKey.id),
    disabling: ({ id }, _key, on) => updateUser(on, id, { disabled: true }),
    deletion: ({ token }, _key, on) =>
      on.inject({
        method: 'DELETE',
        url: '/account',
        headers: bearer(token),
        payload: { password: PASSWORD },
      }),
  }

  for (const [title, end] of Object.entries(ends)) {
    t.test(`100 × ${title}, with requests in flight: no request that begins later passes`, async t => {
      const wrong: string[] = []
      for (const round of rounds) {
        const user = await signUp(app)
        const key = await createKey(app, user.token)
        const bystander = await createKey(app, (await signUp(app)).token)
        if (round % 2 === 0) await accountStatus(app, key.token)
        let isAcknowledged = false
        const early: number[] = []
        const busy = async (): Promise<void> => {
          while (!isAcknowledged) {
            early.push(await accountStatus(app, key.token))
            await setImmediate()
          }
        }
        const requests = [busy(), busy(), busy()]
        const { statusCode } = await end(user, key, app)
        isAcknowledged = true
        const after = await Promise.all([accountStatus(app, key.token), accountStatus(app, key.token)])
        await Promise.all(requests)
        after.push(await accountStatus(app, key.token))
        if (![200, 204].includes(statusCode)) wrong.push(`${round}: ${title} ${statusCode}`)
        if (after.some(status => status !== 401)) wrong.push(`${round}: ${after} after it`)
        if (early.some(status => status !== 200 && status !== 401)) wrong.push(`${round}: ${early}`)
        if ((await accountStatus(app, bystander.token)) !== 200) wrong.push(`${round}: a bystander`)
      }
      t.same(wrong, [])
    })
  }

  t.test('another instance refuses a revoked key within a second', async t => {
    for (const [title, end] of Object.entries(ends)) {
      for (const [here, there] of [
        [app, other],
        [other, app],
      ] as const) {
        const user = await signUp(app)
        const key = await createKey(here, user.token)
        t.equal(await accountStatus(there, key.token), 200, 'a new key works on the other instance at once')
        await end(user, key, here)
        const status = await until(
          () => accountStatus(there, key.token),
          status => status === 401,
          SECOND,
        )
        t.equal(status, 401, `${title}: for requests that begin a second later`)
      }
    }
  })

  t.test('a session and a key of one user end separately', async t => {
    const user = await signUp(app)
    const [one, two] = [await createKey(app, user.token), await createKey(app, user.token)]
    for (const { token } of [one, two, user]) t.equal(await accountStatus(app, token), 200)
    await revokeKey(app, user.token, one.apiKey.id)
    t.equal(await accountStatus(app, one.token), 401)
    t.equal(await accountStatus(app, two.token), 200)
    await app.inject({ method: 'POST', url: '/account/sign-out', headers: bearer(user.token) })
    t.equal(await accountStatus(app, user.token), 401)
    t.equal(await accountStatus(app, two.token), 200)
  })

  t.test('a key that has ended stays ended after a restart', async t => {
    const clock = manualClock()
    const url = await newDatabase(t)
    const before = await build(t, { ...options, clock: clock.now, env: { DATABASE_URL: url } })
    const user = await signUp(before)
    const [kept, revoked] = [await createKey(before, user.token), await createKey(before, user.token)]
    await revokeKey(before, user.token, revoked.apiKey.id)
    await before.close()
    const after = await build(t, { ...options, clock: clock.now, env: { DATABASE_URL: url } })
    t.equal(await accountStatus(after, kept.token), 200)
    t.equal(await accountStatus(after, revoked.token), 401)
  })
})
