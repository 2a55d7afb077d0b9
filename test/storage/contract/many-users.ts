/** Contract: lists and counts of more users than one slice, with random names, against a model. */
import fc from 'fast-check'
import { parseSort, SORTS, sortKey, type UserFilter } from '#core/users/listing'
import { inShortRun } from '../../support/run.ts'
import { addUsers, asStored, NOW, type Part } from './fixtures.ts'
import { inOrder, matches, readAll } from './list-model.ts'

const USERS = 3_000

/** Letters of one to four bytes, the last of which sorts differently in UTF-16 and UTF-8. */
const name = fc.option(
  fc.string({ unit: fc.constantFrom('a', 'a', 'A', 'b', '\u00e9', '\uffee', '\u{1f600}'), maxLength: 3 }),
)
const person = fc.record({
  firstName: name,
  lastName: name,
  disabled: fc.boolean(),
  createdAt: fc.integer({ min: NOW, max: NOW + 500 }),
})

export const manyUsers: Part = async (t, open) => {
  const storage = await open(t)
  const seed = Date.now()
  const people = fc.sample(person, { numRuns: USERS, seed }).map((fields, index) => ({
    ...fields,
    email: `${index % 4 ? 'a' : '\u00e9'}${index}@example.com`,
    // Few of the newer users are disabled, and those named z are all among the oldest.
    disabled: index < 1_000 ? fields.disabled : index % 300 === 0,
    createdAt: index < 1_400 ? fields.createdAt : NOW + 1_000 + index,
    ...(index < 400 && { [index % 2 ? 'firstName' : 'lastName']: `z${index}` }),
  }))
  const users = (await addUsers(storage, people)).map(user => asStored(user))

  const byId = new Map(users.map(user => [user.id, user]))

  const filters: UserFilter[] = [
    {},
    { disabled: true },
    { disabled: false },
    ...['a', 'AA', 'z', 'z399', '\u{1f600}', '', 'nobody'].flatMap(search => [
      { search },
      { search, disabled: false },
      { search, searchEmail: true },
      { search, searchEmail: true, disabled: true },
    ]),
    { email: 'A301@example.com', search: 'z' },
  ]

  for (const filter of filters) {
    t.test(`${JSON.stringify(filter)}, seed ${seed}`, async t => {
      const expected = users.filter(matches(filter))
      t.equal(await storage.users.count(filter), expected.length)
      t.equal(await storage.users.estimate(filter), expected.length, 'few are not estimated')
      for (const sort of inShortRun(SORTS.slice(0, 3), SORTS)) {
        const ids = inOrder(expected, sort)
        const found = await readAll(storage, sort, 101, filter)
        t.ok(found.join() === ids.join(), sort, { found: found.length, expected: ids.length })
        const start = byId.get(ids.at(-4) ?? '')
        if (start === undefined) continue
        const { field, descending } = parseSort(sort)
        const after = { key: sortKey(start, field), id: start.id }
        const end = await storage.users.list({ filter, sort: { field, descending }, after, limit: 2 })
        t.strictSame(
          end,
          ids.slice(-3, -1).map(id => byId.get(id)),
          `${sort}, a short page near the end`,
        )
      }
    })
  }
}
