/** Contract: expired rows are removed a slice at a time, and no others (Sessions; docs/design.md, "Account life cycle"). */
import { v7 as uuidv7 } from 'uuid'
import { newEmailToken } from '#core/accounts/email-token'
import type { Session } from '#core/auth/session'
import type { ExpiredSessions, Storage } from '#core/store/store'
import {
  type Added,
  add,
  eventOf,
  forEach,
  NOW,
  type Part,
  removeOld,
  sessionOf,
  userRequests,
} from './fixtures.ts'

const HOUR = 3_600_000

/** What these tests remove: sessions that expired by NOW, or were idle for an hour and more. */
const EXPIRED: ExpiredSessions = { endedBy: NOW, idleSince: NOW - HOUR }

const ENDED: Partial<Session> = { expiresAt: NOW }

const sliceOf = (length: number, of: (index: number) => Partial<Session>): Partial<Session>[] =>
  Array.from({ length }, (_, index) => of(index))

/** Opens sessions of a user, in the order of their ids. */
const open = async (storage: Storage, { user }: Added, fields: readonly Partial<Session>[]) => {
  const sessions = fields.map((each, index) =>
    sessionOf(user.id, { id: uuidv7({ msecs: NOW + index }), ...each }),
  )
  await forEach(sessions, session => storage.sessions.open(session, null, eventOf(user.id)))
  return sessions
}

/** The remaining sessions. */
const remaining = async (storage: Storage, sessions: readonly Session[]): Promise<Session[]> => {
  const found = await forEach(sessions, ({ id }) => storage.sessions.find(id))
  return sessions.filter((_, index) => found[index] !== undefined)
}

const removeAll = async (storage: Storage, limit: number, from = ''): Promise<number> => {
  let [after, slices] = [from, 0]
  do {
    after = await storage.cleanUp.removeSessions(EXPIRED, after, limit)
    slices += 1
  } while (after !== '')
  return slices
}

