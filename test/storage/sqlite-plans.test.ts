/** The indexes of every query of SQLite lists, as SQLite plans them (docs/design.md, "Contract"). */
import type { Compilable } from 'kysely'
import t, { type Test } from 'tap'
import { parseSort, type SignInTables, SORTS, type UserFilter, type UserQuery } from '#core/users/listing'
import { countQuery, pageQuery } from '#core/users/listing-queries'
import {
  creationRange,
  type IndexRange,
  positionColumns,
  selectivePaths,
  sliceEndQuery,
  sortedRange,
  usersInRange,
} from '#core/users/sqlite-access-paths'
import { EXPORT_USERS, firstMatchesQuery, uniqueLookup, usersAtQuery } from '#core/users/sqlite-lists'
import { add, NOW } from './contract/fixtures.ts'
import { connect, open } from './sqlite-support.ts'

const openPlanner = async (t: Test) => {
  const storage = await open(t)
  await Promise.all(Array.from({ length: 100 }, (_, index) => add(storage, { createdAt: NOW + index })))
  const db = connect(t)
  /** By statement: without statistics SQLite plans it alike for all parameters. */
  const plans = new Map<string, string[]>()
  return ({ sql, parameters }: Pick<ReturnType<Compilable['compile']>, 'sql' | 'parameters'>): string[] => {
    const planned = plans.get(sql)
    if (planned !== undefined) return planned
    const steps = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters) as { detail: string }[]
    const plan = steps.map(({ detail }) => detail)
    plans.set(sql, plan)
    return plan
  }
}

/** A first slice and a later one. */
const slices = (part: IndexRange): IndexRange[] => {
  const end = { key: part.column === 'created_at' ? NOW + 50 : 'p', id: 'x' }
  return [
    { ...part, upTo: end },
    { ...part, after: part.after ?? end, upTo: end },
  ]
}

/** The steps of a plan that read users. */
const usersOf = (plan: readonly string[]) => plan.filter(step => step.includes('users '))

const PEOPLE: UserFilter[] = [{}, { disabled: false }, { disabled: true }].flatMap(filter => [
  filter,
  { ...filter, search: 'a' },
  { ...filter, search: 'a', searchEmail: true },
])
const TIMESTAMPS: UserFilter[] = [
  {},
  { createdAfter: NOW + 10 },
  { createdBefore: NOW + 60 },
  { createdAfter: NOW + 10, createdBefore: NOW + 60 },
  { lastRequestAfter: NOW },
  { lastRequestBefore: NOW + 60, createdAfter: NOW + 10 },
]
const WITHOUT_ROLE = PEOPLE.flatMap(people => TIMESTAMPS.map(timestamps => ({ ...people, ...timestamps })))
const FILTERS: UserFilter[] = WITHOUT_ROLE.flatMap(filter => [filter, { ...filter, role: 'editor' }])

/** As administrators read users. */
const SIGN_IN_TABLES: SignInTables = [
  {
    method: 'identity',
    table: { name: 'identities', owner: 'user_key' },
    rows: { column: 'issuer', values: ['https://a.example', 'https://b.example'] },
  },
]

const queriesOf = (filter: UserFilter): UserQuery[] =>
  SORTS.map(parseSort).flatMap(sort =>
    [null, { key: sort.field === 'createdAt' ? NOW : 'a', id: 'x' }].map(after => ({
      filter,
      sort,
      after,
      limit: 20,
      signInTables: SIGN_IN_TABLES,
    })),
  )

/** The beginning of the plan of a query over a range. */
const reading = ({ index, column, after, upTo }: IndexRange, covering: boolean): string =>
  index === 'user_roles'
    ? `SEARCH user_roles USING PRIMARY KEY (role=?${after || upTo ? ' AND (user_created_at,user_id)' : ''}`
    : `SEARCH users USING ${covering ? 'COVERING ' : ''}INDEX ${index} (${column === 'email' ? 'email' : `(${column},id)`}`

t.test('sqlite: every query of a list reads one slice of one index, and sorts no more than that', async t => {
  const planOf = await openPlanner(t)
  for (const filter of FILTERS) {
    const wrong: unknown[] = []
    const expect = (good: boolean | undefined, plan: readonly string[], query: UserQuery) => {
      // The end of a slice of users with a role is read from `user_roles` alone.
      const reads = plan.length === 1 && plan[0]?.includes('user_roles') ? 0 : 1
      const scans = plan.some(step => step.startsWith('SCAN'))
      if (!good || usersOf(plan).length !== reads || scans) wrong.push({ plan, query })
    }
    for (const query of queriesOf(filter)) {
      for (const slice of slices(sortedRange(query))) {
        const plan = planOf(
          pageQuery(
            usersInRange(slice),
            { ...query, filter: {}, after: null },
            positionColumns(slice),
          ).compile(),
        )
        const isSorted = plan[0]?.startsWith(reading(slice, false)) && !plan.join().includes('TEMP')
        expect(isSorted && plan.join().includes('identities_by_user_key (user_key=?)'), plan, query)
        const end = planOf(sliceEndQuery(slice, 1_000))
        expect(end.length === 1 && end[0]?.startsWith(reading(slice, true)), end, query)
      }
      for (const slice of [...selectivePaths(filter, query.sort.field).flat(), creationRange(filter)].flatMap(
        slices,
      )) {
        // Only the index of the few disabled users has their e-mails too.
        const row = filter.searchEmail && slice.index === 'users_by_created_at'
        const start = reading(slice, !row && slice.index !== 'users_by_email')
        const first = planOf(firstMatchesQuery(slice, query).compile())
        expect(first[0]?.startsWith(start), first, query)
        const total = planOf(countQuery(usersInRange(slice), {}).compile())
        expect(total[0]?.startsWith(start) && !total.join().includes('TEMP'), total, query)
      }
    }
    t.strictSame(wrong, [], JSON.stringify(filter))
  }
})

