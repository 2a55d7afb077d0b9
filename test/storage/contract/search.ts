/** Contract: the search for users by the start of a name (docs/design.md, "Contract"). */
import type { Test } from 'tap'
import type { Storage } from '#core/store/store'
import { ALL, add, asStored, type Part } from './fixtures.ts'

/** Adds users with these first names. Each must be found by its own searches, and no other user by them. */
const searched = async (
  t: Test,
  storage: Storage,
  cases: readonly (readonly [string, readonly string[]])[],
) => {
  for (const [firstName] of cases) await add(storage, { firstName, lastName: null })
  for (const [firstName, searches] of cases) {
    for (const search of searches) {
      const found = await storage.users.list({ ...ALL, filter: { search } })
      t.strictSame(
        found.map(user => user.firstName),
        [firstName],
        `${firstName} by ${search}`,
      )
    }
  }
}

export const search: Part = async (t, open) => {
  const storage = await open(t)

  t.test('a search matches the start of a name, and of the e-mail only on request', async t => {
    const { user } = await add(storage, {
      email: 'inner.person@example.com',
      firstName: 'Grace',
      lastName: 'Hopper',
    })
    const count = (search: string, searchEmail = false) => storage.users.count({ search, searchEmail })
    t.equal(await count('grace'), 1)
    t.equal(await count('hop'), 1)
    t.equal(await count('ace'), 0, 'not the middle')
    t.equal(await count('grace hopper'), 0, 'not both names together')
    t.equal(await count('gracee'), 0)
    t.equal(await count('Inner.P'), 0)
    t.equal(await count('Inner.P', true), 1)
    t.equal(await count('grace', true), 1)
    t.equal(await count('example.com', true), 0)
    const found = await storage.users.list({ ...ALL, filter: { search: 'INNER', searchEmail: true } })
    t.strictSame(found, [asStored(user)])
  })

  t.test('a search ignores case in every script', async t => {
    await searched(t, storage, [
      ['\u00c9clair', ['\u00e9c', '\u00c9CL', 'e\u0301clair']],
      ['e\u0301tude', ['\u00e9tude', 'E\u0301T', '\u00c9TUDE']],
      ['\u0414\u043c\u0438\u0442\u0440\u0438\u0439', ['\u0434\u043c', '\u0414\u041c\u0418']],
      [
        '\u039f\u0394\u03a5\u03a3\u03a3\u0395\u0391\u03a3',
        [
          '\u03bf\u03b4\u03c5\u03c3',
          '\u039f\u0394\u03a5\u03a3',
          '\u03bf\u03b4\u03c5\u03c3\u03c3\u03b5\u03b1\u03c2',
        ],
      ],
    ])
  })

  t.test('% _ \\ * ? [ and quotes are ordinary characters', async t => {
    const marks = ['%', '_', '\\', '*', '?', '[', ']', '^', "'", '"', '\u{10ffff}']
    await searched(t, storage, [
      ...marks.map((mark): [string, string[]] => [`${mark}x`, [mark, `${mark}X`]]),
      ...marks.map((mark): [string, string[]] => [`a${mark}b`, [`a${mark}`, `A${mark}B`]]),
    ])
  })

  t.test('a name is found by its prefix, whatever follows', async t => {
    for (const next of ['', ' ', 'z', '~', '\uffff', '\u{1f600}', '\u{10ffff}', '\u{10ffff}\u{10ffff}z']) {
      await add(storage, { firstName: `Common${next}` })
    }
    t.equal(await storage.users.count({ search: 'common' }), 8)
  })
}
