/** Contract: many users are imported at a time, each if possible, and exported in order of creation. */
import { v7 as uuidv7 } from 'uuid'
import type { ImportedRow, Storage } from '#core/store/store'
import { NO_FACTORS } from '#core/users/factors'
import type { UserWithHash } from '#core/users/user'
import { type PasskeyStore, passkeyRow, storedPasskeys } from '#features/passkeys/stored-passkeys'
import { confirmedTotpRow, recoveryCodeRow, storedTotp, type TotpStore } from '#features/totp/stored-totp'
import { add, eventOf, NOW, newUser, type Part, sessionOf, userRequests, verifiedBy } from './fixtures.ts'

/** A user with a password, as an export has one. */
type PortableUser = UserWithHash & { readonly passwordHash: string }

const portable = (fields: Partial<PortableUser> = {}): PortableUser => ({
  ...newUser(),
  hasPassword: true,
  factors: NO_FACTORS,
  lastRequestAt: null,
  version: 1,
  ...fields,
})

const importUsers = (storage: Storage, users: readonly UserWithHash[], rows: readonly ImportedRow[] = []) =>
  storage.bulkUsers.importUsers(
    users,
    users.map(({ id }) => eventOf(id, NOW, 'user.created')),
    rows,
  )

const secretOf = (user: number): ImportedRow => ({
  ...confirmedTotpRow(uuidv7(), `secret of ${user}`, NOW),
  user,
})

const recoveryCodeOf = (user: number): ImportedRow => ({
  ...recoveryCodeRow({ id: uuidv7(), digest: `digest of ${user}` }),
  user,
})

const passkeyOf = (user: number, webAuthnId: string): ImportedRow => ({
  ...passkeyRow({
    id: uuidv7(),
    webAuthnId,
    publicKey: 'a key',
    counter: 0,
    name: null,
    transports: [],
    backedUp: false,
    createdAt: NOW,
    lastUsedAt: null,
  }),
  user,
})

const passkeysOf = (storage: Storage): PasskeyStore => storage.features[storedPasskeys.name] as PasskeyStore

const totpOf = (storage: Storage): TotpStore => storage.features[storedTotp.name] as TotpStore

const exported = async (storage: Storage): Promise<UserWithHash[]> => {
  const users: UserWithHash[] = []
  for (;;) {
    const last = users.at(-1)
    const page = await storage.bulkUsers.exportUsers(
      last === undefined ? null : { key: last.createdAt, id: last.id },
    )
    if (page.length === 0) return users
    users.push(...page)
  }
}

