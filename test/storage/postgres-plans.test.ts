/** Plans of lookups by ids and timestamp filters on PostgreSQL, with ten thousand users (docs/design.md, "Contract"). */
import t, { type Test } from 'tap'
import { parseSort, type SignInTables, SORTS, type UserFilter } from '#core/users/listing'
import { countStatement, EXPORT_USERS, pageStatement } from '#core/users/postgres-lists'
import { NOW } from './contract/fixtures.ts'
import { ask, explain, open } from './postgres-support.ts'

const USERS = 10_000

/** One user a millisecond, in another order by name; every second one has made a request. */
const openMany = async (t: Test): Promise<void> => {
  await open(t)
  await ask(
    t,
    `INSERT INTO users (id, email, password_hash, first_name_key, last_name_key, email_verified, disabled,
       created_at, updated_at, roles)
     SELECT gen_random_uuid()::text, 'user' || i || '@example.com', '', 'first' || i * 7919 % ${USERS},
       'last' || i * 104729 % ${USERS}, 0, (i % 100 = 0)::int, ${NOW} + i, ${NOW},
       CASE WHEN i % 500 = 7 THEN '["few","many"]' WHEN i % 2 = 0 THEN '["many"]' END
     FROM generate_series(0, ${USERS - 1}) i`,
  )
  await ask(t, `INSERT INTO last_requests SELECT key, ${NOW} + key FROM users WHERE key % 2 = 0`)
  await ask(
    t,
    `INSERT INTO identities (id, user_key, issuer, subject, provider, linked_at, last_used_at)
     SELECT gen_random_uuid()::text, key, 'https://a.example', id, 'a', ${NOW}, 0 FROM users WHERE key % 2 = 0`,
  )
  await ask(t, 'ANALYZE identities')
}

/** Pages in each order, with the usual limit, and the count. */
const statementsOf = (filter: UserFilter) => [
  { title: 'count', statement: countStatement(filter) },
  ...SORTS.map(sort => ({
    title: sort,
    statement: pageStatement({ filter, sort: parseSort(sort), after: null, limit: 21 }),
  })),
]

