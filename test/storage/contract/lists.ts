/** Contract: lists by keyset pagination, their filters and counts (docs/design.md, "Contract"). */

import type { Storage } from '#core/store/store'
import { parseSort, SORTS, sortKey, type UserFilter } from '#core/users/listing'
import type { User } from '#core/users/user'
import { add, asStored, forEach, NOW, type Part, type TestUser } from './fixtures.ts'
import { inOrder, matches, readAll } from './list-model.ts'

/** With ties in every sort field, null names, and letters that sort differently in UTF-16 and in locales. */
const NAMES = [
  null,
  'ada',
  'Ada',
  'ADA',
  'adam',
  'Ad\u00e2',
  'Zo\u00eb',
  'zed',
  '\u00c9va',
  '\uffee',
  '\u{1f600}',
] as const
const people = Array.from(
  { length: 44 },
  (_, index): Partial<TestUser> => ({
    firstName: NAMES[index % NAMES.length] ?? null,
    lastName: NAMES[(index * 7) % 5] ?? null,
    createdAt: NOW + Math.floor(index / 6) * 1_000,
    disabled: index % 3 === 0,
  }),
)

const addPeople = async (storage: Storage): Promise<User[]> => {
  const added = await forEach(people, fields => add(storage, fields))
  return added.map(({ user }) => asStored(user))
}

const PAGE_SIZES = [1, 2, 7, people.length, 100] as const

export const lists: Part = async (t, open) => {
  const storage = await open(t)
  const users = await addPeople(storage)

  t.test('every sort, direction and page size returns each user once, in order', async t => {
    for (const sort of SORTS) {
      const expected = inOrder(users, sort)
      for (const limit of PAGE_SIZES) {
        t.strictSame(await readAll(storage, sort, limit), expected, `${sort}, ${limit} a page`)
      }
    }
  })

  t.test('filters apply to every page, and the count agrees', async t => {
    const filters: UserFilter[] = [
      {},
      { disabled: true },
      { disabled: false },
      { search: 'AD' },
      { search: 'ad\u00c2', disabled: false },
      { search: 'no such name' },
      { email: users[5]?.email ?? '' },
      { email: users[6]?.email.toUpperCase() ?? '' },
      { email: users[6]?.email ?? '', disabled: true },
      { email: 'nobody@example.com' },
    ]
    for (const filter of filters) {
      const expected = users.filter(matches(filter))
      const title = JSON.stringify(filter)
      t.equal(await storage.users.count(filter), expected.length, `count ${title}`)
      for (const sort of SORTS) {
        t.strictSame(await readAll(storage, sort, 3, filter), inOrder(expected, sort), `${sort} ${title}`)
      }
    }
  })

  t.test('users who are added while a list is read affect no page', async t => {
    const sort = parseSort('firstName')
    const first = await storage.users.list({ filter: {}, sort, after: null, limit: 20 })
    const last = first.at(-1)
    await add(storage, { firstName: ' before all others' })
    const after = last === undefined ? null : { key: sortKey(last, 'firstName'), id: last.id }
    const rest = await storage.users.list({ filter: {}, sort, after, limit: 100 })
    t.strictSame(
      [...first, ...rest].map(({ id }) => id),
      inOrder(users, 'firstName'),
    )
  })
}
