/** Repeated `npm run cli -- copy`: carries over source changes, and keeps newer changes in the target (docs/design.md, "Storage"). */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import t, { type Test } from 'tap'
import { newEmailToken } from '#core/accounts/email-token'
import { newEvent, OPERATOR } from '#core/audit-log/event'
import { openPostgresStorage } from '#core/store/postgres'
import { openSqliteStorage } from '#core/store/sqlite'
import type { Storage } from '#core/store/store'
import { NO_FACTORS } from '#core/users/factors'
import type { UserChanges } from '#core/users/user'
import { allFeatures } from '#features/built-in'
import { openDatabase } from '#storage/sqlite/database'
import {
  type Added,
  actingIn,
  add,
  eventOf,
  NOW,
  removeOld,
  sessionOf,
  userRequests,
  verifiedBy,
} from '../storage/contract/fixtures.ts'
import { accountStatus, build, signUp, temporaryFolder, updateUser } from '../support/build.ts'
import {
  copyHere,
  makeSource,
  runCopy,
  sourceContent,
  sourceEvents,
  targetContent,
  targetEvents,
} from '../support/copy-runs.ts'
import { newDatabase, query } from '../support/postgres.ts'
import { until } from '../support/until.ts'
import { pooledWriter } from '../support/writer-pool.ts'

/** Both stores of a test, after a first copy of `users` users. */
const copied = async (t: Test, users: number) => {
  const file = join(temporaryFolder(t), 'test.db')
  const url = await newDatabase(t)
  const source = await openSqliteStorage(file, allFeatures(), pooledWriter)
  t.teardown(() => source.close())
  const added = await Promise.all(Array.from({ length: users }, () => add(source)))
  await copyHere(file, url)
  const target = await openPostgresStorage(url, 2, allFeatures())
  t.teardown(() => target.close())
  return { file, url, source, target, added }
}

const KEEP = { revokeSessions: false, invalidateTokens: false, credentialId: null, versions: null }
const MOVE = { ...KEEP, invalidateTokens: true }
const END = { revokeSessions: true, invalidateTokens: true, credentialId: null, versions: null }

t.test('changes in the source are carried over, including ended sessions', async t => {
  const { file, url, source, added } = await copied(t, 8)
  const [renamed, disabled, active, one, other, moved, rehashed] = added
  if (!(renamed && disabled && active && one && other && moved && rehashed)) throw new Error('too few')
  const email = (who: Added, email: string) =>
    source.users.update(who.user.id, { email }, eventOf(who.user.id, NOW + 1), MOVE)
  await source.users.update(
    renamed.user.id,
    { firstName: 'Zoë', lastName: null },
    eventOf(renamed.user.id, NOW + 1),
    KEEP,
  )
  await source.users.update(disabled.user.id, { disabled: true }, eventOf(disabled.user.id, NOW + 1), END)
  await source.sessions.open(
    sessionOf(active.user.id),
    verifiedBy(active.user.passwordHash),
    eventOf(sessionOf(active.user.id).userId),
  )
  await source.lastRequests.recordLastRequests(userRequests([{ key: active.userKey, at: NOW + 2 }]), [
    { id: active.session.id, at: NOW + 2 },
  ])
  await email(moved, 'moved@example.com')
  await add(source, { email: moved.user.email })
  await email(one, 'between@example.com')
  await email(other, one.user.email)
  await email(one, other.user.email)
  await source.accounts.rehash(rehashed.user.id, rehashed.user.passwordHash, 'stronger')

  const { added: copies, changed, unchanged, conflicts } = await copyHere(file, url)
  t.strictSame(
    { copies, changed, unchanged, conflicts },
    { copies: 1, changed: 6, unchanged: 2, conflicts: 0 },
  )
  t.strictSame(await targetContent(url), sourceContent(file))
})