export const bulkUsers: Part = async (t, open) => {
  t.test('an empty store exports nothing, and an empty import adds nothing', async t => {
    const storage = await open(t)
    t.strictSame(await importUsers(storage, []), [])
    t.strictSame(await exported(storage), [])
  })

  t.test('imported users are exported exactly, in order of creation, over any number of pages', async t => {
    const storage = await open(t)
    const users = Array.from({ length: 1_203 }, (_, index) =>
      portable({
        createdAt: index % 7 === 0 ? NOW : NOW - index,
        updatedAt: NOW + index,
        lastRequestAt: index % 3 === 0 ? NOW + index : null,
        disabled: index % 5 === 0,
        emailVerified: index % 2 === 0,
        firstName: index % 4 === 0 ? null : `\u{1f600}"{}\\${index}`,
      }),
    )
    const outcomes = await importUsers(storage, users)
    t.ok(outcomes.length === users.length && outcomes.every(({ status }) => status === 'created'))
    const inOrder = users.toSorted((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
    t.strictSame(await exported(storage), inOrder)
    t.equal((await storage.users.list({ ...SEARCH, filter: { search: '\u{1f600}"{}\\1203' } })).length, 0)
    t.equal((await storage.users.list({ ...SEARCH, filter: { search: '\u{1f600}"{}\\1202' } })).length, 1)
  })

  t.test('existing users are unchanged and reported; an id of another user is rejected', async t => {
    const storage = await open(t)
    const { user, session } = await add(storage)
    const before = await exported(storage)
    const [one, other] = [portable(), portable()]
    const outcomes = await importUsers(storage, [
      portable({ email: user.email, firstName: 'Other' }),
      portable({ id: user.id }),
      one,
      { ...one },
      portable({ email: one.email }),
      { ...other, id: user.id, email: user.email },
    ])
    t.strictSame(outcomes, [
      { status: 'exists', id: user.id },
      { status: 'idTaken' },
      { status: 'created' },
      { status: 'exists', id: one.id },
      { status: 'exists', id: one.id },
      { status: 'exists', id: user.id },
    ])
    t.strictSame(await exported(storage), [...before, one])
    t.ok(await storage.sessions.find(session.id), 'and keeps the session')
  })

  t.test('a session can be opened for an imported user', async t => {
    const storage = await open(t)
    const user = portable({ lastRequestAt: NOW })
    await importUsers(storage, [user])
    const session = sessionOf(user.id)
    t.equal(await storage.sessions.open(session, verifiedBy(user.passwordHash), eventOf(user.id)), 'opened')
    const found = await storage.sessions.find(session.id)
    t.equal(found?.user.lastRequestAt, NOW)
    await storage.lastRequests.recordLastRequests(
      userRequests([{ key: found?.userKey ?? Number.NaN, at: NOW + 1 }]),
      [],
    )
    t.equal((await storage.users.find(user.id))?.lastRequestAt, NOW + 1)
  })

  t.test('of concurrent imports and sign-ups on two instances each e-mail is created once', async t => {
    const [here, there] = [await open(t), await open(t)]
    const users = Array.from({ length: 100 }, () => portable())
    const others = users.map(({ email }) => portable({ email })).toReversed()
    const ofSignUps = users.slice(0, 20).map(({ email }) => newUser({ email }))
    const [one, two, signedUp] = await Promise.all([
      importUsers(here, users),
      importUsers(there, others),
      Promise.all(
        ofSignUps.map(user =>
          there.accounts.addUser(user, eventOf(user.id), { session: sessionOf(user.id) }),
        ),
      ),
    ])
    for (const index of users.keys()) {
      const winners = [
        one[index]?.status === 'created',
        two[99 - index]?.status === 'created',
        signedUp[index] === true,
      ]
      t.equal(winners.filter(Boolean).length, 1, `user ${index}`)
    }
    t.equal(await here.users.count({}), users.length)
  })

  t.test('a user with a value of a unique column that another row has is not added', async t => {
    const storage = await open(t)
    const [first, second, third, fourth, fifth] = [portable(), portable(), portable(), portable(), portable()]
    t.strictSame(await importUsers(storage, [first], [passkeyOf(0, 'a'), passkeyOf(0, 'b')]), [
      { status: 'created' },
    ])
    const users = [{ ...first }, second, third, portable({ id: first.id }), fourth, fifth]
    const rows = [
      ...[passkeyOf(0, 'a'), passkeyOf(1, 'c')],
      ...[secretOf(2), passkeyOf(2, 'd'), passkeyOf(2, 'b'), passkeyOf(2, 'a')],
      ...[passkeyOf(3, 'a'), passkeyOf(4, 'c'), passkeyOf(5, 'd')],
    ]
    t.strictSame(await importUsers(storage, users, rows), [
      { status: 'exists', id: first.id },
      { status: 'created' },
      { status: 'rowsTaken', rows: [2, 3] },
      { status: 'idTaken' },
      { status: 'rowsTaken', rows: [0] },
      { status: 'created' },
    ])
    const found = await passkeysOf(storage).listPasskeysOf(users.map(({ id }) => id))
    t.strictSame(
      found.map(({ userId, passkey }) => [userId, passkey.webAuthnId]).toSorted(),
      [
        [first.id, 'a'],
        [first.id, 'b'],
        [second.id, 'c'],
        [fifth.id, 'd'],
      ].toSorted(),
    )
    t.strictSame(await totpOf(storage).listSecrets([third.id]), [], 'nothing of a user who was not added')
    t.equal(await storage.users.find(third.id), undefined)
    const filter = { userId: third.id }
    t.strictSame(await storage.events.list({ filter, beforeId: null, limit: 10 }), [])
  })

  t.test('equal users of one call get the rows and the event of the first', async t => {
    const storage = await open(t)
    const [user, other] = [portable(), portable()]
    const given = [user, { ...user }, portable({ email: user.email }), other, portable({ id: other.id })]
    const outcomes = await importUsers(
      storage,
      given,
      given.flatMap((_, index) => [secretOf(index), recoveryCodeOf(index), recoveryCodeOf(index)]),
    )
    t.strictSame(outcomes.map(({ status }) => status).toSorted(), [
      'created',
      'created',
      'exists',
      'exists',
      'idTaken',
    ])
    t.equal((await totpOf(storage).findTotp(user.id))?.secret, 'secret of 0')
    t.strictSame(await totpOf(storage).listRecoveryCodes([user.id]), [
      { userId: user.id, digest: 'digest of 0' },
      { userId: user.id, digest: 'digest of 0' },
    ])
    const line = outcomes[3]?.status === 'created' ? 3 : 4
    t.equal((await totpOf(storage).findTotp(other.id))?.secret, `secret of ${line}`)
    for (const { id } of [user, other]) {
      const events = await storage.events.list({ filter: { userId: id }, beforeId: null, limit: 10 })
      t.strictSame(
        events.map(({ type }) => type),
        ['user.created'],
      )
    }
  })

  t.test('a user is stored with all rows, or not at all', async t => {
    const storage = await open(t)
    const [good, bad, late] = [portable({ factors: ['totp'] }), portable({ factors: ['totp'] }), portable()]
    t.strictSame(await importUsers(storage, [portable(), good], [secretOf(1), recoveryCodeOf(1)]), [
      { status: 'created' },
      { status: 'created' },
    ])
    t.strictSame((await storage.users.find(good.id))?.factors, ['totp'])
    t.match(await totpOf(storage).findTotp(good.id), { confirmedAt: NOW, lastStep: 0, expiresAt: null })
    t.equal(await totpOf(storage).countRecoveryCodes(good.id), 1)
    const incomplete = { ...recoveryCodeOf(0), values: { id: uuidv7(), digest: null } }
    await t.rejects(importUsers(storage, [bad, late], [secretOf(0), incomplete]))
    await t.rejects(importUsers(storage, [bad, late], [{ user: 0, table: 'sessions', values: {} }]))
    for (const { id } of [bad, late]) t.equal(await storage.users.find(id), undefined)
    t.strictSame(await importUsers(storage, [bad, late], [secretOf(0)]), [
      { status: 'created' },
      { status: 'created' },
    ])
    t.equal((await totpOf(storage).listSecrets([good.id, bad.id, late.id])).length, 2)
  })

  t.test('a user who cannot be stored fails the call, which leaves nothing', async t => {
    const storage = await open(t)
    const good = portable()
    await t.rejects(importUsers(storage, [good, portable({ id: null as never })]))
    t.equal(await storage.users.find(good.id), undefined)
    t.equal(await storage.users.find(uuidv7()), undefined)
  })
}

const SEARCH = { sort: { field: 'createdAt', descending: false }, after: null, limit: 5 } as const