t.test('postgres: lookups and filters use their indexes', async whole => {
  await openMany(whole)

  whole.test('ids are looked up by their index, with any other filter', async t => {
    const rows = await ask(whole, 'SELECT id FROM users LIMIT 100')
    const ids = rows.map(({ id }) => String(id))
    t.equal(ids.length, 100)
    const everything = {
      createdAfter: NOW,
      lastRequestBefore: NOW + USERS,
      search: 'first',
      searchEmail: true,
    }
    for (const filter of [{ ids }, { ids, ...everything }]) {
      for (const { title, statement } of statementsOf(filter)) {
        const plan = await explain(whole, statement, { readsAll: true })
        t.match(plan, /Scan (on|using) users_id_key/, `${title}, ${Object.keys(filter)}`)
        t.notMatch(plan, /users_by_|Seq Scan on users/, `${title}, ${Object.keys(filter)}: nothing else`)
      }
    }
  })

  whole.test('sign-in methods of the users on a page are looked up by user', async t => {
    const signInTables: SignInTables = [
      {
        method: 'identity',
        table: { name: 'identities', owner: 'user_key' },
        rows: { column: 'issuer', values: ['https://a.example', 'https://b.example'] },
      },
    ]
    const query = { filter: {}, sort: parseSort('createdAt'), after: null, limit: 21, signInTables }
    const plan = await explain(whole, pageStatement(query), { readsAll: true })
    t.match(plan, /Index (Only )?Scan using identities_by_user_key on identities/)
    t.notMatch(plan, 'Seq Scan')
  })

  whole.test('creation bounds the index that the list is read from', async t => {
    const filter = { createdAfter: NOW + 100, createdBefore: NOW + USERS - 100 }
    for (const sort of [parseSort('createdAt'), parseSort('-createdAt')]) {
      for (const after of [null, { key: NOW + 5_000, id: 'x' }]) {
        const plan = await explain(whole, pageStatement({ filter, sort, after, limit: 21 }), {
          readsAll: true,
        })
        t.match(plan, /users_by_created_at on users.*\n +Index Cond: .*created_at > .*created_at < /)
        t.notMatch(plan, 'Sort')
      }
    }
  })

  whole.test('few users of a creation time are found by its index, in any order', async t => {
    for (const filter of [
      { createdAfter: NOW + USERS - 30 },
      { createdAfter: NOW + 5_000, createdBefore: NOW + 5_030 },
      { lastRequestBefore: NOW + 30 },
    ]) {
      for (const { title, statement } of statementsOf(filter)) {
        const plan = await explain(whole, statement, { readsAll: true })
        t.match(plan, /users_by_created_at on users/, `${title} ${JSON.stringify(filter)}`)
        t.match(plan, /Index Cond: .*created_at/, `${title} ${JSON.stringify(filter)}`)
      }
    }
  })

  whole.test('users with a role are found by its index, in any order and with any filter', async t => {
    const others: UserFilter[] = [
      {},
      { disabled: false },
      { search: 'first1', searchEmail: true },
      { createdAfter: NOW + 100, createdBefore: NOW + USERS - 100 },
      { lastRequestAfter: NOW + 100 },
    ]
    for (const other of others)
      for (const { title, statement } of statementsOf({ ...other, role: 'few' })) {
        const plan = await explain(whole, statement, { readsAll: true })
        t.match(
          plan,
          /user_roles_pkey.*\n +(.*\n +)?Index Cond: .*role = 'few'/,
          `${title} ${JSON.stringify(other)}`,
        )
        t.notMatch(plan, /Seq Scan on (users|user_roles)/, `${title} ${JSON.stringify(other)}`)
      }
  })

  whole.test(
    'the order of creation is that of the index of roles, however many users have the role',
    async t => {
      for (const role of ['few', 'many'])
        for (const filter of [{ role }, { role, createdAfter: NOW + 100 }])
          for (const sort of [parseSort('createdAt'), parseSort('-createdAt')])
            for (const after of [null, { key: NOW + 5_000, id: 'x' }]) {
              const plan = await explain(whole, pageStatement({ filter, sort, after, limit: 21 }), {
                readsAll: true,
              })
              t.notMatch(plan, /Sort|Seq Scan/, `${role} ${JSON.stringify(sort)}`)
              t.match(plan, /user_roles/)
            }
      for (const { title, statement } of statementsOf({ role: 'many' }).slice(1)) {
        const plan = await explain(whole, statement, { readsAll: true })
        t.notMatch(plan, /Seq Scan on users/, title)
      }
    },
  )

  whole.test('a page of an export is read from the index of creation', async t => {
    const values = [NOW + 5_000, '', 500]
    const plan = await explain(whole, { text: EXPORT_USERS, values }, { readsAll: true })
    t.match(plan, /Index Scan using users_by_created_at on users/)
    t.notMatch(plan, /Sort|Seq Scan/)
  })

  whole.test('few active users are found by their index, many along the list', async t => {
    for (const { title, statement } of statementsOf({ lastRequestAfter: NOW + USERS - 20 })) {
      const plan = await explain(whole, statement, { readsAll: true })
      t.match(plan, /Seq Scan on last_requests.*\n +Filter: \(at > /, title)
      t.match(plan, /users_pkey on users/, `${title}: each of them by number`)
    }
    for (const filter of [{ lastRequestAfter: NOW + 100 }, { lastRequestBefore: NOW + USERS }]) {
      for (const { title, statement } of statementsOf(filter).slice(1)) {
        const plan = await explain(whole, statement, { readsAll: true })
        t.match(plan, /Index Scan (Backward )?using users_by_/, `${title} ${JSON.stringify(filter)}`)
        t.notMatch(plan, 'Sort', `${title} ${JSON.stringify(filter)}`)
      }
    }
  })
})