t.test('changes in the target are kept, and sessions that ended there stay ended', async t => {
  const { file, url, source, target, added } = await copied(t, 3)
  const [renamed, disabled, active] = added
  if (!(renamed && disabled && active)) throw new Error('too few')
  await target.users.update(renamed.user.id, { firstName: 'Later' }, eventOf(renamed.user.id, NOW + 9), KEEP)
  await target.users.update(disabled.user.id, { disabled: true }, eventOf(disabled.user.id, NOW + 9), END)
  for (const { user } of [renamed, disabled]) {
    await source.users.update(user.id, { firstName: 'Earlier' }, eventOf(user.id, NOW + 8), KEEP)
    await source.sessions.open(
      sessionOf(user.id),
      verifiedBy(user.passwordHash),
      eventOf(sessionOf(user.id).userId),
    )
  }
  const [userKey, at] = [(await target.sessions.find(active.session.id))?.userKey ?? 0, NOW + 9]
  await target.lastRequests.recordLastRequests(userRequests([{ key: userKey, at }]), [
    { id: active.session.id, at },
  ])
  await source.lastRequests.recordLastRequests(userRequests([{ key: active.userKey, at: NOW + 8 }]), [])

  const before = await targetContent(url)
  t.match(await copyHere(file, url), { newerInTarget: 2, unchanged: 1, changed: 0, sessions: 0 })
  t.strictSame(await targetContent(url), before)

  const timestamp = { id: renamed.session.id, at: NOW + 5 }
  await source.lastRequests.recordLastRequests(userRequests([{ key: renamed.userKey, at: NOW + 5 }]), [
    timestamp,
  ])
  await copyHere(file, url)
  const found = await target.sessions.find(renamed.session.id)
  t.match(found, {
    session: { lastRequestAt: NOW + 5 },
    user: { lastRequestAt: NOW + 5, firstName: 'Later' },
  })
})

t.test('rows that were deleted or revoked in the target never return', async t => {
  const { file, url, source, target, added } = await copied(t, 4)
  const [deleted, signedOut, signedOutThenChanged, resetting] = added
  if (!(deleted && signedOut && signedOutThenChanged && resetting)) throw new Error('too few')
  const { stored } = newEmailToken('passwordReset', resetting.user.id, resetting.user.email, NOW)
  await source.emailTokens.add(stored, eventOf(resetting.user.id, NOW, 'password.reset-requested'), null)
  t.match(await copyHere(file, url), { emailTokens: 1, unchanged: 4 })
  t.match(await target.emailTokens.find(stored.digest, NOW), { userId: resetting.user.id })

  await target.users.remove(eventOf(deleted.user.id, NOW + 1, 'user.deleted'), null)
  for (const { user, session } of [signedOut, signedOutThenChanged])
    await target.sessions.revoke(session.id, eventOf(user.id, NOW + 1, 'session.ended'))
  const { id, passwordHash } = resetting.user
  await target.users.update(id, { email: 'new@example.com' }, eventOf(id, NOW + 1), MOVE)
  const change = { firstName: 'Later' }
  for (const { user } of [deleted, signedOutThenChanged])
    await source.users.update(user.id, change, eventOf(user.id, NOW + 2), KEEP)
  await source.users.update(id, change, eventOf(id, NOW + 2), KEEP)
  const opened = sessionOf(id)
  await source.sessions.open(opened, verifiedBy(passwordHash), eventOf(id))

  t.match(await copyHere(file, url), {
    deletedInTarget: 1,
    changed: 2,
    unchanged: 1,
    sessions: 1,
    emailTokens: 0,
  })
  t.equal(await target.users.find(deleted.user.id), undefined)
  for (const { session } of [deleted, signedOut, signedOutThenChanged])
    t.equal(await target.sessions.find(session.id), undefined)
  t.equal(await target.emailTokens.find(stored.digest, NOW), undefined)
  t.match(
    await target.sessions.find(opened.id),
    { user: change },
    'a session that is new in the source is copied',
  )
})

