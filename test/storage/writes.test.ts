/** A write that does not state what it invalidates does not compile (DESIGN §7). `npm run types` checks the marked lines. */
import t from 'tap'
import type { Database } from '../../src/storage/postgres/database.ts'
import type { Operations } from '../../src/storage/sqlite/operations.ts'
import type { Write } from '../../src/storage/write.ts'
import { invalidates, invalidatesNothing, refusedFor } from '../../src/storage/write.ts'

type Operation = (...args: never[]) => Write<unknown>

t.test('a PostgreSQL transaction and a SQLite operation return a Write', t => {
  const transactions = (database: Database) => [
    () => database.transaction(async () => invalidates('id', 'changed')),
    () => database.transaction(async () => invalidatesNothing('added')),
    () => database.transaction(async () => refusedFor('id', 'refused')),
    // @ts-expect-error the result alone is no Write
    () => database.transaction(async () => 'changed'),
  ]
  t.type(transactions, 'function')
  const operations: Record<string, Operation> = {
    stated: () => invalidates('id', true),
    // @ts-expect-error the result alone is no Write
    omitted: () => true,
  }
  t.ok(operations.stated)
  const every: Operations extends Record<string, Operation> ? true : false = true
  t.ok(every)
  t.same(invalidates('id', 1), { result: 1, evicts: 'id', notifies: true })
  t.same(refusedFor('id', 1), { result: 1, evicts: 'id', notifies: false })
  t.same(invalidatesNothing(1), { result: 1, evicts: null, notifies: false })
  t.end()
})