export const cleanUp: Part = async (t, openStore) => {
  t.test('exactly the sessions that expired or were idle by then are removed', async t => {
    const storage = await openStore(t)
    const added = await add(storage)
    const gone = await open(storage, added, [
      ENDED,
      { lastRequestAt: NOW - HOUR },
      { expiresAt: 1, lastRequestAt: 1 },
    ])
    const alive = await open(storage, added, [
      { expiresAt: NOW + 1 },
      { lastRequestAt: NOW - HOUR + 1 },
      { createdAt: 1, lastRequestAt: NOW + 5 * HOUR },
      { lastRequestAt: NOW - 2 * HOUR },
    ])
    // The last one has just been used.
    const used = alive.at(-1)?.id ?? ''
    await storage.lastRequests.recordLastRequests(userRequests([]), [{ id: used, at: NOW }])
    const before = await storage.users.find(added.user.id)
    const events = await storage.events.list({ filter: {}, beforeId: null, limit: 100 })
    await removeAll(storage, 10)
    t.strictSame(await remaining(storage, gone), [])
    t.strictSame(await remaining(storage, [added.session, ...alive]), [added.session, ...alive])
    t.match(await storage.sessions.find(used), { session: { lastRequestAt: NOW } })
    t.strictSame(await storage.users.find(added.user.id), before, 'the user is as before')
    t.strictSame(await storage.events.list({ filter: {}, beforeId: null, limit: 100 }), events)
  })

  t.test('a slice has at most the given size and returns where to continue, for any instance', async t => {
    const storage = await openStore(t)
    const added = await add(storage)
    const sessions = await open(
      storage,
      added,
      sliceOf(35, index => (index % 7 === 6 ? {} : ENDED)),
    )
    let after = ''
    for (const left of [25, 15]) {
      after = await storage.cleanUp.removeSessions(EXPIRED, after, 10)
      t.equal((await remaining(storage, sessions)).length, left)
      t.not(after, '')
    }
    const [behind] = await open(storage, added, [{ ...ENDED, id: uuidv7({ msecs: 1 }) }])
    const other = await openStore(t)
    t.equal(await removeAll(other, 10, after), 2)
    t.equal((await remaining(storage, sessions)).length, 5, 'the living ones')
    t.ok(behind && (await storage.sessions.find(behind.id)), 'what lies behind waits for the next walk')
    await removeAll(other, 10)
    t.strictSame(await remaining(storage, behind ? [behind] : []), [])
  })

  t.test('a slice reads a bounded number of sessions, even if few are expired', async t => {
    const storage = await openStore(t)
    const added = await add(storage)
    const alive = await open(
      storage,
      added,
      sliceOf(2_100, () => ({})),
    )
    const last = await open(storage, added, [{ ...ENDED, id: uuidv7({ msecs: NOW + HOUR }) }])
    const after = await storage.cleanUp.removeSessions(EXPIRED, '', 10)
    t.not(after, '')
    t.equal((await remaining(storage, last)).length, 1, 'not there yet')
    t.equal(await removeAll(storage, 10, after), 2)
    t.strictSame(await remaining(storage, last), [])
    t.equal((await remaining(storage, alive)).length, alive.length)
  })

  t.test('concurrent clean-ups and session writes do not conflict', async t => {
    const storages = [await openStore(t), await openStore(t)]
    const [one, other] = storages as [Storage, Storage]
    const users = await forEach(Array.from({ length: 4 }), () => add(one))
    for (let round = 0; round < 10; round += 1) {
      const sessions = (
        await forEach(users, user =>
          open(
            one,
            user,
            sliceOf(60, index => ({ id: uuidv7(), ...(index % 2 === 0 ? ENDED : {}) })),
          ),
        )
      ).flat()
      const timestamps = sessions.map(({ id }) => ({ id, at: NOW + round }))
      const ending = users[round % users.length]?.user.id ?? ''
      await t.resolves(
        Promise.all([
          removeAll(one, 7),
          removeAll(other, 5),
          removeAll(other, 100),
          one.lastRequests.recordLastRequests(userRequests([]), timestamps.toReversed()),
          other.lastRequests.recordLastRequests(userRequests([]), timestamps),
          other.sessions.revokeAll(eventOf(ending), { exceptId: null, onlyEnabled: true }),
        ]),
      )
      await removeAll(one, 100)
      const expected = sessions.filter(({ userId, expiresAt }) => userId !== ending && expiresAt > NOW)
      t.strictSame(await remaining(one, sessions), expected)
    }
  })

  t.test('e-mail tokens from before a timestamp are removed in slices, oldest first', async t => {
    const storage = await openStore(t)
    const timestamps = [NOW + HOUR, NOW - HOUR, NOW + 1, NOW - 2, NOW - 1, NOW]
    const tokens = await forEach(timestamps, async timestamp => {
      const { user } = await add(storage)
      const { stored } = newEmailToken('verification', user.id, user.email, timestamp)
      await storage.emailTokens.add(stored, eventOf(user.id), null)
      return stored.digest
    })
    const left = async () => {
      const found = await forEach(tokens, digest => storage.emailTokens.find(digest, 0))
      return found.flatMap(token => (token === undefined ? [] : [token.createdAt - NOW]))
    }
    t.equal(await removeOld(storage, 'email_tokens', NOW, 2), true)
    t.strictSame(await left(), [HOUR, 1, -1, 0], 'the oldest first')
    t.equal(await removeOld(storage, 'email_tokens', NOW, 2), false)
    t.strictSame(await left(), [HOUR, 1, 0])
  })

  t.test('events from before a timestamp are removed in slices, oldest first', async t => {
    const storage = await openStore(t)
    const { user } = await add(storage)
    const ages = [50_000, 40_000, 30_000, 20_000, 1, 0, -1]
    for (const age of ages) await storage.events.record(eventOf(user.id, NOW - 2 * HOUR - age))
    const left = async () => {
      const events = await storage.events.list({ filter: {}, beforeId: null, limit: 100 })
      return events.flatMap(({ at }) => (at < NOW - HOUR ? [NOW - 2 * HOUR - at] : [])).toReversed()
    }
    t.strictSame(await left(), ages)
    t.equal(await removeOld(storage, 'events', NOW - 2 * HOUR, 3), true)
    t.strictSame(await left(), ages.slice(3))
    t.equal(await removeOld(storage, 'events', NOW - 2 * HOUR, 3), false)
    t.strictSame(await left(), [0, -1], 'the event of exactly that time stays')
    const byUser = await storage.events.list({ filter: { userId: user.id }, beforeId: null, limit: 100 })
    t.equal(byUser.length, 3, 'with that of the sign-up')
  })
}
