/** Contract: an event is stored together with its change, and read newest first (docs/design.md, "Account life cycle"). */
import { v7 as uuidv7 } from 'uuid'
import { newEmailToken } from '#core/accounts/email-token'
import { type AuditEvent, newEvent } from '#core/audit-log/event'
import { type EventFilter, type FollowPage, LOG_START, type LogPosition } from '#core/audit-log/listing'
import type { Storage } from '#core/store/store'
import { freshEmail } from '../../support/build.ts'
import { until } from '../../support/until.ts'
import {
  type Added,
  actingIn,
  add,
  asStored,
  eventOf,
  NOW,
  newUser,
  type Part,
  proofOf,
  removeOld,
  resetBy,
  sessionOf,
  verifiedBy,
} from './fixtures.ts'

const ADMIN = { type: 'adminKey', id: 'abcdef01', ip: '2001:db8::1' } as const
const SYSTEM = { type: 'system', id: null, ip: null } as const

/** The store's result when nothing changed. */
const REFUSALS: ReadonlySet<unknown> = new Set([
  undefined,
  false,
  'userNotFound',
  'accountDisabled',
  'passwordChanged',
  'sessionNotFound',
  'notFound',
  'versionChanged',
  'emailTaken',
  'tooManyMails',
])
const ANY = { revokeSessions: false, invalidateTokens: false, credentialId: null, versions: null }

const list = (storage: Storage, filter: EventFilter, beforeId: string | null = null, limit = 1_000) =>
  storage.events.list({ filter, beforeId, limit })

/** A user with the returned event as the only one. */
const addWithEvent = async (storage: Storage, at = NOW) => {
  const user = newUser()
  const event = newEvent('user.created', SYSTEM, user.id, at)
  await storage.accounts.addUser(user, event, {})
  return { userId: user.id, event }
}

/** Waits until so many events can be followed: other work on the server may hold them back for a while. */
const visible = (storage: Storage, count: number, after: LogPosition | null = null) =>
  until(
    async () => (await storage.events.follow({ filter: {}, after, limit: 1_000 })).events,
    ({ length }) => length >= count,
    20_000,
  )

/** Actions with their events, in an order in which each changes something the first time and nothing the second time. */
const changesOf = async (storage: Storage, { user, session }: Added) => {
  const reset = newEmailToken('passwordReset', user.id, user.email, NOW).stored
  const verification = newEmailToken('verification', user.id, user.email, NOW).stored
  const fresh = newUser()
  const [opened, changed] = [sessionOf(user.id), sessionOf(user.id)]
  const changes: Record<string, (event: AuditEvent) => Promise<unknown>> = {
    addUser: event => storage.accounts.addUser({ ...fresh, id: event.userId }, event, {}),
    'update of a version': event =>
      storage.users.update(user.id, { firstName: 'New' }, event, { ...ANY, versions: [1] }),
    'emailTokens.add': event => storage.emailTokens.add(verification, event, session.id),
    'emailTokens.add, of a reset': event => storage.emailTokens.add(reset, event, session.id),
    confirmEmail: event => storage.emailTokens.confirmEmail(verification, event, proofOf(user)),
    'end of a session': event => storage.sessions.revoke(session.id, event),
    resetPassword: event => resetBy(storage, reset, 'reset', opened, event),
    changePassword: event =>
      storage.accounts.changePassword(changed, actingIn(opened, 'reset'), 'changed', event),
    'update by the user': event =>
      storage.users.update(user.id, { disabled: true }, event, { ...ANY, credentialId: changed.id }),
    remove: event => storage.users.remove(event, null),
  }
  return changes
}

