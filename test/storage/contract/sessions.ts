/** Contract: sessions are listed, ended one by one or together, and replaced with a password, with notifications. */
import { setTimeout as sleep } from 'node:timers/promises'
import { v7 as uuidv7 } from 'uuid'
import { networkDigest } from '#core/rate-limits/known-networks'
import type { Storage, VerifiedState } from '#core/store/store'
import { type Factor, NO_FACTORS } from '#core/users/factors'
import {
  actingIn,
  add,
  DAY,
  eventOf,
  NOTIFICATION_LIMIT,
  NOW,
  newUser,
  onChange,
  type Part,
  removeOld,
  sessionOf,
  verifiedBy,
} from './fixtures.ts'

const LIMIT = 1_000

const openMore = async (storage: Storage, userId: string, passwordHash: string, count: number) => {
  const sessions = Array.from({ length: count }, (_, index) =>
    sessionOf(userId, { createdAt: NOW + index + 1, lastRequestAt: NOW + index + 1 }),
  )
  for (const session of sessions)
    await storage.sessions.open(session, verifiedBy(passwordHash), eventOf(session.userId))
  return sessions
}

/** Adds a user who has factors. */
const addWith = async (storage: Storage, factors: readonly Factor[]) => {
  const user = { ...newUser(), hasPassword: true, factors, lastRequestAt: null, version: 1 }
  const [imported] = await storage.bulkUsers.importUsers([user], [eventOf(user.id)], [])
  if (imported?.status !== 'created') throw new Error(`${user.email} is taken`)
  return user
}

const FACTORS: readonly (readonly Factor[])[] = [NO_FACTORS, ['passkey'], ['totp'], ['passkey', 'totp']]