t.test('sqlite: a page of an export is read from the index of creation, and its users by key', async t => {
  const planOf = await openPlanner(t)
  const plan = planOf({ sql: EXPORT_USERS, parameters: [NOW, '', 200] }).join('\n')
  t.match(plan, /SEARCH users USING INDEX users_by_created_at \(\(created_at,id\)>/)
  t.match(plan, /SEARCH users USING INTEGER PRIMARY KEY \(rowid=\?\)/)
  t.notMatch(plan, 'SCAN users')
})

t.test('sqlite: the last request is looked up by the key of its user', async t => {
  const planOf = await openPlanner(t)
  for (const filter of [{ lastRequestAfter: NOW }, { lastRequestBefore: NOW }]) {
    const plan = planOf(countQuery(usersInRange(creationRange(filter)), {}).compile())
    t.match(plan.slice(1).join(), /SEARCH last_requests (EXISTS )?USING INTEGER PRIMARY KEY \(rowid=\?\)/)
    t.notMatch(plan.join(), 'SCAN last_requests')
  }
})

t.test('sqlite: creation bounds its index, in each direction, from the cursor on', t => {
  const filter = { createdAfter: NOW + 10, createdBefore: NOW + 60 }
  const [low, high] = [
    { key: NOW + 11, id: '' },
    { key: NOW + 60, id: '' },
  ]
  const cursor = { key: NOW + 30, id: 'x' }
  const part = (sort: '-createdAt' | 'createdAt' | 'firstName', after: typeof cursor | null) => {
    const { index, after: from, upTo } = sortedRange({ filter, sort: parseSort(sort), after })
    return { index, from, upTo }
  }
  const index = 'users_by_created_at'
  t.strictSame(part('createdAt', null), { index, from: low, upTo: high })
  t.strictSame(part('createdAt', cursor), { index, from: cursor, upTo: high })
  t.strictSame(part('createdAt', { key: NOW, id: 'x' }), { index, from: low, upTo: high })
  t.strictSame(part('-createdAt', null), { index, from: high, upTo: low })
  t.strictSame(part('-createdAt', cursor), { index, from: cursor, upTo: low })
  t.strictSame(part('-createdAt', { key: NOW + 60, id: 'x' }), { index, from: high, upTo: low })

  const pathsOf = (filter: UserFilter, sorted: 'createdAt' | 'firstName') =>
    selectivePaths(filter, sorted).map(([first]) => [first?.index, first?.after, first?.upTo])
  t.strictSame(pathsOf(filter, 'createdAt'), [], 'the walk itself is within them')
  t.strictSame(pathsOf(filter, 'firstName'), [[index, low, high]])
  t.strictSame(pathsOf({ ...filter, disabled: true }, 'firstName'), [['users_disabled', low, high]])
  t.strictSame(pathsOf({ lastRequestBefore: NOW }, 'firstName'), [[index, null, { key: NOW, id: '' }]])
  t.end()
})

t.test(
  'sqlite: users that a filter names are looked up by a unique index, with any other filter',
  async t => {
    const planOf = await openPlanner(t)
    const BY_ID = /^SEARCH users USING (COVERING )?INDEX sqlite_autoindex_users_1 \(id=\?\)/
    const BY_EMAIL = /^SEARCH users USING (COVERING )?INDEX users_by_email \(email=\?\)/
    const expect = (filter: UserFilter, step: RegExp) => {
      const lookup = uniqueLookup(filter)
      if (lookup === null) throw new Error('no user is named')
      const queries = [
        countQuery(lookup.users, lookup.filter),
        ...queriesOf(lookup.filter).map(query => pageQuery(lookup.users, query)),
      ]
      const plans = queries.map(query => planOf(query.compile()))
      t.strictSame(
        plans.filter(([first = '']) => !step.test(first)),
        [],
        JSON.stringify(filter),
      )
    }
    for (const filter of FILTERS) {
      expect({ ...filter, ids: ['a', 'b'] }, BY_ID)
      expect({ ...filter, email: 'a' }, BY_EMAIL)
      expect({ ...filter, email: 'a', ids: ['a'] }, BY_EMAIL)
    }
    for (const query of queriesOf({})) t.match(planOf(usersAtQuery([], query).compile()).join(), BY_ID)
  },
)
