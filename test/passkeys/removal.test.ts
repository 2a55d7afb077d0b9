import t from 'tap'
import { call, remove } from '../support/account-routes.ts'
import {
  allEvents,
  eventTypes,
  factorsOf,
  impersonate,
  removeFactors,
  UNKNOWN_ID,
} from '../support/admin-routes.ts'
import { accountStatus, manualClock, PASSWORD, signIn, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { mailbox } from '../support/mailbox.ts'
import {
  creationOptions,
  ENV,
  listPasskeys,
  postPasskey,
  postSignIn,
  register,
  removePasskey,
  requestOptions,
  signInWith,
} from '../support/passkeys.ts'
import { race, rounds } from '../support/races.ts'
import { SoftwareAuthenticator } from '../support/software-authenticator.ts'
import { storedRows } from '../support/stored-rows.ts'

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const clock = manualClock()
  const DATABASE_URL = await newDatabase(t)
  const app = await build(t, { clock: clock.now, env: { ...ENV, DATABASE_URL } })

  t.test('a removed passkey does not sign in; the other one does', async t => {
    const user = await signUp(app)
    const [one, two] = [await register(app, user.token), await register(app, user.token)]
    const removed = await removePasskey(app, user.token, one.id.toUpperCase())
    t.equal(removed.statusCode, 204)
    t.equal(removed.body, '')
    t.equal((await signInWith(app, one.authenticator)).statusCode, 401)
    t.equal((await signInWith(app, two.authenticator)).statusCode, 200)
    t.match(await listPasskeys(app, user.token), [{ id: two.id }])
    t.same(await factorsOf(app, user.id), ['passkey'], 'until the last one')
    t.equal((await removePasskey(app, user.token, two.id)).statusCode, 204)
    t.same(await factorsOf(app, user.id), [])
    const events = await allEvents(app, { userId: user.id, type: 'passkey.removed' })
    t.same(events.map(({ details }) => details?.passkey).sort(), [one.id, two.id].sort())
    t.equal((await mailbox(app).to(user.email, 'passkeyRemoved', 2)).length, 2)
    t.equal((await signIn(app, user.email)).statusCode, 200, 'the password still does')
  })

  t.test('S11: options from before an administrator removed the passkeys add none', async t => {
    const user = await signUp(app)
    await register(app, user.token)
    const authenticator = new SoftwareAuthenticator()
    const begun = (await creationOptions(app, user.token)).json()
    t.equal((await removeFactors(app, user.id)).statusCode, 204)
    const late = await postPasskey(app, user.token, { credential: authenticator.create(begun) })
    errorsAt(t, late, 400, ['credential'])
    t.equal((await creationOptions(app, user.token)).statusCode, 403)
    const again = await creationOptions(app, user.token, { password: PASSWORD })
    const credential = authenticator.create(again.json())
    t.equal((await postPasskey(app, user.token, { credential })).statusCode, 201)
  })

  t.test("another user's passkey is not found", async t => {
    const [user, other] = [await signUp(app), await signUp(app)]
    const { id } = await register(app, user.token)
    for (const unknown of [id, UNKNOWN_ID])
      t.equal(
        globalErrorOf(t, await removePasskey(app, other.token, unknown), 404),
        'There is no such passkey',
      )
    errorsAt(t, await removePasskey(app, user.token, 'x'), 400, ['id'])
    t.equal((await listPasskeys(app, user.token)).length, 1)
  })

  t.test('it needs a recent sign-in or the password, and no impersonation', async t => {
    const user = await signUp(app)
    const { id } = await register(app, user.token)
    const acting: string = (await impersonate(app, user.id)).json().accessToken
    t.equal((await removePasskey(app, acting, id)).statusCode, 403)
    clock.advance(600_001)
    t.equal((await removePasskey(app, user.token, id)).statusCode, 403)
    t.equal((await listPasskeys(app, user.token)).length, 1)
    const confirmed = await call(
      app,
      'DELETE',
      `/account/passkeys/${id}`,
      { password: PASSWORD },
      {
        authorization: `Bearer ${user.token}`,
      },
    )
    t.equal(confirmed.statusCode, 204)
  })

  t.test('endOthers ends the other sessions, that of the passkey too', async t => {
    const user = await signUp(app)
    const { authenticator, id } = await register(app, user.token)
    const theirs: string = (await signInWith(app, authenticator)).json().accessToken
    t.equal((await removePasskey(app, user.token, id, '?endOthers=true')).statusCode, 204)
    t.equal(await accountStatus(app, theirs), 401)
    t.equal(await accountStatus(app, user.token), 200)
  })

  t.test('an administrator removes the passkeys of a user who has lost them', async t => {
    const user = await signUp(app)
    const [one, two] = [await register(app, user.token), await register(app, user.token)]
    t.equal((await removeFactors(app, user.id)).statusCode, 204)
    for (const { authenticator } of [one, two])
      t.equal((await signInWith(app, authenticator)).statusCode, 401)
    t.same(await factorsOf(app, user.id), [])
    t.same(await listPasskeys(app, user.token), [])
    t.equal((await mailbox(app).to(user.email, 'factorsRemoved')).length, 1)
    const [event] = await allEvents(app, { userId: user.id, type: 'factors.removed' })
    t.match(event, { actor: { type: 'adminKey' } })
    t.equal((await removeFactors(app, user.id)).statusCode, 204, 'nothing is left to remove')
    t.equal((await allEvents(app, { userId: user.id, type: 'factors.removed' })).length, 1)
    t.equal((await removeFactors(app, UNKNOWN_ID)).statusCode, 404)
    const { accessToken } = (await signIn(app, user.email)).json()
    t.equal((await register(app, accessToken)).id.length, 36, 'the user can add another one')
  })

  t.test('100 races of a sign-in and a removal: afterwards the passkey opens no session', async t => {
    const wrong: string[] = []
    for (const round of rounds) {
      const user = await signUp(app)
      const { authenticator, id } = await register(app, user.token)
      const credential = authenticator.get((await requestOptions(app)).json())
      const end = () =>
        round % 3 === 0 ? removeFactors(app, user.id) : removePasskey(app, user.token, id, '?endOthers=true')
      const [signedIn, removed] = await race(round, () => postSignIn(app, credential), end)
      if (removed.statusCode !== 204) wrong.push(`${round}: the removal was ${removed.statusCode}`)
      if (![200, 401].includes(signedIn.statusCode)) wrong.push(`${round}: ${signedIn.statusCode}`)
      if (signedIn.statusCode === 200) {
        const ends = ['passkey.removed', 'factors.removed']
        const types = await eventTypes(app, user.id, ends)
        const order = types.filter(type => ['user.signed-in', ...ends].includes(type))
        if (order[0] !== 'user.signed-in') wrong.push(`${round}: ${order}`)
        const status = await accountStatus(app, signedIn.json().accessToken)
        if (round % 3 !== 0 && status !== 401) wrong.push(`${round}: its session has not ended`)
      }
      if ((await signInWith(app, authenticator)).statusCode !== 401) wrong.push(`${round}: it signs in`)
    }
    t.same(wrong, [])
  })

  t.test('nothing of a passkey is left when its user is deleted', async t => {
    const user = await signUp(app)
    const { authenticator, id } = await register(app, user.token, { name: 'Ann on the moon' })
    const credentialId = authenticator.id.toString('base64url')
    t.ok((await storedRows(DATABASE_URL)).includes(credentialId))
    t.equal((await remove(app, user.token, { password: PASSWORD })).statusCode, 204)
    const rows = await storedRows(DATABASE_URL)
    t.notOk(rows.includes(credentialId))
    t.notOk(rows.includes('Ann on the moon'))
    t.ok(rows.includes(id), 'the events name it')
  })
})
