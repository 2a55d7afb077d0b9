/**
 * The rows of second factors: copied to PostgreSQL, removed with their user, and cleaned up (docs/design.md, "Storage" and "Second
 * factors").
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { allFeatures } from '#features/built-in'
import type { TotpStore } from '#features/totp/stored-totp'
import { copy } from '#storage/copy/copy'
import { call } from '../support/account-routes.ts'
import { deleteUser, factorsOf } from '../support/admin-routes.ts'
import {
  addTotp,
  beginTotp,
  ENCRYPTION_KEY,
  STEP,
  signInWith,
  totpOf,
} from '../support/authenticator-apps.ts'
import {
  bearer,
  build,
  manualClock,
  type SignedUp,
  signUp,
  temporaryFolder,
  updateUser,
} from '../support/build.ts'
import { copyHere } from '../support/copy-runs.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt } from '../support/error-response.ts'
import { newDatabase } from '../support/postgres.ts'
import { storedRows } from '../support/stored-rows.ts'
import { until } from '../support/until.ts'

const HOUR = 3_600_000

/** Milliseconds until an instance counts as not notified. */
const DEADLINE = 10_000

/** A pass every ten milliseconds. */
const OFTEN = { startWithin: 1, interval: 10, pause: 1 }

type WithApp = SignedUp & { readonly recoveryCodes: readonly string[] }

const remove = (app: FastifyInstance, { token, recoveryCodes }: WithApp) =>
  call(app, 'DELETE', '/account/totp', { code: recoveryCodes[0] }, bearer(token))

t.test('`copy` moves apps and recovery codes', async t => {
  const clock = manualClock()
  const file = join(temporaryFolder(t), 'test.db')
  const url = await newDatabase(t)
  const start = (DATABASE_URL: string) =>
    build(t, { clock: clock.now, env: { DATABASE_URL, ENCRYPTION_KEY } })
  const source = await start(`sqlite:${file}`)
  const withApp = async (app: FastifyInstance, user: SignedUp) => ({
    ...user,
    ...(await addTotp(app, user.token)),
  })
  const users = [await signUp(source), await signUp(source), await signUp(source), await signUp(source)]
  const [first, there, here, later] = users
  if (!(first && there && here && later)) throw new Error('too few')
  const kept = await withApp(source, first)
  const removedThere = await withApp(source, there)
  const removedHere = await withApp(source, here)
  clock.advance(STEP)
  t.equal((await signInWith(source, kept.email, kept.recoveryCodes[0])).statusCode, 200)
  t.match(await copyHere(file, url), { tables: { totp: { added: 3 }, recovery_codes: { added: 29 } } })

  const target = await start(url)
  t.strictSame(await factorsOf(target, kept.id), ['totp'])
  errorsAt(t, await signInWith(target, kept.email), 401, ['code'])
  errorsAt(
    t,
    await signInWith(target, kept.email, kept.recoveryCodes[0]),
    401,
    ['code'],
    'used before the copy',
  )
  t.equal((await signInWith(target, kept.email, kept.code())).statusCode, 200)
  t.equal((await signInWith(target, kept.email, kept.recoveryCodes[1])).statusCode, 200)

  t.equal((await remove(target, removedThere)).statusCode, 204)
  t.equal((await remove(source, removedHere)).statusCode, 204)
  const addedLater = await withApp(source, later)
  clock.advance(STEP)
  t.equal(
    (await updateUser(target, later.id, { firstName: 'Ann' })).statusCode,
    200,
    'changed later in the target',
  )
  await copyHere(file, url)
  t.strictSame(await factorsOf(target, removedThere.id), [])
  t.equal((await signInWith(target, removedThere.email)).statusCode, 200, 'removed in the target')
  t.strictSame(await factorsOf(target, removedHere.id), [])
  t.equal((await signInWith(target, removedHere.email)).statusCode, 200, 'removed in the source')
  t.strictSame(await factorsOf(target, addedLater.id), ['totp'])
  errorsAt(t, await signInWith(target, addedLater.email), 401, ['code'], 'added in the source')
  t.equal((await signInWith(target, addedLater.email, addedLater.code())).statusCode, 200)
  errorsAt(
    t,
    await signInWith(target, kept.email, kept.recoveryCodes[1]),
    401,
    ['code'],
    'used in the target',
  )
  const seen = async () => (await totpOf(target, addedLater.token)).recoveryCodes
  t.equal(await until(seen, count => count === 10, DEADLINE), 10)
})

t.test(
  'users who are copied cannot sign in without a code before the rows of their apps are copied',
  async t => {
    const file = join(temporaryFolder(t), 'test.db')
    const url = await newDatabase(t)
    const source = await build(t, { env: { DATABASE_URL: `sqlite:${file}`, ENCRYPTION_KEY } })
    const user = await signUp(source)
    await addTotp(source, user.token)
    const controller = new AbortController()
    const options = { features: allFeatures(), signal: controller.signal }
    const report = await copy(file, url, { ...options, onProgress: () => controller.abort() })
    t.match(report, { added: 1, complete: false, tables: {} })
    const target = await build(t, { env: { DATABASE_URL: url, ENCRYPTION_KEY } })
    errorsAt(t, await signInWith(target, user.email), 401, ['code'])
  },
)

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