t.test('a reset link of the source ends with a later password of the target', async t => {
  const { file, url, source, target, added } = await copied(t, 1)
  const [{ user, session }] = added as [Added]
  const { stored } = newEmailToken('passwordReset', user.id, user.email, NOW)
  await source.emailTokens.add(stored, eventOf(user.id, NOW, 'password.reset-requested'), null)
  const changed = eventOf(user.id, NOW + 1, 'password.changed')
  const fresh = sessionOf(user.id)
  await target.accounts.changePassword(fresh, actingIn(session, user.passwordHash), 'later', changed)
  t.match(await copyHere(file, url), { newerInTarget: 1, emailTokens: 0 })
  t.equal(await target.emailTokens.find(stored.digest, NOW), undefined)
})

t.test('rows that were deleted or revoked in the source end in the target too', async t => {
  const { file, url, source, target, added } = await copied(t, 5)
  const [deleted, signedOut, allEnded, changedThere, untouched] = added
  if (!(deleted && signedOut && allEnded && changedThere && untouched)) throw new Error('too few')
  const openedThere = sessionOf(allEnded.user.id)
  await target.sessions.open(openedThere, verifiedBy(allEnded.user.passwordHash), eventOf(allEnded.user.id))
  await target.users.update(
    changedThere.user.id,
    { firstName: 'There' },
    eventOf(changedThere.user.id, NOW + 9),
    KEEP,
  )
  await source.users.remove(eventOf(deleted.user.id, NOW + 1, 'user.deleted'), null)
  await source.users.remove(eventOf(changedThere.user.id, NOW + 1, 'user.deleted'), null)
  await source.sessions.revoke(signedOut.session.id, eventOf(signedOut.user.id, NOW + 1, 'session.ended'))
  await source.sessions.revokeAll(eventOf(allEnded.user.id, NOW + 1, 'sessions.ended'), {
    exceptId: null,
    onlyEnabled: false,
  })
  const heir = await add(source, { email: deleted.user.email })

  t.match(await copyHere(file, url), { deletedInSource: 1, added: 1, unchanged: 3, conflicts: 0 })
  t.equal(await target.users.find(deleted.user.id), undefined)
  t.match(await target.users.find(heir.user.id), { email: deleted.user.email })
  t.equal(await target.sessions.find(signedOut.session.id), undefined)
  t.equal(await target.sessions.find(allEnded.session.id), undefined)
  t.ok(await target.sessions.find(openedThere.id), 'a session that was opened in the target stays')
  t.match(
    await target.users.find(changedThere.user.id),
    { firstName: 'There' },
    'who was changed later stays',
  )
  t.ok(await target.sessions.find(untouched.session.id))
})

t.test('rows that the source has used or ended also end in a newer target', async t => {
  const { file, url, source, target, added } = await copied(t, 2)
  const [kept, inConflict] = added
  if (!(kept && inConflict)) throw new Error('too few')
  const { stored } = newEmailToken('passwordReset', kept.user.id, kept.user.email, NOW)
  await source.emailTokens.add(stored, eventOf(kept.user.id, NOW, 'password.reset-requested'), null)
  await copyHere(file, url)
  const mailedThere = newEmailToken('passwordReset', kept.user.id, kept.user.email, NOW + 1).stored
  await target.emailTokens.add(mailedThere, eventOf(kept.user.id, NOW, 'password.reset-requested'), null)
  await target.users.update(kept.user.id, { firstName: 'There' }, eventOf(kept.user.id, NOW + 9), KEEP)
  await source.users.update(kept.user.id, { lastName: 'Here' }, eventOf(kept.user.id, NOW + 5), END)
  await add(target, { email: 'taken@example.com' })
  const { id } = inConflict.user
  await source.users.update(id, { email: 'taken@example.com' }, eventOf(id, NOW + 1), MOVE)
  await source.sessions.revoke(inConflict.session.id, eventOf(id, NOW + 2, 'session.ended'))

  t.match(await copyHere(file, url), { newerInTarget: 1, conflicts: 1 })
  t.equal(await target.emailTokens.find(stored.digest, NOW), undefined)
  t.ok(await target.emailTokens.find(mailedThere.digest, NOW), 'what was mailed by the target stays')
  t.equal(await target.sessions.find(inConflict.session.id), undefined)
})

