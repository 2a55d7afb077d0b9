/** Contract: changes of a user, and their notifications. */
import { setTimeout as sleep } from 'node:timers/promises'
import { v7 as uuidv7 } from 'uuid'
import type { UserChanges } from '#core/users/user'
import { freshEmail } from '../../support/build.ts'
import {
  actingIn,
  add,
  asStored,
  eventOf,
  NOTIFICATION_LIMIT,
  NOW,
  onChange,
  type Part,
  sessionOf,
  verifiedBy,
} from './fixtures.ts'

const KEEP = { revokeSessions: false, invalidateTokens: false, credentialId: null, versions: null }
const END = { revokeSessions: true, invalidateTokens: true, credentialId: null, versions: null }
const LATER = NOW + 1_000

export const changes: Part = async (t, open) => {
  const storage = await open(t)

  t.test('each field changes alone, with the timestamp of the change', async t => {
    const cases: UserChanges[] = [
      { firstName: 'Gr\u00e2ce' },
      { firstName: null },
      { lastName: 'Hopper' },
      { lastName: null },
      { email: freshEmail() },
      { emailVerified: true },
      { disabled: true },
      { firstName: 'A', lastName: 'B', email: freshEmail(), emailVerified: true, disabled: true },
    ]
    for (const change of cases) {
      const { user, session, userKey } = await add(storage)
      const expected = { ...asStored(user), ...change, updatedAt: LATER, version: 2 }
      t.strictSame(
        await storage.users.update(user.id, change, eventOf(user.id, LATER), KEEP),
        expected,
        JSON.stringify(change),
      )
      t.strictSame(await storage.users.findByEmail(expected.email), {
        user: expected,
        passwordHash: user.passwordHash,
      })
      t.strictSame(await storage.sessions.find(session.id), { session, user: expected, userKey })
      for (const same of [change, {}])
        t.strictSame(
          await storage.users.update(user.id, same, eventOf(user.id, LATER + 1), KEEP),
          expected,
          'again',
        )
      const filter = { userId: user.id, type: 'user.changed' }
      t.match(await storage.events.list({ filter, beforeId: null, limit: 10 }), [{ at: LATER }], 'one event')
    }
  })

  t.test('flags change back, and other users do not change', async t => {
    const { user } = await add(storage, { emailVerified: true, disabled: true })
    const { user: other } = await add(storage)
    const change = { emailVerified: false, disabled: false }
    t.match(await storage.users.update(user.id, change, eventOf(user.id, LATER), END), change)
    t.strictSame(await storage.users.find(other.id), asStored(other))
  })

  t.test('a change of an unknown user creates none', async t => {
    const before = await storage.users.count({})
    t.equal(
      await storage.users.update(uuidv7(), { firstName: 'Nobody' }, eventOf(uuidv7(), LATER), END),
      'userNotFound',
    )
    t.equal(await storage.users.count({}), before)
  })

  t.test('a taken e-mail changes nothing at all', async t => {
    const { user, session, userKey } = await add(storage)
    const { user: other } = await add(storage)
    const change = { email: other.email, firstName: 'Changed' }
    t.equal(await storage.users.update(user.id, change, eventOf(user.id, LATER), END), 'emailTaken')
    t.strictSame(await storage.sessions.find(session.id), { session, user: asStored(user), userKey })
    t.strictSame((await storage.users.findByEmail(other.email))?.user, asStored(other))
  })

  t.test('a user may keep the own e-mail, and an abandoned one is free', async t => {
    const { user } = await add(storage)
    t.match(await storage.users.update(user.id, { email: user.email }, eventOf(user.id, LATER), KEEP), {
      email: user.email,
    })
    await storage.users.update(user.id, { email: freshEmail() }, eventOf(user.id, LATER), KEEP)
    await t.resolves(add(storage, { email: user.email }))
  })

  t.test('of 50 users who take one e-mail concurrently exactly one gets it', async t => {
    const users = await Promise.all(Array.from({ length: 50 }, () => add(storage)))
    const email = freshEmail()
    const outcomes = await Promise.all(
      users.map(({ user }) => storage.users.update(user.id, { email }, eventOf(user.id, LATER), KEEP)),
    )
    t.equal(outcomes.filter(outcome => outcome === 'emailTaken').length, 49)
    t.equal(await storage.users.count({ email }), 1)
  })

  t.test(
    'a change of their own changes nothing of a disabled user, or in a session that has ended',
    async t => {
      const storage = await open(t)
      const { user, session } = await add(storage)
      const own = { ...KEEP, credentialId: session.id }
      t.match(await storage.users.update(user.id, { firstName: 'Enabled' }, eventOf(user.id, NOW), own), {
        firstName: 'Enabled',
      })
      await storage.users.update(user.id, { disabled: true }, eventOf(user.id, NOW), END)
      t.equal(
        await storage.users.update(user.id, { firstName: 'Disabled' }, eventOf(user.id, NOW), own),
        'accountDisabled',
      )
      await storage.users.update(user.id, { disabled: false }, eventOf(user.id, NOW), KEEP)
      t.equal(
        await storage.users.update(user.id, { firstName: 'Ended' }, eventOf(user.id, NOW), own),
        'sessionNotFound',
      )
      t.match(await storage.users.find(user.id), { firstName: 'Enabled', version: 4 })
    },
  )

  t.test('revokeSessions ends all sessions of that user and no others', async t => {
    const { user, session } = await add(storage)
    const second = sessionOf(user.id)
    await storage.sessions.open(second, verifiedBy(user.passwordHash), eventOf(second.userId))
    const { session: foreign } = await add(storage)
    await storage.users.update(user.id, { firstName: 'Kept' }, eventOf(user.id, LATER), KEEP)
    t.ok(await storage.sessions.find(session.id))
    await storage.users.update(user.id, { disabled: true }, eventOf(user.id, LATER), END)
    t.equal(await storage.sessions.find(session.id), undefined)
    t.equal(await storage.sessions.find(second.id), undefined)
    t.ok(await storage.sessions.find(foreign.id))
  })

  t.test('lists and searches follow a change of name', async t => {
    const { user } = await add(storage, { firstName: 'Before' })
    await storage.users.update(user.id, { firstName: 'After' }, eventOf(user.id, LATER), KEEP)
    t.equal(await storage.users.count({ search: 'before' }), 0)
    t.equal(await storage.users.count({ search: 'AFTER' }), 1)
  })

  t.test('a change is notified before its promise resolves, only to the last listener', async t => {
    const { user } = await add(storage)
    const notified = new Set<unknown>()
    onChange(storage, () => notified.add('replaced listener'))
    // Notifications about the users of other tests may arrive late.
    onChange(storage, userId => userId === user.id && notified.add(userId))
    for (const change of [{ firstName: 'X' }, { disabled: true }]) {
      notified.clear()
      await storage.users
        .update(user.id, change, eventOf(user.id, LATER), END)
        .then(() => t.strictSame([...notified], [user.id]))
    }
  })

  t.test('simultaneous revocations end at once, also those of sessions of other users', async t => {
    const { user, session } = await add(storage)
    const other = await add(storage)
    const revoke = (id: string) => storage.sessions.revoke(id, eventOf(user.id, LATER))
    const own = await Promise.all(Array.from({ length: 10 }, () => revoke(session.id)))
    t.strictSame(own.toSorted(), ['revoked', ...Array(9).fill('sessionNotFound')])
    const foreign = await Promise.all(Array.from({ length: 10 }, () => revoke(other.session.id)))
    t.strictSame(foreign, Array(10).fill('sessionNotFound'))
  })

  t.test('changes of every kind at once deadlock neither with each other nor with revocations', async t => {
    const { user, session } = await add(storage)
    const changes = [
      () => storage.users.update(user.id, { firstName: 'X' }, eventOf(user.id, LATER), KEEP),
      () => storage.users.update(user.id, { lastName: 'Y' }, eventOf(user.id, LATER), END),
      () =>
        storage.accounts.changePassword(
          sessionOf(user.id),
          actingIn(session, user.passwordHash),
          user.passwordHash,
          eventOf(user.id),
        ),
      () => storage.sessions.open(sessionOf(user.id), null, eventOf(user.id)),
      () => storage.sessions.revoke(session.id, eventOf(user.id)),
      () => storage.sessions.revokeAll(eventOf(user.id), { exceptId: null, onlyEnabled: true }),
      () => storage.events.record(eventOf(user.id)),
    ]
    const outcomes = await Promise.allSettled(
      Array.from({ length: 70 }, (_, n) => changes[n % changes.length]?.()),
    )
    t.strictSame(
      outcomes.filter(({ status }) => status === 'rejected'),
      [],
    )
  })

  t.test('when a change is notified, reads return its result', async t => {
    const { user } = await add(storage)
    const seen: unknown[] = []
    // A notification of an earlier test may be late.
    onChange(storage, userId => userId === user.id && seen.push(storage.users.find(userId)))
    await storage.users.update(user.id, { firstName: 'New' }, eventOf(user.id, LATER), KEEP)
    t.ok(seen.length > 0)
    for (const found of await Promise.all(seen)) t.match(found, { firstName: 'New' })
  })

  t.test('a change by another instance is notified within a second', async t => {
    const here = await open(t)
    const there = await open(t)
    const { user } = await add(there)
    // The notification about the added user comes first.
    await sleep(NOTIFICATION_LIMIT)
    const { promise: notified, resolve } = Promise.withResolvers<string | null>()
    onChange(here, resolve)
    await there.users.update(user.id, { disabled: true }, eventOf(user.id, LATER), END)
    const news = await Promise.race([notified, sleep(NOTIFICATION_LIMIT, 'barrier')])
    t.ok(news === null || news === user.id, `notified of ${news}`)
    t.match(await here.users.find(user.id), { disabled: true })
  })
}
