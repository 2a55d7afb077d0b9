/** Events and mails of API keys (docs/design.md, "Account life cycle" and "Machine callers"). */
import t from 'tap'
import { call, remove } from '../support/account-routes.ts'
import { type AuditLine, allEvents } from '../support/admin-routes.ts'
import { adminRevoke, createKey, postKey, revokeKey } from '../support/api-keys.ts'
import { asAdmin, bearer, build, logCapture, PASSWORD, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { mailbox } from '../support/mailbox.ts'

await onEnginesOfRun(t, async (t, { build }) => {
  const app = await build(t, { hasher: quickHashing })
  const eventsOf = (userId: string, type?: string): Promise<AuditLine[]> =>
    allEvents(app, { userId, ...(type === undefined ? {} : { type }) })

  t.test('creation and revocation are events with the id of the key, without its text', async t => {
    const user = await signUp(app)
    const [one, two] = [
      await createKey(app, user.token, { name: 'a secret project' }),
      await createKey(app, user.token),
    ]
    await revokeKey(app, user.token, one.apiKey.id)
    await adminRevoke(app, user.id, two.apiKey.id)
    await revokeKey(app, user.token, one.apiKey.id)
    const created = await eventsOf(user.id, 'api-key.created')
    t.same(created.map(({ details }) => details?.apiKey).sort(), [one.apiKey.id, two.apiKey.id].sort())
    for (const { actor, ip } of created) {
      t.same(actor, { type: 'user', id: user.id })
      t.equal(ip, '127.0.0.1')
    }
    const revoked = await eventsOf(user.id, 'api-key.revoked')
    t.equal(revoked.length, 2, 'a refused revocation is no event')
    const actors = Object.fromEntries(
      revoked.map(({ details, actor }) => [String(details?.apiKey), actor.type]),
    )
    t.same(actors, { [one.apiKey.id]: 'user', [two.apiKey.id]: 'adminKey' })
    const text = JSON.stringify([created, revoked])
    for (const part of [one.token, one.token.slice(9, 20), 'a secret project', 'gate_pat_'])
      t.notOk(text.includes(part), part)
  })

  t.test('a change that is made with a key names the key as its actor', async t => {
    const user = await signUp(app)
    const { token, apiKey } = await createKey(app, user.token)
    t.equal((await call(app, 'PUT', '/account', { firstName: 'Ada' }, bearer(token))).statusCode, 200)
    const [changed] = await eventsOf(user.id, 'user.changed')
    t.match(changed, { actor: { type: 'apiKey', id: apiKey.id }, userId: user.id, ip: '127.0.0.1' })
    t.equal((await remove(app, user.token, { password: PASSWORD })).statusCode, 204)
    const left = await eventsOf(user.id)
    t.ok(left.length >= 4)
    for (const { type, ip } of left) t.equal(ip, null, `${type}: no address of a deleted user is kept`)
  })

  t.test('a mail tells the user of a new key, and contains nothing of it', async t => {
    const user = await signUp(app)
    const { token } = await createKey(app, user.token, { name: 'backups' })
    const [mail] = await mailbox(app).to(user.email, 'apiKeyCreated')
    const text = JSON.stringify(mail)
    for (const part of [token, token.slice(9, 20)]) t.notOk(text.includes(part), 'no part of the key')
    t.equal((await mailbox(app).to(user.email, 'apiKeyCreated')).length, 1)
  })
})

t.test('no log line contains a key', async t => {
  const log = logCapture()
  const app = await build(t, { logStream: log.stream, hasher: quickHashing })
  const user = await signUp(app)
  const { token, apiKey } = await createKey(app, user.token)
  for (const headers of [bearer(token), { cookie: `ACCESS_TOKEN=${token}` }, { 'x-admin-key': token }]) {
    for (const url of ['/account', '/users', '/account/sessions', '/admin/users', '/nowhere'])
      await app.inject({ url, headers })
    await app.inject({ method: 'PUT', url: '/account', headers, payload: { token } })
  }
  await postKey(app, token)
  await revokeKey(app, token, apiKey.id)
  await revokeKey(app, user.token, apiKey.id)
  await app.inject({ url: '/account', headers: bearer(token) })
  await app.inject({ url: '/admin/users', headers: { ...asAdmin, ...bearer(token) } })
  await app.close()
  t.ok(log.records().length > 0)
  t.notOk(log.text().includes(token.slice(9, 30)))
})