t.test('a user who was deleted and imported again stays', async t => {
  const { file, url, source, target, added } = await copied(t, 2)
  const [inSource, inTarget] = added
  if (!(inSource && inTarget)) throw new Error('too few')
  const importInto = (storage: typeof source, { user }: Added) =>
    storage.bulkUsers.importUsers(
      [{ ...user, hasPassword: true, factors: NO_FACTORS, lastRequestAt: null, version: 1 }],
      [eventOf(user.id, NOW + 2)],
      [],
    )
  for (const { user } of added) await source.users.remove(eventOf(user.id, NOW + 1, 'user.deleted'), null)
  await importInto(source, inSource)
  t.match(await copyHere(file, url), { unchanged: 1, deletedInSource: 1 })
  await importInto(target, inTarget)
  t.match(await copyHere(file, url), { unchanged: 1, deletedInSource: 0 })
  for (const { user } of added) t.ok(await target.users.find(user.id))
  const deletions = { filter: { type: 'user.deleted' }, beforeId: null, limit: 100 } as const
  const events = await target.events.list(deletions)
  t.strictSame(
    events.map(({ userId }) => userId),
    [inTarget.user.id],
    'of users that the copy deleted',
  )
})

t.test('a password that was rehashed in the target ends no session there', async t => {
  const { file, url, target, added } = await copied(t, 1)
  const { user } = added[0] as Added
  await target.accounts.rehash(user.id, user.passwordHash, 'stronger')
  const opened = sessionOf(user.id)
  await target.sessions.open(opened, verifiedBy('stronger'), eventOf(user.id, NOW, 'user.signed-in'))
  await copyHere(file, url)
  t.ok(await target.sessions.find(opened.id))
})

