/** Contract: users are removed completely, once, with a notification; versions count changes (docs/design.md, "Account life cycle"). */
import { setTimeout as sleep } from 'node:timers/promises'
import { v7 as uuidv7 } from 'uuid'
import { newEmailToken } from '#core/accounts/email-token'
import { newEvent } from '#core/audit-log/event'
import type { Session } from '#core/auth/session'
import type { Storage } from '#core/store/store'
import type { NewUser } from '#core/users/user'
import { freshEmail } from '../../support/build.ts'
import {
  type Added,
  actingIn,
  add,
  asStored,
  eventOf,
  NOTIFICATION_LIMIT,
  NOW,
  newUser,
  onChange,
  type Part,
  proofOf,
  resetBy,
  sessionOf,
  userRequests,
  verifiedBy,
} from './fixtures.ts'

const ANY = { revokeSessions: false, invalidateTokens: false, credentialId: null, versions: null }
const LATER = NOW + 1_000

const ADMIN = { type: 'adminKey', id: 'abcdef01', ip: '192.0.2.9' } as const

export const removal: Part = async (t, open) => {
  const storage = await open(t)
  const removed = (userId: string) => newEvent('user.deleted', ADMIN, userId, LATER)
  const addressesOf = async (userId: string, store = storage) =>
    (await store.events.list({ filter: { userId }, beforeId: null, limit: 100 })).map(
      ({ actor }) => `${actor.type} ${actor.ip}`,
    )

  t.test('a user is removed with sessions, tokens and e-mail, once; others are unaffected', async t => {
    const { user, session } = await add(storage)
    const other = await add(storage)
    const token = newEmailToken('verification', user.id, user.email, NOW).stored
    await storage.emailTokens.add(token, eventOf(user.id), null)
    t.strictSame(await storage.users.remove(removed(user.id), null), { outcomes: {} })
    t.equal(await storage.users.find(user.id), undefined)
    t.equal(await storage.users.findByEmail(user.email), undefined)
    t.equal(await storage.sessions.find(session.id), undefined)
    t.strictSame(await storage.sessions.list(user.id, NOW, 0, 10), [])
    t.equal(await storage.emailTokens.find(token.digest, NOW), undefined)
    t.equal(await storage.emailTokens.confirmEmail(token, eventOf(user.id), proofOf(user)), 'notFound')
    t.equal(await storage.sessions.open(sessionOf(user.id), null, eventOf(user.id)), 'userNotFound')
    t.equal(await storage.users.update(user.id, { firstName: 'x' }, eventOf(user.id), ANY), 'userNotFound')
    t.equal(await storage.users.remove(removed(user.id), null), 'userNotFound', 'once')
    t.equal(await storage.users.remove(removed(uuidv7()), null), 'userNotFound', 'an unknown user')
    t.strictSame((await storage.sessions.find(other.session.id))?.user, asStored(other.user))
    await t.resolves(add(storage, { email: user.email }), 'the e-mail is free')
  })

  t.test('a removal in a session requires it and an enabled user; without one, nothing', async t => {
    const { user, session } = await add(storage)
    const { user: disabled, session: former } = await add(storage, { disabled: true })
    const remove = ({ id }: NewUser, session: Session) => storage.users.remove(eventOf(id), session.id)
    t.equal(await remove(disabled, former), 'accountDisabled')
    t.equal(await remove(user, former), 'sessionNotFound')
    t.ok(await storage.sessions.find(session.id))
    t.strictSame(await remove(user, session), { outcomes: {} })
    t.strictSame(await storage.users.remove(removed(disabled.id), null), { outcomes: {} })
  })

  t.test('addresses in events of the user are erased, but not those of administrators', async t => {
    const { user } = await add(storage)
    const { user: other } = await add(storage)
    await storage.users.update(
      user.id,
      { lastName: 'x' },
      newEvent('user.changed', ADMIN, user.id, NOW + 1, { fields: ['lastName'] }),
      ANY,
    )
    t.strictSame(await addressesOf(user.id), ['adminKey 192.0.2.9', 'user 192.0.2.1'])
    await storage.users.remove(eventOf(user.id, LATER, 'user.deleted'), null)
    t.strictSame(await addressesOf(user.id), ['user null', 'adminKey 192.0.2.9', 'user null'])
    t.strictSame(await addressesOf(other.id), ['user 192.0.2.1'])
  })

  t.test('of a hundred concurrent removals on two instances exactly one removes', async t => {
    const [storage, there] = [await open(t), await open(t)]
    const { user, session } = await add(storage)
    const outcomes = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        (index % 2 ? storage : there).users.remove(removed(user.id), index % 3 ? null : session.id),
      ),
    )
    t.ok(outcomes.every(outcome => typeof outcome === 'object' || outcome === 'userNotFound'))
    t.equal(outcomes.filter(outcome => typeof outcome === 'object').length, 1)
    t.strictSame(await addressesOf(user.id, there), ['adminKey 192.0.2.9', 'user null'], 'one event')
  })

  t.test('no concurrent write survives a removal', async t => {
    const [storage, there] = [await open(t), await open(t)]
    for (let round = 0; round < 20; round += 1) {
      const { user, session, userKey } = await add(storage)
      const late = sessionOf(user.id)
      const token = newEmailToken('passwordReset', user.id, user.email, NOW).stored
      const fresh = sessionOf(user.id)
      await storage.emailTokens.add(token, eventOf(user.id), null)
      await Promise.all([
        there.sessions.open(late, verifiedBy(user.passwordHash), eventOf(user.id)),
        resetBy(there, token, 'new', fresh, eventOf(user.id)),
        there.users.update(user.id, { firstName: 'x' }, eventOf(user.id), ANY),
        storage.users.remove(removed(user.id), null),
        storage.lastRequests.recordLastRequests(userRequests([{ key: userKey, at: LATER }]), [
          { id: session.id, at: LATER },
        ]),
      ])
      for (const { id } of [session, late, fresh]) t.equal(await storage.sessions.find(id), undefined)
      t.equal(await storage.users.find(user.id), undefined, `round ${round}`)
    }
  })

  t.test('the key of a removed user is not reused, and late last requests are ignored', async t => {
    const gone = await add(storage)
    await storage.users.remove(removed(gone.user.id), null)
    const next = await add(storage)
    t.not(next.userKey, gone.userKey)
    const late = [{ key: gone.userKey, at: LATER }]
    await t.resolves(
      storage.lastRequests.recordLastRequests(userRequests(late), [{ id: gone.session.id, at: LATER }]),
    )
    t.equal((await storage.users.find(next.user.id))?.lastRequestAt, null)
  })

  t.test('changes by an e-mail token and removals are notified here and elsewhere', async t => {
    const [here, there] = [await open(t), await open(t)]
    const mailed = async ({ user }: Added, purpose: 'emailChange' | 'passwordReset' | 'verification') => {
      const email = purpose === 'emailChange' ? freshEmail() : user.email
      const token = newEmailToken(purpose, user.id, email, NOW).stored
      await here.emailTokens.add(token, eventOf(user.id), null)
      return token
    }
    const deeds: Record<string, (added: Added) => Promise<() => Promise<unknown>>> = {
      verification: async added => {
        const token = await mailed(added, 'verification')
        return () => here.emailTokens.confirmEmail(token, eventOf(added.user.id), proofOf(added.user))
      },
      emailChange: async added => {
        const token = await mailed(added, 'emailChange')
        return () => here.emailTokens.confirmEmail(token, eventOf(added.user.id), proofOf(added.user))
      },
      passwordReset: async added => {
        const token = await mailed(added, 'passwordReset')
        const { id } = added.user
        return () => resetBy(here, token, 'new', sessionOf(id), eventOf(id))
      },
      removal: async ({ user, session }) => {
        return () => here.users.remove(removed(user.id), session.id)
      },
    }
    for (const [name, prepare] of Object.entries(deeds)) {
      const added = await add(here)
      const deed = await prepare(added)
      // Notifications of the preparation come first.
      await sleep(NOTIFICATION_LIMIT)
      let notifiedHere = false
      onChange(here, userId => {
        notifiedHere ||= userId === added.user.id
      })
      const { promise: notifiedElsewhere, resolve } = Promise.withResolvers<string | null>()
      onChange(there, resolve)
      t.not(typeof (await deed()), 'undefined', name)
      t.ok(notifiedHere, `${name}: here, before it is acknowledged`)
      const news = await Promise.race([notifiedElsewhere, sleep(NOTIFICATION_LIMIT, 'timeout')])
      t.ok(news === null || news === added.user.id, `${name}: elsewhere, notified of ${news}`)
    }
  })

  t.test('every change increments the version; rehashes, sessions and last requests do not', async t => {
    const { user, session, userKey } = await add(storage)
    const { id, email } = user
    const version = async () => (await storage.users.find(id))?.version
    const token = newEmailToken('verification', id, email, NOW).stored
    const open = (session: Session) => storage.sessions.open(session, null, eventOf(id))
    const steps: [string, number, (store: Storage) => Promise<unknown>][] = [
      ['a name', 1, store => store.users.update(id, { firstName: 'x' }, eventOf(id), ANY)],
      ['the same name', 0, store => store.users.update(id, { firstName: 'x' }, eventOf(id), ANY)],
      ['a session', 0, () => open(sessionOf(id))],
      [
        'its end',
        0,
        store => store.sessions.revokeAll(eventOf(id), { exceptId: session.id, onlyEnabled: true }),
      ],
      [
        'a last request',
        0,
        s => s.lastRequests.recordLastRequests(userRequests([{ key: userKey, at: LATER }]), []),
      ],
      ['a stronger hash', 0, store => store.accounts.rehash(id, user.passwordHash, 'stronger')],
      ['a token', 0, store => store.emailTokens.add(token, eventOf(id), null)],
      [
        'its use',
        1,
        store => store.emailTokens.confirmEmail(token, eventOf(id), proofOf({ passwordHash: 'stronger' })),
      ],
      [
        'a password',
        1,
        store =>
          store.accounts.changePassword(sessionOf(id), actingIn(session, 'stronger'), 'new', eventOf(id)),
      ],
      ['a refusal', 0, store => store.users.update(id, {}, eventOf(id), { ...ANY, versions: [1] })],
    ]
    let expected = 1
    t.equal(await version(), expected)
    for (const [title, counts, step] of steps) {
      await step(storage)
      expected += counts
      t.equal(await version(), expected, title)
    }
  })

  t.test(
    'a change applies only to the given versions; of a hundred concurrent changes one is made',
    async t => {
      const [storage, there] = [await open(t), await open(t)]
      const { user } = await add(storage)
      const update = (store: Storage, versions: readonly number[] | null, firstName: string) =>
        store.users.update(user.id, { firstName }, eventOf(user.id), { ...ANY, versions })
      for (const versions of [[], [2], [0, 2, 3], [-1], [Number.MAX_SAFE_INTEGER]])
        t.equal(await update(storage, versions, 'lost'), 'versionChanged', `${versions}`)
      t.strictSame(await storage.users.find(user.id), asStored(user))
      t.match(await update(storage, [7, 1, 3], 'second'), { version: 2, firstName: 'second' })
      t.match(await update(storage, null, 'third'), { version: 3 })
      const outcomes = await Promise.all(
        Array.from({ length: 100 }, (_, index) => update(index % 2 ? storage : there, [3], `of ${index}`)),
      )
      t.equal(outcomes.filter(outcome => outcome !== 'versionChanged').length, 1)
      const winner = outcomes.findIndex(outcome => outcome !== 'versionChanged')
      t.match(await storage.users.find(user.id), { version: 4, firstName: `of ${winner}` })
      const unknown = newUser()
      const options = { ...ANY, versions: [1] }
      t.equal(await storage.users.update(unknown.id, {}, eventOf(unknown.id), options), 'userNotFound')
    },
  )
}
