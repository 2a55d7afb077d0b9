/** Contract: last requests, which arrive in batches, late, repeated and in any order. */
import { v7 as uuidv7 } from 'uuid'
import {
  ALL,
  add,
  asStored,
  eventOf,
  forEach,
  NOW,
  type Part,
  sessionOf,
  userRequests,
  verifiedBy,
} from './fixtures.ts'

export const lastRequests: Part = async (t, open) => {
  const storage = await open(t)

  t.test('last requests appear in every read, and change nothing else', async t => {
    const { user, session, userKey } = await add(storage)
    const at = NOW + 10
    await storage.lastRequests.recordLastRequests(userRequests([{ key: userKey, at }]), [
      { id: session.id, at: at + 1 },
    ])
    const expected = asStored(user, at)
    t.strictSame(await storage.users.find(user.id), expected)
    t.strictSame((await storage.users.findByEmail(user.email))?.user, expected)
    t.strictSame(await storage.users.list({ ...ALL, filter: { email: user.email } }), [expected])
    t.strictSame(await storage.sessions.find(session.id), {
      session: { ...session, lastRequestAt: at + 1 },
      user: expected,
      userKey,
    })
    const changed = { ...expected, firstName: 'New', updatedAt: NOW + 20, version: 2 }
    t.strictSame(
      await storage.users.update(user.id, { firstName: 'New' }, eventOf(user.id, NOW + 20), {
        revokeSessions: false,
        invalidateTokens: false,
        credentialId: null,
        versions: null,
      }),
      changed,
    )
  })

  t.test('last requests never move back', async t => {
    const { session, userKey } = await add(storage)
    const noted = async (...timestamps: number[]) => {
      await storage.lastRequests.recordLastRequests(
        userRequests(timestamps.map(at => ({ key: userKey, at }))),
        timestamps.map(at => ({ id: session.id, at })),
      )
      const found = await storage.sessions.find(session.id)
      return [found?.user.lastRequestAt, found?.session.lastRequestAt]
    }
    t.strictSame(await noted(NOW + 50), [NOW + 50, NOW + 50])
    t.strictSame(await noted(NOW + 49), [NOW + 50, NOW + 50])
    t.strictSame(await noted(NOW + 50), [NOW + 50, NOW + 50])
    t.strictSame(await noted(NOW + 60, NOW + 70, NOW + 65), [NOW + 70, NOW + 70])
    const batches = Array.from({ length: 50 }, (_, index) => noted(NOW + 100 + ((index * 37) % 50)))
    await Promise.all(batches)
    t.strictSame(await noted(NOW), [NOW + 149, NOW + 149])
  })

  t.test('deleted users are ignored, and the others are written', async t => {
    const { user, session, userKey } = await add(storage)
    const ended = await add(storage)
    await storage.users.update(ended.user.id, { disabled: true }, eventOf(ended.user.id, NOW), {
      revokeSessions: true,
      invalidateTokens: false,
      credentialId: null,
      versions: null,
    })
    const at = NOW + 5
    const users = [userKey + 1_000_000, userKey, 0].map(key => ({ key, at }))
    const sessions = [uuidv7(), session.id, 'no uuid', ended.session.id].map(id => ({ id, at }))
    await storage.lastRequests.recordLastRequests(userRequests(users), sessions)
    t.strictSame(await storage.sessions.find(session.id), {
      session: { ...session, lastRequestAt: at },
      user: asStored(user, at),
      userKey,
    })
    t.equal(await storage.sessions.find(ended.session.id), undefined)
  })

  t.test('a large batch of known, new and deleted users writes those that exist, in any order', async t => {
    const added = await forEach(Array.from({ length: 450 }), () => add(storage))
    const keys = added.map(({ userKey }) => userKey)
    const isEven = (_: unknown, index: number) => index % 2 === 0
    const note = (order: readonly number[], from: number) =>
      storage.lastRequests.recordLastRequests(
        userRequests(order.map(key => ({ key, at: from + keys.indexOf(key) }))),
        [],
      )
    await note(keys.filter(isEven), NOW)
    const [gone] = added.splice(120, 1)
    if (gone === undefined) throw new Error('no user')
    t.strictSame(await storage.users.remove(eventOf(gone.user.id), null), { outcomes: {} })
    const mixed = [...keys.filter(isEven), ...keys.filter((_, index) => index % 2 === 1)]
    for (const [round, order] of [keys, keys.toReversed(), mixed].entries()) {
      const from = NOW + 1_000 * (round + 1)
      await note(order, from)
      await note(order, NOW)
      const found = await forEach(added, ({ user }) => storage.users.find(user.id))
      t.strictSame(
        found.map(user => user?.lastRequestAt),
        added.map(({ userKey }) => from + keys.indexOf(userKey)),
      )
    }
  })

  t.test('a batch may be empty or have six thousand rows', async t => {
    await storage.lastRequests.recordLastRequests(userRequests([]), [])
    const added = await forEach(Array.from({ length: 6_000 }), () => add(storage))
    const at = NOW + 7
    await storage.lastRequests.recordLastRequests(
      userRequests(added.map(({ userKey }) => ({ key: userKey, at }))),
      added.map(({ session }) => ({ id: session.id, at })),
    )
    const found = await forEach(added, ({ session }) => storage.sessions.find(session.id))
    t.ok(found.every(each => each?.user.lastRequestAt === at && each.session.lastRequestAt === at))
  })

  t.test('an older timestamp of a newer session is stored apart from the user', async t => {
    const { user, session } = await add(storage)
    const second = sessionOf(user.id, { lastRequestAt: NOW + 90 })
    await storage.sessions.open(second, verifiedBy(user.passwordHash), eventOf(second.userId))
    await storage.lastRequests.recordLastRequests(userRequests([]), [{ id: session.id, at: NOW + 30 }])
    const timestamps = [session, second].map(async ({ id }) => (await storage.sessions.find(id))?.session)
    t.match(await Promise.all(timestamps), [{ lastRequestAt: NOW + 30 }, { lastRequestAt: NOW + 90 }])
    t.match(await storage.users.find(user.id), { lastRequestAt: null })
  })
}
