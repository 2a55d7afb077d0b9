/**
 * A revocation concurrent with what the key does, on one instance and on two (docs/design.md, "Account life cycle" and "Machine callers").
 */
import t from 'tap'
import { createKey, listKeys, postKey, revokeKey } from '../support/admin-keys.ts'
import { accountStatus, signUp } from '../support/build.ts'
import { onEveryEngine } from '../support/engines.ts'
import { until } from '../support/until.ts'

/** On PostgreSQL an impersonation that takes no lock on its key outlives it in a few of a hundred rounds. */
const IMPERSONATIONS = 100
const ROUNDS = 40

await onEveryEngine(t, async (t, { build, newDatabase }) => {
  const env = { DATABASE_URL: await newDatabase(t) }
  const [one, two] = [await build(t, { env }), await build(t, { env })]

  for (const [title, other] of [
    ['one instance', one],
    ['two instances', two],
  ] as const) {
    t.test(`${title}: no impersonated session outlives the key that opened it`, async t => {
      const { id } = await signUp(one)
      const seen = new Set<number>()
      for (let round = 0; round < IMPERSONATIONS; round += 1) {
        const key = await createKey(one, ['users:impersonate'])
        const url = `/admin/users/${id}/impersonate`
        const [opened, revoked] = await Promise.all([
          one.inject({ method: 'POST', url, headers: key.headers }),
          revokeKey(other, key.id),
        ])
        t.equal(revoked, 204)
        seen.add(opened.statusCode)
        if (opened.statusCode !== 201) continue
        const { accessToken } = opened.json()
        const status = await until(
          () => accountStatus(one, accessToken),
          status => status === 401,
          1_000,
        )
        if (status !== 401) t.fail('the session is accepted')
      }
      t.strictSame(
        [...seen].filter(status => ![201, 401].includes(status)),
        [],
      )
    })

    t.test(`${title}: a key that is being revoked leaves no key that it created later`, async t => {
      for (let round = 0; round < ROUNDS; round += 1) {
        const key = await createKey(one, ['keys:write'])
        const cursor = await one.services.auditLog.end()
        const [created, revoked] = await Promise.all([
          postKey(one, { name: 'a child', scopes: ['keys:write'] }, key.headers),
          revokeKey(other, key.id),
        ])
        t.equal(revoked, 204)
        const typesOf = async (): Promise<string[]> => {
          const { events } = await one.services.auditLog.list({ filter: {}, limit: 100, sort: 'at', cursor })
          // While an older transaction runs, the position also has earlier events before it.
          const ofKey = events.filter(({ type, actor, details }) =>
            type === 'admin-key.created' ? actor.id === key.id : details?.adminKey === key.id,
          )
          return ofKey.map(({ type }) => type)
        }
        // While an older transaction runs, later events cannot be read yet.
        const types = await until(typesOf, found => found.includes('admin-key.revoked'), 10_000)
        const isCreated = created.statusCode === 201
        if (!isCreated) t.equal(created.statusCode, 401)
        const expected = [...(isCreated ? ['admin-key.created'] : []), 'admin-key.revoked']
        t.strictSame(types, expected, 'in the order of the commits')
      }
    })
  }

  t.test('no key is left of those that were revoked', async t => {
    const names = new Set((await listKeys(one)).map(({ name }: { name: string }) => name))
    t.notOk(names.has('of a test'))
  })
})
