/**
 * A refused write shows that another instance may have changed the user: the cached state is evicted (docs/design.md, "Tokens and sessions"
 * and "Storage").
 */
import t from 'tap'
import { call } from '../support/account-routes.ts'
import { asAdmin, bearer, signUp, updateUser } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const env = { DATABASE_URL: await newDatabase(t) }
  const [one, other] = [await build(t, { env }), await build(t, { env })]

  /** A user whose token both instances have cached. */
  const cachedUser = async () => {
    const user = await signUp(one)
    for (const app of [one, other])
      t.equal((await call(app, 'GET', '/account', undefined, bearer(user.token))).statusCode, 200)
    return user
  }

  t.test('a sign-out that was made elsewhere before ends the token here too', async t => {
    for (let round = 0; round < 5; round += 1) {
      const { token } = await cachedUser()
      const results = [one, other].map(
        app => () => call(app, 'POST', '/account/sign-out', undefined, bearer(token)),
      )
      for (const signOut of results) t.ok([204, 401].includes((await signOut()).statusCode))
      t.equal((await call(other, 'GET', '/account', undefined, bearer(token))).statusCode, 401)
    }
  })

  t.test('a deletion that is 404 here ends the tokens of the user', async t => {
    const { id, token } = await cachedUser()
    const remove = { method: 'DELETE', url: `/admin/users/${id}`, headers: asAdmin } as const
    t.equal((await one.inject(remove)).statusCode, 204)
    t.equal((await other.inject(remove)).statusCode, 404)
    t.equal((await call(other, 'GET', '/account', undefined, bearer(token))).statusCode, 401)
  })

  t.test('a change that is refused because the user was disabled elsewhere ends the token', async t => {
    const { id, token } = await cachedUser()
    await updateUser(one, id, { disabled: true })
    t.equal((await call(other, 'PUT', '/account', { firstName: 'Ada' }, bearer(token))).statusCode, 401)
    t.equal((await call(other, 'GET', '/account', undefined, bearer(token))).statusCode, 401)
  })
})
