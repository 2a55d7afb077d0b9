/** Challenges work once, for five minutes (docs/design.md, "Passkeys"). */
import { createHash } from 'node:crypto'
import t from 'tap'
import { MARGIN } from '#core/accounts/clean-up'
import { manualClock, signUp } from '../support/build.ts'
import { onEveryEngine } from '../support/engines.ts'
import { errorsOf } from '../support/error-response.ts'
import {
  creationOptions,
  ENV,
  listPasskeys,
  postPasskey,
  postSignIn,
  register,
  requestOptions,
} from '../support/passkeys.ts'
import { SoftwareAuthenticator } from '../support/software-authenticator.ts'
import { storedRows } from '../support/stored-rows.ts'
import { until } from '../support/until.ts'

const LIFETIME = 300_000
/** Milliseconds until rows that are not removed count as kept. */
const DEADLINE = 10_000
const WRONG = { credential: ['could not be verified'] }

await onEveryEngine(t, async (t, { build, newDatabase }) => {
  const clock = manualClock()
  const DATABASE_URL = await newDatabase(t)
  const options = { clock: clock.now, env: { ...ENV, DATABASE_URL } }
  const app = await build(t, options)
  const other = await build(t, options)
  const user = await signUp(app)
  // It does not count, so a repeated signature is refused for its challenge alone.
  const { authenticator } = await register(app, user.token, { counter: null })
  const signed = async () => authenticator.get((await requestOptions(app)).json())

  t.test('a response is accepted once, on any instance', async t => {
    const credential = await signed()
    t.equal((await postSignIn(app, credential)).statusCode, 200)
    for (const instance of [app, other])
      t.same(errorsOf(t, await postSignIn(instance, credential), 401), WRONG)
  })

  t.test('of 20 concurrent requests with one response, one signs in', async t => {
    const credential = await signed()
    const instances = Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? app : other))
    const responses = await Promise.all(instances.map(instance => postSignIn(instance, credential)))
    const statuses = responses.map(({ statusCode }) => statusCode).toSorted()
    t.same(statuses, [200, ...Array.from({ length: 19 }, () => 401)])
  })

  t.test('a response that is wrong uses up its challenge', async t => {
    const begun = (await requestOptions(app)).json()
    const wrong = authenticator.get(begun, { origin: 'https://evil.example' })
    t.equal((await postSignIn(app, wrong)).statusCode, 401)
    t.equal((await postSignIn(app, authenticator.get(begun))).statusCode, 401)
  })

  t.test('it is accepted for five minutes', async t => {
    const [early, late] = [await signed(), await signed()]
    clock.advance(LIFETIME - 1)
    t.equal((await postSignIn(app, early)).statusCode, 200)
    clock.advance(1)
    t.same(errorsOf(t, await postSignIn(app, late), 401), WRONG)
  })

  t.test('a registration too: once, for five minutes', async t => {
    const user = await signUp(app)
    const begun = (await creationOptions(app, user.token)).json()
    const credential = new SoftwareAuthenticator().create(begun)
    const requests = [app, other, app, other].map(instance =>
      postPasskey(instance, user.token, { credential }),
    )
    const statuses = (await Promise.all(requests)).map(({ statusCode }) => statusCode).toSorted()
    t.same(statuses, [201, 400, 400, 400])
    const late = new SoftwareAuthenticator().create((await creationOptions(app, user.token)).json())
    clock.advance(LIFETIME)
    t.equal((await postPasskey(app, user.token, { credential: late })).statusCode, 400)
    t.equal((await listPasskeys(app, user.token)).length, 1)
  })

  t.test('the store has only the digest of a challenge, and removes it when it has expired', async t => {
    const { challenge } = (await requestOptions(app)).json()
    const digest = createHash('sha256').update(challenge).digest('base64url')
    const rows = await storedRows(DATABASE_URL)
    t.ok(rows.includes(digest))
    t.notOk(rows.includes(challenge))
    clock.advance(LIFETIME + MARGIN + 1)
    const cleanUpPace = { startWithin: 1, interval: 10, pause: 1 }
    await build(t, { ...options, cleanUpPace })
    const hasDigest = async () => (await storedRows(DATABASE_URL)).includes(digest)
    t.notOk(await until(hasDigest, has => !has, DEADLINE))
  })
})
