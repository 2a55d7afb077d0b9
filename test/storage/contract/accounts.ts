/** Contract: accounts and their sessions are added completely or not at all, and returned unchanged. */
import { v7 as uuidv7 } from 'uuid'
import { ALL, add, asStored, eventOf, NOW, newUser, type Part, sessionOf, verifiedBy } from './fixtures.ts'

/** Text that careless storage would fold, trim, normalise, truncate or misinterpret. */
const DELICATE = [
  'e\u0301 and \u00e9',
  '\u{1f469}\u{1f3fd}\u200d\u{1f680}',
  '\u05d0\u05d1\u202e\u0627\u0644',
  '\u0130\u0131\u00df\u1e9e\u03a3\u03c2',
  '\ufeffBOM\ufffd\uffff\u{10ffff}',
  'line\nbreak\ttab\r\u0001\u007f\u0085\u2028',
  `quote ' " \` ; -- \\ \\x00 $1 ? @a :b`,
  ' \u00a0 inner and outer spaces \u3000 ',
  'null',
  '0042',
  '\u{1f600}'.repeat(128),
] as const

export const accounts: Part = async (t, open) => {
  const storage = await open(t)

  t.test('a user and the first session are returned exactly', async t => {
    const { user, session, userKey } = await add(storage, {
      emailVerified: true,
      disabled: true,
      createdAt: 1,
      updatedAt: Date.UTC(9999, 11, 31),
    })
    t.strictSame(await storage.users.find(user.id), asStored(user))
    t.strictSame(await storage.users.findByEmail(user.email), {
      user: asStored(user),
      passwordHash: user.passwordHash,
    })
    t.strictSame(await storage.sessions.find(session.id), { session, user: asStored(user), userKey })
    t.ok(Number.isSafeInteger(userKey), 'the number is one')
    t.strictSame(await storage.users.list({ ...ALL, filter: { email: user.email } }), [asStored(user)])
  })

  t.test('names may be null', async t => {
    const { user } = await add(storage, { firstName: null, lastName: null })
    t.strictSame(await storage.users.find(user.id), asStored(user))
  })

  t.test('text is returned byte for byte (§4)', async t => {
    for (const [index, text] of DELICATE.entries()) {
      const { user, session } = await add(storage, { firstName: text, lastName: text, passwordHash: text })
      const found = await storage.users.findByEmail(user.email)
      const ofSession = await storage.sessions.find(session.id)
      const given = [found?.user.firstName, found?.passwordHash, ofSession?.user.lastName]
      const bytes = Buffer.from(text).toString('hex')
      t.strictSame(
        given.map(value => Buffer.from(value ?? '').toString('hex')),
        [bytes, bytes, bytes],
        `text ${index}`,
      )
    }
  })

  t.test('lookups of unknown keys find nothing', async t => {
    await add(storage)
    t.equal(await storage.users.find(uuidv7()), undefined)
    t.equal(await storage.users.findByEmail('nobody@example.com'), undefined)
    t.equal(await storage.sessions.find(uuidv7()), undefined)
    t.equal(await storage.users.find('no uuid at all'), undefined)
    t.equal(await storage.sessions.find('no uuid at all'), undefined)
  })

  t.test('an e-mail belongs to one user: a second is rejected and leaves nothing', async t => {
    const first = await add(storage)
    const second = newUser({ email: first.user.email })
    const session = sessionOf(second.id)
    t.equal(await storage.accounts.addUser(second, eventOf(second.id), { session: session }), false)
    t.equal(await storage.users.find(second.id), undefined)
    t.equal(await storage.sessions.find(session.id), undefined)
    t.strictSame((await storage.users.findByEmail(first.user.email))?.user, asStored(first.user))
  })

  t.test('of 100 concurrent sign-ups with one e-mail on two instances exactly one succeeds', async t => {
    const here = await open(t)
    const there = await open(t)
    const contenders = Array.from({ length: 100 }, (_, index) => ({
      user: newUser({ email: 'contended@example.com', firstName: `${index}` }),
      storage: index % 2 === 0 ? here : there,
    }))
    const outcomes = await Promise.all(
      contenders.map(({ user, storage }) =>
        storage.accounts.addUser(user, eventOf(user.id), { session: sessionOf(user.id) }),
      ),
    )
    t.equal(outcomes.filter(Boolean).length, 1)
    const winner = contenders[outcomes.indexOf(true)]
    const listed = await here.users.list(ALL)
    t.strictSame(
      listed.map(({ id }) => id),
      [winner?.user.id],
    )
  })

  t.test('a failed call is rolled back without affecting others of its batch', async t => {
    const { session: existing } = await add(storage)
    const users = Array.from({ length: 42 }, () => newUser())
    const bad = new Map([
      [10, { id: existing.id }],
      [30, { userId: uuidv7() }],
    ])
    const outcomes = await Promise.allSettled(
      users.map((user, index) =>
        storage.accounts.addUser(user, eventOf(user.id), { session: sessionOf(user.id, bad.get(index)) }),
      ),
    )
    for (const [index, user] of users.entries()) {
      const expected = bad.has(index) ? [undefined, 'rejected'] : [user.id, 'fulfilled']
      t.strictSame(
        [(await storage.users.find(user.id))?.id, outcomes[index]?.status],
        expected,
        `call ${index}`,
      )
    }
  })

  t.test('a session is opened for the verified hash', async t => {
    const { user, session: first, userKey } = await add(storage)
    const session = sessionOf(user.id, { createdAt: NOW + 5, lastRequestAt: NOW + 6 })
    t.equal(
      await storage.sessions.open(session, verifiedBy(user.passwordHash), eventOf(session.userId)),
      'opened',
    )
    t.strictSame(await storage.sessions.find(session.id), { session, user: asStored(user), userKey })
    t.strictSame((await storage.sessions.find(first.id))?.session, first)
  })

  t.test('no session is opened after the hash changed or the user was disabled or deleted', async t => {
    const changed = await add(storage)
    await storage.accounts.rehash(changed.user.id, changed.user.passwordHash, 'another')
    const disabled = await add(storage, { disabled: true })
    const rejected = [
      [changed.user, 'passwordChanged'],
      [disabled.user, 'accountDisabled'],
      [newUser(), 'userNotFound'],
    ] as const
    for (const [user, reason] of rejected) {
      const session = sessionOf(user.id)
      t.equal(
        await storage.sessions.open(session, verifiedBy(user.passwordHash), eventOf(session.userId)),
        reason,
      )
      t.equal(await storage.sessions.find(session.id), undefined)
    }
  })

  t.test('no session survives disabling that is concurrent with opening sessions', async t => {
    const { user, session } = await add(storage)
    const sessions = Array.from({ length: 40 }, () => sessionOf(user.id))
    const opened = sessions.map(each =>
      storage.sessions.open(each, verifiedBy(user.passwordHash), eventOf(each.userId)),
    )
    const disabled = storage.users.update(user.id, { disabled: true }, eventOf(user.id, NOW), {
      revokeSessions: true,
      invalidateTokens: false,
      credentialId: null,
      versions: null,
    })
    const late = sessionOf(user.id)
    opened.push(storage.sessions.open(late, verifiedBy(user.passwordHash), eventOf(late.userId)))
    await Promise.all([...opened, disabled])
    for (const each of [session, ...sessions, late]) {
      t.equal(await storage.sessions.find(each.id), undefined)
    }
  })

  t.test('a hash is replaced only if it is still the given one', async t => {
    const { user } = await add(storage)
    const hash = async () => (await storage.users.findByEmail(user.email))?.passwordHash
    await storage.accounts.rehash(user.id, 'some other', 'stolen')
    t.equal(await hash(), user.passwordHash)
    await storage.accounts.rehash(user.id, user.passwordHash, 'stronger')
    t.equal(await hash(), 'stronger')
    await storage.accounts.rehash(uuidv7(), 'stronger', 'nobody')
    t.equal(await hash(), 'stronger')
  })
}