export const events: Part = async (t, open) => {
  const storage = await open(t)

  t.test('an event is returned as it was recorded', async t => {
    const { userId, event } = await addWithEvent(storage)
    const details = { fields: ['firstName', 'é😀'], session: 'one', except: 'other' }
    const recorded = [
      newEvent('user.signed-in', { type: 'user', id: userId, ip: '192.0.2.1' }, userId, NOW, {
        session: 'one',
      }),
      newEvent('user.changed', ADMIN, userId, NOW + 1, details),
      newEvent('sessions.ended', SYSTEM, userId, NOW + 2, {}),
    ]
    for (const event of recorded) await storage.events.record(event)
    t.strictSame(await list(storage, { userId }), [event, ...recorded].toReversed())
  })

  t.test('filters combine, bounds are exclusive, and pages follow one another', async t => {
    const storage = await open(t)
    const added = [await addWithEvent(storage), await addWithEvent(storage)]
    const users = added.map(({ userId }) => userId)
    const types = ['user.changed', 'user.signed-in', 'session.ended'] as const
    const changes = Array.from({ length: 60 }, (_, index) =>
      newEvent(
        types[index % 3] ?? 'user.changed',
        SYSTEM,
        String(users[index % 2]),
        NOW + Math.floor(index / 4),
        { fields: [] },
      ),
    )
    await Promise.all(changes.map(event => storage.events.record(event)))
    const recorded = [...added.map(({ event }) => event), ...changes]
    const newestFirst = recorded.toSorted((one, other) => (one.id < other.id ? 1 : -1))
    t.strictSame(await list(storage, {}), newestFirst)
    const timestamps = [undefined, NOW - 1, NOW, NOW + 7, NOW + 14, NOW + 15]
    for (const userId of [undefined, users[0], uuidv7()])
      for (const type of [undefined, ...types])
        for (const after of timestamps)
          for (const before of timestamps) {
            const filter = {
              ...(userId !== undefined && { userId }),
              ...(type !== undefined && { type }),
              ...(after !== undefined && { after }),
              ...(before !== undefined && { before }),
            }
            const expected = newestFirst.filter(
              event =>
                (userId === undefined || event.userId === userId) &&
                (type === undefined || event.type === type) &&
                (after === undefined || event.at > after) &&
                (before === undefined || event.at < before),
            )
            const first = await list(storage, filter, null, 5)
            const rest = await list(storage, filter, first.at(-1)?.id ?? null)
            const found = first.length < 5 ? first : [...first, ...rest]
            t.strictSame(found, expected, JSON.stringify(filter))
          }
    t.strictSame(await list(storage, {}, uuidv7({ msecs: 0 })), [], 'before the first')
  })

  t.test('events of one instance with equal timestamps keep their order', async t => {
    const { userId, event } = await addWithEvent(storage, NOW - 1)
    const made = Array.from({ length: 50 }, () =>
      newEvent('user.changed', SYSTEM, userId, NOW, { fields: [] }),
    )
    await Promise.all(made.map(event => storage.events.record(event)))
    t.strictSame(await list(storage, { userId }), [event, ...made].toReversed())
  })

  t.test('an event is stored only if its change is made', async t => {
    const added = await add(storage)
    for (const [name, change] of Object.entries(await changesOf(storage, added))) {
      const event = (at: number) =>
        newEvent('user.changed', ADMIN, name === 'addUser' ? uuidv7() : added.user.id, at, { fields: [name] })
      const [first, second] = [event(NOW + 1), event(NOW + 2)]
      t.notOk(REFUSALS.has(await change(first)), `${name}: changes`)
      t.strictSame(
        (await list(storage, { userId: first.userId })).filter(({ id }) => id === first.id),
        [first],
        `${name}: kept`,
      )
      // A token is stored only once, since tokens never repeat.
      if (name.startsWith('emailTokens.add')) continue
      t.ok(REFUSALS.has(await change(second)), `${name}: nothing is left to change`)
      t.strictSame(
        (await list(storage, { userId: second.userId })).filter(({ id }) => id === second.id),
        [],
        `${name}: not kept`,
      )
    }
  })

  t.test('an event is not stored if its change is rejected', async t => {
    const { user, session } = await add(storage)
    const { user: other } = await add(storage)
    const { user: disabled } = await add(storage, { disabled: true })
    const change = newEmailToken('emailChange', user.id, freshEmail('wanted'), NOW).stored
    await storage.emailTokens.add(change, eventOf(user.id), null)
    await add(storage, { email: change.email })
    const unknown = uuidv7()
    const rejections: Record<string, (event: AuditEvent) => Promise<unknown>> = {
      'a taken e-mail': event => storage.users.update(user.id, { email: other.email }, event, ANY),
      'a taken new e-mail': event => storage.emailTokens.confirmEmail(change, event, proofOf(user)),
      'an unknown user': event => storage.users.update(unknown, { firstName: 'x' }, event, ANY),
      'no version': event =>
        storage.users.update(user.id, { firstName: 'x' }, event, { ...ANY, versions: [] }),
      'a wrong hash': event => storage.sessions.open(sessionOf(user.id), verifiedBy('wrong'), event),
      'a disabled user': event => storage.sessions.open(sessionOf(disabled.id), null, event),
      'another user’s session': event => storage.sessions.revoke(session.id, { ...event, userId: other.id }),
      'sessions of an unknown user': event =>
        storage.sessions.revokeAll({ ...event, userId: unknown }, { exceptId: null, onlyEnabled: false }),
      'a removal in a session that has ended': event => storage.users.remove(event, uuidv7()),
      'a disabled user’s own removal': event =>
        storage.users.remove({ ...event, userId: disabled.id }, session.id),
      'a token for an unknown user': event =>
        storage.emailTokens.add({ ...change, digest: 'x', userId: unknown }, event, null),
    }
    for (const [title, rejection] of Object.entries(rejections)) {
      const event = newEvent('user.changed', ADMIN, user.id, NOW + 5, { fields: [] })
      const outcome = await rejection(event)
      t.ok(REFUSALS.has(outcome), `${title}: ${outcome}`)
      t.notOk(
        (await list(storage, {})).some(({ id }) => id === event.id),
        title,
      )
    }
  })

  t.test('a removal is the newest event of its user, whatever the clocks say', async t => {
    const { user } = await add(storage)
    const newest = eventOf(user.id, NOW + 1_000)
    await storage.events.record(newest)
    const removal = newEvent('user.deleted', ADMIN, user.id, NOW + 10)
    t.strictSame(await storage.users.remove(removal, null), { outcomes: {} })
    await storage.events.record(eventOf(user.id, NOW + 2_000))
    const [first, second] = await list(storage, { userId: user.id })
    t.match(first, { type: 'user.deleted', at: NOW + 1_001, actor: ADMIN })
    t.equal(second?.id, newest.id)
    const unmoved = await add(storage)
    const later = newEvent('user.deleted', ADMIN, unmoved.user.id, NOW + 10)
    await storage.users.remove(later, null)
    t.strictSame((await list(storage, { userId: unmoved.user.id }))[0], later)
  })

  t.test('a change is rolled back if its event fails: one transaction', async t => {
    const added = await add(storage)
    const { user, session } = added
    const taken = eventOf(user.id)
    await storage.events.record(taken)
    for (const [name, change] of Object.entries(await changesOf(storage, added))) {
      // An unknown user and unknown tokens cannot be changed, and there is no session that a reset or a new password has opened.
      if (['resetPassword', 'confirmEmail', 'changePassword', 'update by the user'].includes(name)) continue
      await t.rejects(async () => change(taken), name)
    }
    t.strictSame(await storage.sessions.find(session.id), {
      session,
      user: asStored(user),
      userKey: added.userKey,
    })
    t.strictSame(await storage.sessions.list(user.id, NOW, 0, 10), [session])
  })

  t.test('filters, pages and positions agree with a growing log, without duplicates', async t => {
    const storage = await open(t)
    t.strictSame(await storage.events.end(), LOG_START)
    t.strictSame(await storage.events.follow({ filter: {}, after: null, limit: 10 }), {
      events: [],
      positions: [],
      next: LOG_START,
    })
    const recorded: AuditEvent[] = []
    const users: string[] = []
    for (let number = 0; number < 3; number += 1) {
      const { userId, event } = await addWithEvent(storage, NOW + 50)
      users.push(userId)
      recorded.push(event)
    }
    // Timestamps move back and forth, as those of several clocks do.
    for (let number = 0; number < 40; number += 1) {
      const type = number % 4 === 0 ? 'session.ended' : 'user.changed'
      const event = newEvent(type, SYSTEM, String(users[number % 3]), NOW + ((number * 37) % 100), {
        fields: [],
      })
      await storage.events.record(event)
      recorded.push(event)
    }
    await visible(storage, recorded.length)
    for (const userId of [undefined, users[1], uuidv7()])
      for (const type of [undefined, 'session.ended', 'user.deleted'] as const)
        for (const after of [undefined, NOW + 30, NOW + 99])
          for (const before of [undefined, NOW + 60, NOW])
            for (const limit of [1, 5, 1_000]) {
              const filter = {
                ...(userId !== undefined && { userId }),
                ...(type !== undefined && { type }),
                ...(after !== undefined && { after }),
                ...(before !== undefined && { before }),
              }
              const expected = recorded.filter(
                event =>
                  (userId === undefined || event.userId === userId) &&
                  (type === undefined || event.type === type) &&
                  (after === undefined || event.at > after) &&
                  (before === undefined || event.at < before),
              )
              const found: AuditEvent<string | null>[] = []
              let position: LogPosition | null = null
              for (;;) {
                const { events, next }: FollowPage = await storage.events.follow({
                  filter,
                  after: position,
                  limit,
                })
                found.push(...events)
                position = next
                if (events.length < limit) break
              }
              t.strictSame(found, expected, `${JSON.stringify(filter)} limit ${limit}`)
              t.strictSame(position, await storage.events.end(), 'at the end, so that a filter looks once')
            }
  })

  t.test('a position of removed events continues with the remaining ones', async t => {
    const storage = await open(t)
    const { userId } = await addWithEvent(storage, NOW)
    await visible(storage, 1)
    const position = await storage.events.end()
    const later = [eventOf(userId, NOW + 10), eventOf(userId, NOW + 20), eventOf(userId, NOW + 30)]
    for (const event of later) await storage.events.record(event)
    await visible(storage, 3, position)
    await removeOld(storage, 'events', NOW + 20, 100)
    const { events } = await storage.events.follow({ filter: {}, after: position, limit: 10 })
    t.strictSame(events, later.slice(1))
  })

  t.test('every instance reads events of the others', async t => {
    const [storage, there] = [await open(t), await open(t)]
    const { user } = await add(storage)
    const event = eventOf(user.id, NOW + 1)
    await storage.users.update(user.id, { firstName: 'New' }, event, ANY)
    t.strictSame((await list(there, { userId: user.id }))[0], event)
  })
}
