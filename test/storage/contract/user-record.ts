/** Contract: roles and metadata are stored exactly, and lists of users with a role follow every change. */

import { NO_FACTORS } from '#core/users/factors'
import { parseSort, SORTS } from '#core/users/listing'
import type { JsonObject } from '#core/users/metadata'
import type { User } from '#core/users/user'
import { ALL, add, addUsers, asStored, eventOf, forEach, NOW, newUser, type Part } from './fixtures.ts'
import { inOrder, readAll } from './list-model.ts'

const KEEP = { revokeSessions: false, invalidateTokens: false, credentialId: null, versions: null }
const LATER = NOW + 1_000

const ROLES = ['a', 'billing:read', 'editor', `z${'0'.repeat(63)}`]

const METADATA: JsonObject = {
  '': null,
  'a.b/c~d "quoted" \\': [1, -0.5, 1e-7, 1e300, true, { deep: [[['\u{1f600}', 'ſ', '\u0001']]] }],
  constructor: 'text',
  toJSON: 'text',
  length: 0,
}

export const userRecord: Part = async (t, open) => {
  const storage = await open(t)
  const withRole = async (role: string): Promise<readonly string[]> => {
    const users = await storage.users.list({ ...ALL, filter: { role } })
    t.equal(await storage.users.count({ role }), users.length)
    return users.map(({ id }) => id)
  }

  t.test('a new user has what was given, wherever the user is read', async t => {
    const fields = { roles: ROLES, userMetadata: METADATA, appMetadata: { plan: 'pro' } }
    const { user, session } = await add(storage, fields)
    const expected = asStored(user)
    t.strictSame(await storage.users.find(user.id), expected)
    t.strictSame((await storage.users.findByEmail(user.email))?.user, expected)
    t.strictSame((await storage.sessions.find(session.id))?.user, expected)
    t.strictSame(await storage.users.list({ ...ALL, filter: { ids: [user.id] } }), [expected])
    for (const role of ROLES) t.ok((await withRole(role)).includes(user.id), role)
    const exported = await storage.bulkUsers.exportUsers({ key: user.createdAt - 1, id: '' })
    t.strictSame(
      exported.find(({ id }) => id === user.id),
      { ...expected, passwordHash: user.passwordHash },
    )
  })

  t.test('roles are stored sorted', async t => {
    const { user } = await add(storage, { roles: ROLES.toReversed() })
    t.strictSame((await storage.users.find(user.id))?.roles, ROLES)
    const changed = await storage.users.update(user.id, { roles: ['z', 'b'] }, eventOf(user.id, LATER), KEEP)
    t.strictSame((changed as User).roles, ['b', 'z'])
  })

  t.test('without any of them, users share one value', async t => {
    const { user, session } = await add(storage)
    const [found, again] = [
      await storage.users.find(user.id),
      (await storage.sessions.find(session.id))?.user,
    ]
    for (const name of ['roles', 'userMetadata', 'appMetadata'] as const)
      t.equal(found?.[name], again?.[name], name)
  })

  t.test('a change replaces each as a whole and leaves the others', async t => {
    const { user } = await add(storage, {
      roles: ['one', 'two'],
      userMetadata: { a: 1 },
      appMetadata: { b: 2 },
    })
    const change = (changes: Parameters<typeof storage.users.update>[1]) =>
      storage.users.update(user.id, changes, eventOf(user.id, LATER), KEEP)
    const expected = { ...asStored(user), updatedAt: LATER }
    t.strictSame(await change({ userMetadata: METADATA }), {
      ...expected,
      userMetadata: METADATA,
      version: 2,
    })
    t.match(await change({ roles: ['three', 'two'] }), { roles: ['three', 'two'], userMetadata: METADATA })
    t.ok((await withRole('two')).includes(user.id))
    t.ok((await withRole('three')).includes(user.id))
    t.notOk((await withRole('one')).includes(user.id))
    t.match(await change({ firstName: 'Renamed' }), { roles: ['three', 'two'], appMetadata: { b: 2 } })
    t.ok((await withRole('three')).includes(user.id))
    const cleared = { roles: [], userMetadata: {}, appMetadata: {} }
    t.strictSame(await change(cleared), { ...expected, firstName: 'Renamed', ...cleared, version: 5 })
    t.notOk((await withRole('three')).includes(user.id))
  })

  t.test('a refused change changes no role', async t => {
    const { user } = await add(storage, { roles: ['kept'] })
    const { user: other } = await add(storage)
    const change = (changes: object, options: object) =>
      storage.users.update(user.id, { roles: ['lost'], ...changes }, eventOf(user.id, LATER), {
        ...KEEP,
        ...options,
      })
    t.equal(await change({}, { versions: [7] }), 'versionChanged')
    t.equal(await change({ email: other.email }, {}), 'emailTaken')
    t.strictSame(await withRole('kept'), [user.id])
    t.strictSame(await withRole('lost'), [])
  })

  t.test('a removed user is in no list', async t => {
    const { user } = await add(storage, { roles: ['removed'] })
    t.strictSame(await withRole('removed'), [user.id])
    t.strictSame(await storage.users.remove(eventOf(user.id, LATER, 'user.deleted'), null), { outcomes: {} })
    t.strictSame(await withRole('removed'), [])
  })

  t.test('imported users have them, and existing ones keep theirs', async t => {
    const { user } = await add(storage, { roles: ['imported'], appMetadata: { from: 'sign-up' } })
    const users = Array.from({ length: 50 }, (_, index) => ({
      ...newUser({ roles: index % 2 ? ['imported', 'odd'] : [], userMetadata: index % 3 ? { index } : {} }),
      hasPassword: true,
      factors: NO_FACTORS,
      lastRequestAt: null,
      version: 1,
    }))
    const again = {
      ...users[0],
      ...newUser({ email: user.email, roles: ['other'] }),
      hasPassword: true,
      factors: NO_FACTORS,
      lastRequestAt: null,
      version: 1,
    }
    const given = [...users, again]
    const events = given.map(({ id }) => eventOf(id, NOW, 'user.created'))
    const outcomes = await storage.bulkUsers.importUsers(given, events, [])
    t.equal(outcomes.filter(({ status }) => status === 'created').length, 50)
    for (const each of users) t.strictSame(await storage.users.find(each.id), asStored(each))
    t.equal((await withRole('odd')).length, 25)
    t.equal((await withRole('imported')).length, 26)
    t.strictSame(await withRole('other'), [])
    t.match(await storage.users.find(user.id), { roles: ['imported'], appMetadata: { from: 'sign-up' } })
  })

  t.test('a page of an export has a bounded size, and at least one user', async t => {
    const storage = await open(t)
    const added = await forEach(
      Array.from({ length: 120 }, (_, index) => index),
      index =>
        add(storage, {
          createdAt: NOW + index,
          ...(index < 100 && {
            userMetadata: { text: 'x'.repeat(8_000) },
            appMetadata: { text: 'é'.repeat(4_000) },
          }),
        }),
    )
    const sizes: number[] = []
    const exported: User[] = []
    for (;;) {
      const last = exported.at(-1)
      const page = await storage.bulkUsers.exportUsers(last ? { key: last.createdAt, id: last.id } : null)
      if (page.length === 0) break
      sizes.push(page.length)
      exported.push(...page)
    }
    t.strictSame(sizes, [17, 17, 17, 17, 17, 35])
    t.strictSame(
      exported.map(({ id }) => id),
      added.map(({ user }) => user.id),
    )
  })

  t.test('of concurrent changes one is the last, for the user and for the lists', async t => {
    const { user } = await add(storage, { roles: ['start'] })
    const names = Array.from({ length: 20 }, (_, index) => `r${index}`)
    await forEach(names, role =>
      storage.users.update(user.id, { roles: [role] }, eventOf(user.id, LATER), KEEP),
    )
    const roles = (await storage.users.find(user.id))?.roles ?? []
    t.equal(roles.length, 1)
    for (const name of ['start', ...names])
      t.strictSame(await withRole(name), roles.includes(name) ? [user.id] : [], name)
  })

  t.test('a list may leave out the metadata', async t => {
    const { user } = await add(storage, { userMetadata: { a: 1 }, appMetadata: { b: 1 }, roles: ['listed'] })
    const [found] = await storage.users.list({ ...ALL, filter: { ids: [user.id] }, omitMetadata: true })
    t.strictSame(found, { ...asStored(user), userMetadata: {}, appMetadata: {} })
  })

  t.test('users with a role are paged in every order, however many there are', async t => {
    const storage = await open(t)
    const people = Array.from({ length: 3_000 }, (_, index) => ({
      createdAt: NOW + (index % 700),
      firstName: `n${(index * 7_919) % 3_000}`,
      disabled: index % 10 === 0,
      roles: [...(index % 2 ? ['many'] : []), ...(index % 500 === 0 ? ['few'] : [])],
    }))
    const users = (await addUsers(storage, people)).map(user => asStored(user))
    for (const role of ['many', 'few', 'none'])
      for (const filter of [{ role }, { role, disabled: true }, { role, createdAfter: NOW + 350 }])
        for (const sort of SORTS) {
          const expected = users.filter(
            each =>
              each.roles.includes(role) &&
              (!('disabled' in filter) || each.disabled) &&
              (!('createdAfter' in filter) || each.createdAt > NOW + 350),
          )
          const title = `${JSON.stringify(filter)} ${sort}`
          t.strictSame(await readAll(storage, sort, 101, filter), inOrder(expected, sort), title)
          t.equal(await storage.users.count(filter), expected.length, title)
          const first = await storage.users.list({ filter, sort: parseSort(sort), after: null, limit: 1 })
          t.strictSame(
            first.map(({ id }) => id),
            inOrder(expected, sort).slice(0, 1),
          )
        }
  })
}
