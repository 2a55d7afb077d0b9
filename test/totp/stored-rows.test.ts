/** The rows of second factors: removed with their user, and cleaned up (docs/design.md, "Storage" and "Second factors"). */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { TotpStore } from '#features/totp/stored-totp'
import { deleteUser } from '../support/admin-routes.ts'
import { addTotp, beginTotp, ENCRYPTION_KEY, totpOf } from '../support/authenticator-apps.ts'
import { manualClock, type SignedUp, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { storedRows } from '../support/stored-rows.ts'

const HOUR = 3_600_000

/** A pass every ten milliseconds. */
const OFTEN = { startWithin: 1, interval: 10, pause: 1 }

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  t.test('the rows of a user are removed with the user', async t => {
    const DATABASE_URL = await newDatabase(t)
    const app = await build(t, { env: { DATABASE_URL, ENCRYPTION_KEY } })
    const user = await signUp(app)
    await addTotp(app, user.token)
    const other = await signUp(app)
    await addTotp(app, other.token)
    const count = async () => [...(await storedRows(DATABASE_URL)).matchAll(/v1\.[0-9a-f]{16}\./g)].length
    const own = await count()
    t.ok(own >= 2)
    t.equal((await deleteUser(app, user.id)).statusCode, 204)
    t.equal(await count(), own / 2)
    t.match(await totpOf(app, other.token), { recoveryCodes: 10 })
  })

  t.test('expired unconfirmed secrets are cleaned up, confirmed ones stay', async t => {
    const clock = manualClock()
    const app = await build(t, {
      clock: clock.now,
      cleanUpPace: OFTEN,
      env: { DATABASE_URL: await newDatabase(t), ENCRYPTION_KEY },
    })
    const [pending, confirmed] = [await signUp(app), await signUp(app)]
    await beginTotp(app, pending.token)
    await addTotp(app, confirmed.token)
    const store = app.services.storage.features.totp as TotpStore
    const exists = async ({ id }: SignedUp) => (await store.findTotp(id)) !== undefined
    t.ok(await exists(pending))
    clock.advance(HOUR + 1)
    const next = await signUp(app)
    await beginTotp(app, next.token)
    while (await exists(pending)) await sleep(10)
    t.ok(await exists(next), 'not expired')
    clock.advance(24 * HOUR)
    while (await exists(next)) await sleep(10)
    t.match(await totpOf(app, confirmed.token), { recoveryCodes: 10 })
  })
})