export const sessions: Part = async (t, open) => {
  const storage = await open(t)
  const idsOf = async (userId: string, now = NOW, idleSince = 0, limit = LIMIT): Promise<string[]> =>
    (await storage.sessions.list(userId, now, idleSince, limit)).map(({ id }) => id)

  t.test('a list has the valid sessions of one user, newest first, unchanged', async t => {
    const { user, session } = await add(storage)
    await add(storage)
    const more = await openMore(storage, user.id, user.passwordHash, 3)
    const all = [...more.toReversed(), session]
    t.strictSame(await storage.sessions.list(user.id, NOW, 0, LIMIT), all)
    t.strictSame(
      await idsOf(user.id, NOW, 0, 2),
      all.slice(0, 2).map(({ id }) => id),
    )
    t.strictSame(
      await idsOf(user.id, NOW, NOW + 1),
      all.slice(0, 2).map(({ id }) => id),
      'idle since then',
    )
    t.strictSame(await idsOf(user.id, session.expiresAt), [], 'past their end')
    t.strictSame(await idsOf(uuidv7()), [])
  })

  t.test('a session is opened only for the factors and the hash that were verified', async t => {
    for (const factors of FACTORS) {
      const { id, passwordHash } = await addWith(storage, factors)
      const opening = (verified: VerifiedState | null) =>
        storage.sessions.open(sessionOf(id), verified, eventOf(id, NOW, 'user.signed-in'))
      for (const stale of FACTORS.filter(each => each !== factors))
        t.equal(
          await opening({ passwordHash, factors: stale }),
          'passwordChanged',
          `${factors}, not ${stale}`,
        )
      t.equal(await opening({ passwordHash: 'another hash', factors }), 'passwordChanged')
      t.strictSame(await idsOf(id), [], 'none is open')
      const filter = { userId: id, type: 'user.signed-in' }
      t.strictSame(await storage.events.list({ filter, beforeId: null, limit: 10 }), [], 'none is recorded')
      t.equal(await opening({ passwordHash, factors: factors.toReversed() }), 'opened', 'in any order')
      t.equal(await opening(null), 'opened', 'nothing to verify')
      t.equal((await idsOf(id)).length, 2)
    }
  })

  t.test('the newest ten networks of a user are known, also without a session', async t => {
    const { user } = await add(storage)
    const { user: other } = await add(storage)
    const digestOf = (ip: string) => String(networkDigest(user.id, ip))
    const isKnown = (ip: string, since = 0) => storage.sessions.isKnownNetwork(digestOf(ip), since)
    const openFrom = (ip: string | null, at: number, impersonatedBy: string | null = null) => {
      const session = sessionOf(user.id, { ip, createdAt: at, impersonatedBy })
      return storage.sessions.open(session, null, eventOf(user.id, at))
    }
    t.equal(await isKnown('192.0.2.1'), true, 'of the sign-up')
    await openFrom('192.0.2.2', NOW + 1, 'an admin key')
    t.equal(await isKnown('192.0.2.2'), false, 'an impersonation is no sign-in')
    await openFrom(null, NOW + 1)
    await openFrom('2001:db8::1', NOW + 2)
    t.equal(await isKnown('2001:db8::2'), true, 'the same /64')
    await storage.sessions.revokeAll(eventOf(user.id), { exceptId: null, onlyEnabled: true })
    t.equal(await isKnown('192.0.2.1'), true)

    await openFrom('192.0.2.1', NOW + DAY - 1)
    t.equal(await isKnown('192.0.2.1', NOW), false, 'written at most once a day')
    await openFrom('192.0.2.1', NOW + DAY)
    t.equal(await isKnown('192.0.2.1', NOW + DAY - 1), true)

    for (let host = 1; host <= 9; host += 1) await openFrom(`198.51.100.${host}`, NOW + 2 * DAY + host)
    t.strictSame(
      [await isKnown('192.0.2.1'), await isKnown('2001:db8::1')],
      [true, false],
      'of eleven the oldest ends',
    )
    await openFrom('198.51.100.10', NOW + 3 * DAY)
    t.strictSame([await isKnown('192.0.2.1'), await isKnown('198.51.100.1')], [false, true])

    const others = String(networkDigest(other.id, '192.0.2.1'))
    t.equal(await storage.sessions.isKnownNetwork(others, 0), true, 'of each user apart')
    t.equal(await removeOld(storage, 'known_networks', NOW + 2 * DAY + 5, 100), false)
    t.strictSame([await isKnown('198.51.100.4'), await isKnown('198.51.100.5')], [false, true])
    t.equal(await storage.sessions.isKnownNetwork(others, 0), false)

    const acting = sessionOf(user.id, { createdAt: NOW + 4 * DAY })
    await storage.sessions.open(acting, null, eventOf(user.id))
    const session = sessionOf(user.id, { ip: '198.51.100.5', createdAt: NOW + 4 * DAY })
    await storage.accounts.changePassword(
      session,
      actingIn(acting, user.passwordHash),
      'new',
      eventOf(user.id),
    )
    t.strictSame([await isKnown('198.51.100.5'), await isKnown('198.51.100.6')], [true, false])
    await storage.users.remove(eventOf(user.id, NOW, 'user.deleted'), null)
    t.equal(await isKnown('198.51.100.5'), false)
  })

  t.test('a session is ended only by its user, once', async t => {
    const { user, session } = await add(storage)
    const otherUser = await add(storage)
    t.equal(await storage.sessions.revoke(session.id, eventOf(otherUser.user.id)), 'sessionNotFound')
    t.ok(await storage.sessions.find(session.id))
    t.equal(await storage.sessions.revoke(session.id, eventOf(user.id)), 'revoked')
    t.equal(await storage.sessions.find(session.id), undefined)
    t.equal(await storage.sessions.revoke(session.id, eventOf(user.id)), 'sessionNotFound')
    t.ok(await storage.sessions.find(otherUser.session.id))
  })

  t.test('all sessions of a user are ended, except one', async t => {
    const { user, session } = await add(storage)
    const otherUser = await add(storage)
    await openMore(storage, user.id, user.passwordHash, 5)
    t.equal(
      await storage.sessions.revokeAll(eventOf(user.id), { exceptId: session.id, onlyEnabled: true }),
      'revoked',
    )
    t.strictSame(await idsOf(user.id), [session.id])
    t.equal(
      await storage.sessions.revokeAll(eventOf(user.id), { exceptId: null, onlyEnabled: true }),
      'revoked',
    )
    t.strictSame(await idsOf(user.id), [])
    t.equal(
      await storage.sessions.revokeAll(eventOf(uuidv7()), { exceptId: null, onlyEnabled: false }),
      'userNotFound',
    )
    const disabled = await add(storage, { disabled: true })
    t.equal(
      await storage.sessions.revokeAll(eventOf(disabled.user.id), { exceptId: null, onlyEnabled: true }),
      'accountDisabled',
    )
    t.equal(await storage.sessions.revoke(disabled.session.id, eventOf(disabled.user.id)), 'accountDisabled')
    t.equal(await storage.sessions.revoke(uuidv7(), eventOf(uuidv7())), 'userNotFound')
    t.strictSame(await idsOf(disabled.user.id), [disabled.session.id])
    t.equal(
      await storage.sessions.revokeAll(eventOf(disabled.user.id), { exceptId: null, onlyEnabled: false }),
      'revoked',
    )
    t.strictSame(await idsOf(otherUser.user.id), [otherUser.session.id])
  })

  t.test('a new password leaves one session, and requires the verified one and an enabled user', async t => {
    const { user, session } = await add(storage)
    const fresh = sessionOf(user.id, { createdAt: NOW + 9 })
    t.equal(
      await storage.accounts.changePassword(
        fresh,
        actingIn(session, 'another hash'),
        'new hash',
        eventOf(fresh.userId, fresh.createdAt),
      ),
      'passwordChanged',
    )
    t.strictSame(await idsOf(user.id), [session.id], 'nothing has changed')
    const changed = await storage.accounts.changePassword(
      fresh,
      actingIn(session, user.passwordHash),
      'new hash',
      eventOf(fresh.userId, fresh.createdAt),
    )
    t.match(changed, { id: user.id, updatedAt: NOW + 9 })
    t.strictSame(await storage.sessions.list(user.id, NOW, 0, LIMIT), [fresh])
    t.equal((await storage.users.findByEmail(user.email))?.passwordHash, 'new hash')
    await storage.users.update(user.id, { disabled: true }, eventOf(user.id, NOW), {
      revokeSessions: true,
      invalidateTokens: false,
      credentialId: null,
      versions: null,
    })
    t.equal(
      await storage.accounts.changePassword(
        sessionOf(user.id),
        actingIn(fresh, 'new hash'),
        'newer',
        eventOf(sessionOf(user.id).userId, sessionOf(user.id).createdAt),
      ),
      'accountDisabled',
    )
    t.strictSame(await idsOf(user.id), [])
  })

  t.test(
    'every end of a session is notified here before its promise resolves, and elsewhere within a second',
    async t => {
      const [here, there] = [await open(t), await open(t)]
      const ends: Record<string, (userId: string, hash: string, id: string) => Promise<unknown>> = {
        revoke: (userId, _hash, id) => here.sessions.revoke(id, eventOf(userId)),
        revokeAll: userId => here.sessions.revokeAll(eventOf(userId), { exceptId: null, onlyEnabled: true }),
        changePassword: (userId, passwordHash, id) =>
          here.accounts.changePassword(
            sessionOf(userId),
            actingIn({ id }, passwordHash),
            'new',
            eventOf(sessionOf(userId).userId, sessionOf(userId).createdAt),
          ),
      }
      for (const [name, end] of Object.entries(ends)) {
        const { user, session } = await add(here)
        // The notification about the added user comes first.
        await sleep(NOTIFICATION_LIMIT)
        let notifiedHere = false
        onChange(here, userId => {
          notifiedHere ||= userId === user.id
        })
        const { promise: notifiedElsewhere, resolve } = Promise.withResolvers<string | null>()
        onChange(there, resolve)
        await end(user.id, user.passwordHash, session.id)
        t.ok(notifiedHere, `${name}: here`)
        const news = await Promise.race([notifiedElsewhere, sleep(NOTIFICATION_LIMIT, 'timeout')])
        t.ok(news === null || news === user.id, `${name}: elsewhere, notified of ${news}`)
        t.equal(await there.sessions.find(session.id), undefined)
      }
    },
  )
}