/** Connections of the database that wait for a lock. */
const WAITING = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`

t.test('a copy and a concurrent deletion lock users in the same order', async t => {
  const { file, url, source, target, added } = await copied(t, 1)
  const { user, session } = added[0] as Added
  await source.users.update(user.id, { firstName: 'Here' }, eventOf(user.id, NOW + 9), KEEP)
  const holder = new pg.Client({ connectionString: url })
  await holder.connect()
  t.teardown(() => holder.end())
  // Pauses the removal between locking the user and its writes.
  await holder.query('BEGIN')
  await holder.query('SELECT id FROM sessions WHERE id = $1 FOR UPDATE', [session.id])
  const waiting = (count: number) =>
    until(
      () => query(url, WAITING),
      ({ length }) => length >= count,
      5_000,
    )
  const removal = target.users.remove(eventOf(user.id, NOW + 10, 'user.deleted'), null)
  await waiting(1)
  const copying = copyHere(file, url)
  await waiting(2)
  await holder.query('COMMIT')
  t.strictSame(await removal, { outcomes: {} })
  t.match(await copying, { deletedInTarget: 1, complete: true })
})

t.test('a later change in the source does not undo a disabling or a new password in the target', async t => {
  const { file, url, source, target, added } = await copied(t, 3)
  const [disabled, changed, enabled] = added
  if (!(disabled && changed && enabled)) throw new Error('too few')
  await target.users.update(
    disabled.user.id,
    { disabled: true },
    eventOf(disabled.user.id, NOW + 8, 'user.disabled'),
    END,
  )
  const fresh = sessionOf(changed.user.id)
  const { id, passwordHash } = changed.user
  await target.accounts.changePassword(
    fresh,
    actingIn(changed.session, passwordHash),
    'another',
    eventOf(id, NOW + 8, 'password.changed'),
  )
  for (const user of [disabled, changed, enabled].map(({ user }) => user)) {
    await source.users.update(user.id, { firstName: 'Renamed' }, eventOf(user.id, NOW + 9), KEEP)
    await source.sessions.open(sessionOf(user.id), verifiedBy(user.passwordHash), eventOf(user.id))
  }
  t.match(await copyHere(file, url), { changed: 3 })
  t.match(await target.users.find(disabled.user.id), { firstName: 'Renamed', disabled: true })
  t.match(await target.users.findByEmail(changed.user.email), {
    user: { firstName: 'Renamed' },
    passwordHash: 'another',
  })
  t.ok(await target.sessions.find(fresh.id), 'the session of the new password stays')
  for (const { user } of [disabled, changed]) {
    const sessions = await target.sessions.list(user.id, NOW, 0, 10)
    t.equal(sessions.length, user === changed.user ? 1 : 0, 'no session of the old password comes')
  }
  for (const [at, type] of [
    [NOW + 10, 'user.disabled'],
    [NOW + 11, 'user.enabled'],
  ] as const) {
    const change = { disabled: type === 'user.disabled' }
    await source.users.update(disabled.user.id, change, eventOf(disabled.user.id, at, type), KEEP)
  }
  await copyHere(file, url)
  t.match(await target.users.find(disabled.user.id), { disabled: false }, 'enabled later in the source')
})

t.test('roles and metadata are copied, and roles that the target took later do not return', async t => {
  const { file, url, source, target, added } = await copied(t, 3)
  const [plain, promoted, demoted] = added
  if (!(plain && promoted && demoted)) throw new Error('too few')
  const changed = (id: string, at: number, changes: UserChanges) =>
    newEvent('user.changed', OPERATOR, id, at, { fields: Object.keys(changes) })
  const change = (store: Storage, { user: { id } }: Added, at: number, changes: UserChanges) =>
    store.users.update(id, changes, changed(id, at, changes), KEEP)
  const record = { roles: ['editor', 'reader'], userMetadata: { ü: ['"', 1] }, appMetadata: { plan: 'pro' } }
  await change(source, promoted, NOW + 1, record)
  await change(source, demoted, NOW + 1, { roles: ['chief'] })
  await add(source, { roles: ['new'], userMetadata: { a: 1 } })
  t.match(await copyHere(file, url), { added: 1, changed: 2, unchanged: 1 })
  t.strictSame(await targetContent(url), sourceContent(file))
  t.match(await copyHere(file, url), { added: 0, changed: 0, unchanged: 4 })
  t.match(await target.users.find(promoted.user.id), record)
  t.equal(await target.users.count({ role: 'editor' }), 1)

  await change(target, demoted, NOW + 8, { roles: [] })
  await change(source, demoted, NOW + 9, { firstName: 'Renamed' })
  await change(source, promoted, NOW + 9, { roles: [] })
  await copyHere(file, url)
  t.match(await target.users.find(demoted.user.id), { firstName: 'Renamed', roles: [] })
  t.match(await target.users.find(promoted.user.id), { ...record, roles: [] })
  t.equal(await target.users.count({ role: 'chief' }), 0)
  await change(source, demoted, NOW + 10, { roles: [] })
  await change(source, demoted, NOW + 10, { roles: ['chief'] })
  await copyHere(file, url)
  t.match(await target.users.find(demoted.user.id), { roles: ['chief'] }, 'changed later in the source')
  t.equal(await target.users.count({ role: 'chief' }), 1)
  await source.users.remove(eventOf(promoted.user.id, NOW + 11, 'user.deleted'), null)
  await copyHere(file, url)
  t.strictSame(await target.users.find(promoted.user.id), undefined)
})

t.test('the audit log is copied once, and erased addresses stay erased', async t => {
  const { file, url, source, target, added } = await copied(t, 3)
  const [deletedHere, deletedThere, other] = added
  if (!(deletedHere && deletedThere && other)) throw new Error('too few')
  t.strictSame(await targetEvents(url), sourceEvents(file))

  await target.users.remove(eventOf(deletedThere.user.id, NOW + 1, 'user.deleted'), null)
  await source.users.update(
    deletedThere.user.id,
    { firstName: 'Grace' },
    eventOf(deletedThere.user.id, NOW + 2),
    KEEP,
  )
  await source.users.remove(eventOf(deletedHere.user.id, NOW + 1, 'user.deleted'), null)
  t.match(await copyHere(file, url), { events: 2, deletedInSource: 1, deletedInTarget: 1 })
  const events = await target.events.list({ filter: {}, beforeId: null, limit: 100 })
  for (const { userId, actor } of events)
    t.equal(
      actor.ip,
      userId === other.user.id ? '192.0.2.1' : null,
      'of no user who was deleted on either side',
    )

  await removeOld(target, 'events', NOW + 86_400_000, 100)
  t.match(await copyHere(file, url), { events: 0 })
  t.strictSame(await targetEvents(url), [], 'what was too old in the target does not come back')
})

t.test('an e-mail that another user of the target has is reported, and all others are copied', async t => {
  const { file, url, source, target, added } = await copied(t, 2)
  const holder = await add(target, { email: 'taken@example.com' })
  const rejected = await add(source, { email: 'taken@example.com' })
  await source.users.update(
    added[0]?.user.id ?? '',
    { email: 'free@example.com' },
    eventOf(added[0]?.user.id ?? '', NOW + 1),
    KEEP,
  )
  const next = await add(source)
  const { code, stdout, stderr } = await runCopy(file, url).ended
  t.equal(code, 1)
  const lines = [
    '1 +copied',
    '1 +changed since and copied again',
    '1 +unchanged',
    '0 .*',
    '0 .*',
    '1 +in conflict',
  ]
  t.match(stdout, new RegExp(`^4 users in the source:\n  ${lines.join('\n  ')}\n`))
  const { id } = holder.user
  t.match(stderr, `User ${rejected.user.id} was left out: user ${id} of the target has the same e-mail\n`)
  t.equal(await target.users.find(rejected.user.id), undefined)
  t.match(await target.users.find(next.user.id), { email: next.user.email })
})

t.test(
  'an e-mail that moves between users of different slices is no conflict, with many sessions',
  async t => {
    const file = join(temporaryFolder(t), 'test.db')
    const url = await newDatabase(t)
    await makeSource(file, 2_001)
    await copyHere(file, url)
    const db = openDatabase(file, 1_000)
    db.exec(`UPDATE users SET email = 'new@example.com', updated_at = 2 WHERE email = 'user2000@example.com';
    UPDATE users SET email = 'user2000@example.com', updated_at = 2 WHERE email = 'user0@example.com';
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 11000)
    INSERT INTO sessions (id, user_key, created_at, expires_at, last_request_at)
    SELECT 'session ' || i, (SELECT min(key) FROM users), i, i, i FROM n`)
    db.close()
    t.match(await copyHere(file, url), { changed: 2, unchanged: 1_999, conflicts: 0, complete: true })
    t.strictSame(await targetContent(url), sourceContent(file))
  },
)

t.test('a copy invalidates the caches of instances that serve the target', async t => {
  const file = join(temporaryFolder(t), 'test.db')
  const url = await newDatabase(t)
  const source = await build(t, { env: { DATABASE_URL: `sqlite:${file}` } })
  const { id, token } = await signUp(source)
  await copyHere(file, url)
  const target = await build(t, { env: { DATABASE_URL: url } })
  t.equal(await accountStatus(target, token), 200)
  await updateUser(source, id, { disabled: true })
  await copyHere(file, url)
  for (let tries = 0; tries < 40 && (await accountStatus(target, token)) === 200; tries += 1) await sleep(50)
  t.equal(await accountStatus(target, token), 401)
})
