/**
 * What each change of a user's factors does: sessions, events, mails; and their removal by an administrator (docs/design.md, "Second
 * factors").
 */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { call } from '../support/account-routes.ts'
import { createKey as createAdminKey } from '../support/admin-keys.ts'
import { allEvents, removeFactors, UNKNOWN_ID } from '../support/admin-routes.ts'
import { createKey } from '../support/api-keys.ts'
import {
  addTotp,
  beginTotp,
  confirmTotp,
  ENCRYPTION_KEY,
  STEP,
  signInWith,
  totpOf,
} from '../support/authenticator-apps.ts'
import { accountStatus, asAdmin, bearer, manualClock, PASSWORD, signIn, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { mailbox } from '../support/mailbox.ts'
import { ADMIN_USER, hasShape } from '../support/response-shapes.ts'
import { until } from '../support/until.ts'

const userOf = async (app: FastifyInstance, id: string) =>
  (await call(app, 'GET', `/admin/users/${id}`, undefined, asAdmin)).json()

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const clock = manualClock()
  const options = { clock: clock.now, env: { DATABASE_URL: await newDatabase(t), ENCRYPTION_KEY } }
  const app = await build(t, options)
  const other = await build(t, options)
  const mails = mailbox(app)

  const CHANGES = [
    {
      what: 'adding an app',
      type: 'totp.added',
      mail: 'totpAdded',
      async prepare(token: string) {
        const begun = await beginTotp(app, token)
        return (query: string) => confirmTotp(app, token, begun.code(), query)
      },
    },
    {
      what: 'removing the app',
      type: 'totp.removed',
      mail: 'totpRemoved',
      async prepare(token: string) {
        await addTotp(app, token)
        return (query: string) => call(app, 'DELETE', `/account/totp${query}`, {}, bearer(token))
      },
    },
    {
      what: 'replacing recovery codes',
      type: 'recovery-codes.replaced',
      mail: 'recoveryCodesReplaced',
      async prepare(token: string) {
        await addTotp(app, token)
        return (query: string) => call(app, 'POST', `/account/recovery-codes${query}`, {}, bearer(token))
      },
    },
  ] as const

  for (const { what, type, mail, prepare } of CHANGES)
    t.test(`${what} is an event and a mail, and ends other sessions if asked`, async t => {
      for (const [query, status] of [
        ['', 200],
        ['?endOthers=false', 200],
        ['?endOthers=true', 401],
      ] as const) {
        const { id, email, token } = await signUp(app)
        const elsewhere: string = (await signIn(app, email)).json().accessToken
        const { token: key } = await createKey(app, token)
        for (const instance of [app, other]) t.equal(await accountStatus(instance, elsewhere), 200)
        const change = await prepare(token)
        errorsAt(t, await change('?endOthers=perhaps'), 400, ['endOthers'])
        const { version } = (await app.services.storage.users.find(id)) ?? {}
        t.match((await change(query)).statusCode, /^20[04]$/)
        t.equal(await accountStatus(app, elsewhere), status, `${query}: the other session`)
        t.equal(await accountStatus(app, token), 200, 'this session')
        t.equal(await accountStatus(app, key), 200, 'API keys')
        const events = await allEvents(app, { userId: id, type })
        t.match(events, [{ actor: { type: 'user', id }, userId: id, ip: '127.0.0.1', details: null }])
        t.equal(events.length, 1)
        const [sent] = await mails.to(email, mail)
        t.notMatch(sent?.text, /[a-z2-9]{4}-[a-z2-9]{4}/, 'no code')
        if (type !== 'recovery-codes.replaced')
          t.equal(
            (await app.services.storage.users.find(id))?.version,
            (version ?? 0) + 1,
            'the ETag changes',
          )
      }
    })

  t.test('new recovery codes end the former ones', async t => {
    const { email, token } = await signUp(app)
    const { recoveryCodes } = await addTotp(app, token)
    const replaced = await call(app, 'POST', '/account/recovery-codes', {}, bearer(token))
    const { recoveryCodes: next } = replaced.json()
    t.equal(replaced.headers['cache-control'], 'no-store')
    t.equal(new Set([...recoveryCodes, ...next]).size, 20)
    errorsAt(t, await signInWith(app, email, recoveryCodes[0]), 401, ['code'])
    t.equal((await signInWith(app, email, next[0])).statusCode, 200)
  })

  t.test('without the app the password signs in again, and its codes do not work any more', async t => {
    const { email, token } = await signUp(app)
    const first = await addTotp(app, token)
    t.equal((await call(app, 'DELETE', '/account/totp', {}, bearer(token))).statusCode, 204)
    t.strictSame(await totpOf(app, token), { confirmedAt: null, recoveryCodes: 0 })
    t.equal((await signInWith(app, email)).statusCode, 200)
    await addTotp(app, token)
    clock.advance(STEP)
    for (const former of [first.code(), first.recoveryCodes[0]])
      errorsAt(t, await signInWith(app, email, former), 401, ['code'])
  })

  t.test('a change needs a recent proof of identity', async t => {
    const { token } = await signUp(app)
    const begun = await beginTotp(app, token)
    clock.advance(600_001)
    t.equal((await call(app, 'POST', '/account/totp', {}, bearer(token))).statusCode, 403)
    t.equal((await confirmTotp(app, token, begun.code())).statusCode, 200, 'begun with one')
    for (const [method, url] of [
      ['DELETE', '/account/totp'],
      ['POST', '/account/recovery-codes'],
    ] as const) {
      t.equal((await call(app, method, url, {}, bearer(token))).statusCode, 403)
      t.equal((await call(app, method, url, undefined, bearer(token))).statusCode, 403)
    }
    const remove = (proof: object) => call(app, 'DELETE', '/account/totp', proof, bearer(token))
    errorsAt(t, await remove({ password: PASSWORD }), 400, ['code'])
    t.equal((await remove({ code: begun.code(1) })).statusCode, 204)
  })

  t.test('administrators see factors, and remove them', async t => {
    const { id, email, token } = await signUp(app)
    const { code, recoveryCodes } = await addTotp(app, token)
    clock.advance(STEP)
    for (const instance of [app, other]) {
      const user = await userOf(instance, id)
      hasShape(t, user, ADMIN_USER)
      t.strictSame(user.factors, ['totp'])
      t.equal(await accountStatus(instance, token), 200)
    }
    const listed = await call(
      app,
      'GET',
      `/admin/users?search=${encodeURIComponent(email)}`,
      undefined,
      asAdmin,
    )
    t.strictSame(listed.json().results[0].factors, ['totp'])

    const { headers, id: adminKey } = await createAdminKey(app, ['users:identity'])
    const removed = await removeFactors(app, id, headers)
    t.strictSame([removed.statusCode, removed.body], [204, ''])
    for (const instance of [other, app]) {
      t.strictSame((await userOf(instance, id)).factors, [])
      t.equal((await signInWith(instance, email)).statusCode, 200, 'without a code')
      t.strictSame(await totpOf(instance, token), { confirmedAt: null, recoveryCodes: 0 })
    }
    t.equal(await accountStatus(app, token), 200, 'sessions stay')
    for (const former of [code(), recoveryCodes[0]])
      errorsAt(t, await call(app, 'POST', '/account/reauthenticate', { code: former }, bearer(token)), 400, [
        'code',
      ])
    await mails.to(email, 'factorsRemoved')

    t.equal((await removeFactors(app, id)).statusCode, 204, 'again')
    const events = await allEvents(app, { userId: id, type: 'factors.removed' })
    t.match(events, [{ actor: { type: 'adminKey', id: adminKey } }])
    t.equal(events.length, 1)
  })

  t.test('S11: sessions from before the removal need a new proof of identity, on every instance', async t => {
    const { id, email, token } = await signUp(app)
    const { token: key } = await createKey(app, token)
    const { code } = await addTotp(app, token)
    clock.advance(STEP)
    const second: string = (await signInWith(other, email, code())).json().accessToken
    const newCodes = (instance: FastifyInstance, session: string, proof = {}) =>
      call(instance, 'POST', '/account/totp', proof, bearer(session)).then(({ statusCode }) => statusCode)
    const inspect = async (session: string) =>
      (await call(app, 'POST', '/admin/introspect', { token: session }, asAdmin)).json()
    const seconds = Math.floor(clock.now() / 1_000)
    t.match(await inspect(second), { iat: seconds, auth_time: seconds })
    for (const instance of [app, other])
      for (const session of [token, second]) t.equal(await newCodes(instance, session), 409, 'proved')

    t.equal((await removeFactors(app, id)).statusCode, 204)
    for (const instance of [app, other])
      for (const session of [token, second]) {
        const refused = () => newCodes(instance, session)
        t.equal(await until(refused, status => status === 403, 2_000), 403)
        t.equal(await accountStatus(instance, session), 200, 'the session stays')
      }
    t.equal(await accountStatus(app, key), 200, 'and the API key')
    const { auth_time, ...session } = await inspect(second)
    t.equal(auth_time, undefined, 'other services see no proof either')
    t.match(session, { active: true, iat: seconds })

    t.equal(await newCodes(app, token, { password: PASSWORD }), 201, 'a proof in the request')
    t.equal(await newCodes(app, token), 403)
    const proof = { password: PASSWORD }
    t.equal((await call(app, 'POST', '/account/reauthenticate', proof, bearer(second))).statusCode, 204)
    t.equal(await newCodes(app, second), 201)
    t.equal(await newCodes(app, token), 403, 'in that session alone')
    const fresh: string = (await signInWith(app, email)).json().accessToken
    t.equal(await newCodes(app, fresh), 201, 'a new sign-in is a proof')
    t.equal((await removeFactors(app, id)).statusCode, 204, 'of an unconfirmed secret')
    t.equal(await newCodes(app, fresh), 201, 'which is no proof of any session')
  })

  t.test('the removal is refused for unknown users, and without the scope', async t => {
    t.equal(globalErrorOf(t, await removeFactors(app, UNKNOWN_ID), 404), 'There is no such user')
    const { id, token } = await signUp(app)
    await addTotp(app, token)
    const { headers } = await createAdminKey(app, ['users:read', 'users:delete'])
    globalErrorOf(t, await removeFactors(app, id, headers), 403)
    t.strictSame((await userOf(app, id)).factors, ['totp'])
  })

  t.test('the removal ends an unconfirmed secret too, without a mail', async t => {
    const { id, email, token } = await signUp(app)
    const begun = await beginTotp(app, token)
    t.equal((await removeFactors(app, id)).statusCode, 204)
    t.equal((await confirmTotp(app, token, begun.code())).statusCode, 409)
    t.strictSame(await allEvents(app, { userId: id, type: 'factors.removed' }), [])
    t.equal((await signInWith(app, email)).statusCode, 200)
  })
})
