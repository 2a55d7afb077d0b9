/** Contract: a store opens, responds, closes, and reopens with everything that it acknowledged. */
import { add, asStored, eventOf, NOW, newUser, type Part, sessionOf, userRequests } from './fixtures.ts'

export const openAndClose: Part = async (t, open) => {
  t.test('ping succeeds while the store is open, and fails afterwards', async t => {
    const storage = await open(t)
    await t.resolves(storage.ping())
    await storage.close()
    await t.rejects(storage.ping())
  })

  t.test('all data survive closing and opening', async t => {
    const before = await open(t)
    const { user, session, userKey } = await add(before)
    await before.users.update(user.id, { firstName: 'Changed' }, eventOf(user.id, NOW + 1), {
      revokeSessions: false,
      invalidateTokens: false,
      credentialId: null,
      versions: null,
    })
    await before.lastRequests.recordLastRequests(userRequests([{ key: userKey, at: NOW + 2 }]), [
      { id: session.id, at: NOW + 3 },
    ])
    const ended = await add(before)
    await before.users.update(ended.user.id, { disabled: true }, eventOf(ended.user.id, NOW + 1), {
      revokeSessions: true,
      invalidateTokens: false,
      credentialId: null,
      versions: null,
    })
    await before.close()
    const after = await open(t)
    t.strictSame(await after.sessions.find(session.id), {
      session: { ...session, lastRequestAt: NOW + 3 },
      user: { ...asStored(user, NOW + 2), firstName: 'Changed', updatedAt: NOW + 1, version: 2 },
      userKey,
    })
    t.equal(await after.sessions.find(ended.session.id), undefined)
    t.match(await after.users.find(ended.user.id), { disabled: true })
    t.equal(await after.users.count({}), 2)
  })

  t.test('closing waits for pending writes', async t => {
    const before = await open(t)
    const users = Array.from({ length: 600 }, () => newUser())
    const writes = users.map(user =>
      before.accounts.addUser(user, eventOf(user.id), { session: sessionOf(user.id) }),
    )
    await before.close()
    t.ok((await Promise.all(writes)).every(Boolean))
    const after = await open(t)
    t.equal(await after.users.count({}), users.length)
  })

  t.test('every instance reads what another one acknowledged', async t => {
    const first = await open(t)
    const second = await open(t)
    const third = await open(t)
    const { user, session, userKey } = await add(first)
    t.strictSame(await second.users.find(user.id), asStored(user))
    t.strictSame(await third.sessions.find(session.id), { session, user: asStored(user), userKey })
    await second.users.update(user.id, { firstName: 'By another' }, eventOf(user.id, NOW), {
      revokeSessions: false,
      invalidateTokens: false,
      credentialId: null,
      versions: null,
    })
    t.match(await first.users.find(user.id), { firstName: 'By another' })
  })
}
