/** Passkeys in copies to PostgreSQL (docs/design.md, "Storage" and "Passkeys"). Imports and exports: test/bulk-users/passkeys.test.ts. */
import { join } from 'node:path'
import t from 'tap'
import { asAdmin, build, manualClock, signUp, temporaryFolder } from '../support/build.ts'
import { copyHere } from '../support/copy-runs.ts'
import { ENV, listPasskeys, register, removePasskey, signInWith } from '../support/passkeys.ts'
import { newDatabase } from '../support/postgres.ts'

t.test('`copy` moves passkeys, their counters too, and a repeated copy the changes', async t => {
  const clock = manualClock()
  const file = join(temporaryFolder(t), 'test.db')
  const url = await newDatabase(t)
  const source = await build(t, { clock: clock.now, env: { ...ENV, DATABASE_URL: `sqlite:${file}` } })
  const user = await signUp(source)
  const [used, removed] = [await register(source, user.token), await register(source, user.token)]
  t.equal((await signInWith(source, used.authenticator, { counter: 50 })).statusCode, 200)
  t.match(await copyHere(file, url), { tables: { passkeys: { added: 2 } }, complete: true })

  const target = await build(t, { clock: clock.now, env: { ...ENV, DATABASE_URL: url } })
  t.same(await listPasskeys(target, user.token), await listPasskeys(source, user.token))
  t.equal((await signInWith(target, used.authenticator, { counter: 50 })).statusCode, 401, 'the counter')
  t.equal((await signInWith(target, removed.authenticator)).statusCode, 200)
  clock.advance(1_000)
  t.equal((await signInWith(source, used.authenticator, { counter: 70 })).statusCode, 200)
  t.equal((await removePasskey(source, user.token, removed.id)).statusCode, 204)
  await copyHere(file, url)
  t.same(
    (await listPasskeys(target, user.token)).map(({ id }) => id),
    [used.id],
  )
  t.equal(
    (await signInWith(target, used.authenticator, { counter: 70 })).statusCode,
    401,
    'the newer counter',
  )
  t.equal((await signInWith(target, used.authenticator, { counter: 71 })).statusCode, 200)
  const { factors } = (await target.inject({ url: `/admin/users/${user.id}`, headers: asAdmin })).json()
  t.same(factors, ['passkey'])
})
