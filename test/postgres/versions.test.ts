/** What one instance has shown of a user, it never takes back, although the change of another instance is not notified yet. */
import t from 'tap'
import { asAdmin, bearer, build, signIn, signUp } from '../support/build.ts'
import { createDatabase, query } from '../support/postgres.ts'

t.test('a cached token does not show an older user than a response before it', async t => {
  const DATABASE_URL = await createDatabase(t)
  const app = await build(t, { env: { DATABASE_URL } })
  const { id, email, token } = await signUp(app, { firstName: 'Ada' })
  const nameBy = async (accessToken: string) =>
    (await app.inject({ url: '/account', headers: bearer(accessToken) })).json().firstName
  /** Like another instance, before its notification arrives. */
  const rename = (name: string) =>
    query(DATABASE_URL, `UPDATE users SET first_name = '${name}', version = version + 1 WHERE id = '${id}'`)
  const adminRead = (url: string) => app.inject({ url, headers: asAdmin })
  const reads: Record<string, () => Promise<string>> = {
    'a sign-in': async () => (await signIn(app, email)).json().user.firstName,
    'a user': async () => (await adminRead(`/admin/users/${id}`)).json().firstName,
    'a list': async () => (await adminRead(`/admin/users?ids=${id}`)).json().results[0].firstName,
    'the lookup of another token': async () => nameBy((await signIn(app, email)).json().accessToken),
  }
  for (const [name, read] of Object.entries(reads)) {
    t.not(await nameBy(token), name, 'cached')
    await rename(name)
    t.equal(await read(), name)
    t.equal(await nameBy(token), name)
  }
})
