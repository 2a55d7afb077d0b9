/** Authenticator apps are added in two steps: POST /account/totp, POST /account/totp/confirm (docs/design.md, "Second factors"). */
import type { FastifyInstance } from 'fastify'
import { URI } from 'otpauth'
import decodeQr from 'qr/decode.js'
import t from 'tap'
import { newId } from '#base/ids'
import { newEvent, OPERATOR } from '#core/audit-log/event'
import type { TotpStore } from '#features/totp/stored-totp'
import { call } from '../support/account-routes.ts'
import { impersonate } from '../support/admin-routes.ts'
import { createKey } from '../support/api-keys.ts'
import {
  addTotp,
  beginTotp,
  codeAt,
  confirmTotp,
  ENCRYPTION_KEY,
  STEP,
  signInWith,
  totpOf,
} from '../support/authenticator-apps.ts'
import { bearer, manualClock, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { isPrivateJson } from '../support/response-shapes.ts'

const HOUR = 3_600_000

/** Pixels for each module. */
const SCALE = 4

const NOT_BEGUN = 'Add an authenticator app first: POST /account/totp, an hour ago at most'

const post = (app: FastifyInstance, token: string) => call(app, 'POST', '/account/totp', {}, bearer(token))

const remove = (app: FastifyInstance, token: string) =>
  call(app, 'DELETE', '/account/totp', {}, bearer(token))

const replaceCodes = (app: FastifyInstance, token: string) =>
  call(app, 'POST', '/account/recovery-codes', {}, bearer(token))

/** Draws the squares of a path on white, as a browser does. */
const imageOf = (svg: string) => {
  const size = Number(/viewBox="0 0 (\d+) /.exec(svg)?.[1]) * SCALE
  const data = new Uint8ClampedArray(size * size * 4).fill(255)
  let [x, y] = [0, 0]
  for (const [, command, dx, dy] of svg.matchAll(/([Mm])(-?\d+)[ ,]?(-?\d+)h1v1/g)) {
    const [fromX, fromY] = command === 'm' ? [x, y] : [0, 0]
    x = fromX + Number(dx)
    y = fromY + Number(dy)
    for (let row = y * SCALE; row < (y + 1) * SCALE; row += 1)
      for (let column = x * SCALE; column < (x + 1) * SCALE; column += 1)
        data.fill(0, (row * size + column) * 4, (row * size + column) * 4 + 3)
  }
  return { width: size, height: size, data }
}

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const clock = manualClock()
  const env = { DATABASE_URL: await newDatabase(t), ENCRYPTION_KEY, PRODUCT_NAME: 'Gate & house' }
  const app = await build(t, { clock: clock.now, env })

  t.test('the secret comes as text, link and QR code; a code of it adds the app', async t => {
    const { email, token } = await signUp(app)
    t.strictSame(await totpOf(app, token), { confirmedAt: null, recoveryCodes: 0 })
    const begun = await post(app, token)
    isPrivateJson(t, begun, 201)
    const { secret, uri, qr } = begun.json()
    t.match(secret, /^[A-Z2-7]{32}$/)
    const parsed = URI.parse(uri)
    t.match(parsed, { issuer: 'Gate & house', label: email, algorithm: 'SHA1', digits: 6, period: 30 })
    t.equal(parsed.secret.base32, secret)
    t.equal(decodeQr(imageOf(qr)), uri)
    t.match(qr, /<rect width="100%" height="100%" fill="#fff"\/>/, 'with a background of its own')
    t.strictSame(await totpOf(app, token), { confirmedAt: null, recoveryCodes: 0 }, 'nothing has changed')
    t.equal((await signInWith(app, email)).statusCode, 200)

    clock.advance(STEP)
    const confirmed = await confirmTotp(app, token, codeAt(secret, clock.now()))
    isPrivateJson(t, confirmed, 200)
    t.equal(new Set(confirmed.json().recoveryCodes).size, 10)
    const confirmedAt = new Date(clock.now()).toISOString()
    t.strictSame(await totpOf(app, token), { confirmedAt, recoveryCodes: 10 })
    errorsAt(t, await signInWith(app, email), 401, ['code'])
    errorsAt(t, await signInWith(app, email, codeAt(secret, clock.now())), 401, ['code'], 'a code works once')
    t.equal((await signInWith(app, email, codeAt(secret, clock.now() + STEP))).statusCode, 200)
  })

  t.test('wrong codes add nothing', async t => {
    const { email, token } = await signUp(app)
    const begun = await beginTotp(app, token)
    const other = await beginTotp(app, (await signUp(app)).token)
    for (const code of [
      begun.code(-2),
      begun.code(2),
      other.code(),
      'k3wf-7hqa-x9mz-24tn-p6dr-8ubc',
      '12345',
    ])
      t.strictSame(errorsAt(t, await confirmTotp(app, token, code), 400, ['code']), { code: ['is wrong'] })
    for (const code of ['', 5, null, 'x'.repeat(65)])
      errorsAt(t, await confirmTotp(app, token, code as string), 400, ['code'])
    t.equal((await signInWith(app, email)).statusCode, 200)
    t.equal((await confirmTotp(app, token, begun.code(-1))).statusCode, 200)
  })

  t.test('a secret has to be confirmed within an hour', async t => {
    const [late, early] = [await signUp(app), await signUp(app)]
    const [lateApp, earlyApp] = [await beginTotp(app, late.token), await beginTotp(app, early.token)]
    clock.advance(HOUR - 1)
    t.equal((await confirmTotp(app, early.token, earlyApp.code())).statusCode, 200)
    clock.advance(1)
    t.equal(globalErrorOf(t, await confirmTotp(app, late.token, lateApp.code()), 409), NOT_BEGUN)
  })

  t.test('a second secret replaces the first one', async t => {
    const { token } = await signUp(app)
    const [first, second] = [await beginTotp(app, token), await beginTotp(app, token)]
    t.not(first.secret, second.secret)
    errorsAt(t, await confirmTotp(app, token, first.code()), 400, ['code'])
    t.equal((await confirmTotp(app, token, second.code())).statusCode, 200)
  })

  t.test('a user has one app; without one there is nothing to confirm or to remove', async t => {
    const { token } = await signUp(app)
    t.equal(globalErrorOf(t, await confirmTotp(app, token, '123456'), 409), NOT_BEGUN)
    await beginTotp(app, token)
    for (const response of [await remove(app, token), await replaceCodes(app, token)])
      t.equal(globalErrorOf(t, response, 404), 'Your account has no authenticator app')
    const added = await addTotp(app, token)
    t.equal(
      globalErrorOf(t, await post(app, token), 409),
      'Your account has an authenticator app: remove it first',
    )
    t.equal(globalErrorOf(t, await confirmTotp(app, token, added.code(1)), 409), NOT_BEGUN)
    t.equal((await remove(app, token)).statusCode, 204)
    t.equal((await post(app, token)).statusCode, 201)
  })

  t.test('impersonated sessions and API keys change no factor', async t => {
    const { id, token } = await signUp(app)
    const added = await addTotp(app, token)
    const acting: string = (await impersonate(app, id)).json().accessToken
    const { token: key } = await createKey(app, token)
    const changes = (credential: string) => [
      post(app, credential),
      confirmTotp(app, credential, added.code(1)),
      remove(app, credential),
      replaceCodes(app, credential),
    ]
    for (const response of await Promise.all(changes(acting)))
      t.equal(globalErrorOf(t, response, 403), 'An impersonated session cannot do this')
    for (const response of await Promise.all(changes(key)))
      t.match(globalErrorOf(t, response, 403), /^This needs a session/)
    t.equal((await call(app, 'GET', '/account/totp', undefined, bearer(key))).statusCode, 403)
    t.match(await totpOf(app, token), { recoveryCodes: 10 })
  })

  t.test('a session that has ended changes no factor', async t => {
    const { id, token } = await signUp(app)
    const added = await addTotp(app, token)
    const store = app.services.storage.features.totp as TotpStore
    const change = { session: { id: newId(), needsCode: true }, endsOthers: true }
    const now = clock.now()
    const event = newEvent('factors.removed', OPERATOR, id, now)
    const secret = { id: newId(), secret: 'x', expiresAt: now + HOUR }
    for (const outcome of [
      await store.beginTotp(id, secret, change.session, now),
      await store.confirmTotp({ id: newId(), step: 1 }, [], change, event),
      await store.removeTotp(change, event, []),
      await store.replaceRecoveryCodes([], change, event),
    ])
      t.equal(outcome, 'sessionNotFound')
    t.match(await totpOf(app, token), { recoveryCodes: 10 })
    t.equal(
      (await call(app, 'DELETE', '/account/totp', { code: added.code(1) }, bearer(token))).statusCode,
      204,
    )
  })
})
