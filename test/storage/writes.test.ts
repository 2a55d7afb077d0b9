/**
 * A write that does not state what it invalidates does not compile (docs/design.md, "Storage"). `npm run types` checks the marked lines.
 */
import t from 'tap'
import { operationsOf } from '#core/store/operations'
import type { prepareHandWritten } from '#core/store/sqlite-operations'
import { type Operation, type Query, query } from '#storage/operations/operation'
import {
  endsAccess,
  invalidates,
  invalidatesNothing,
  refusedFor,
  type UncachedWrite,
  type Write,
} from '#storage/operations/write'
import type { Database } from '#storage/postgres/database'

t.test('operations, PostgreSQL transactions and SQLite writes by hand return a Write', t => {
  const operations: Record<string, Operation> = {
    *stated() {
      yield { text: 'SELECT 1', values: [] }
      return invalidates('id', true)
    },
    // @ts-expect-error the result alone is no Write
    *omitted() {
      yield { text: 'SELECT 1', values: [] }
      return true
    },
  }
  t.ok(operations.stated)
  const statement = { text: 'DELETE FROM sessions', values: [] }
  const uncached: Query<UncachedWrite<boolean>>[] = [
    query(statement, () => invalidatesNothing(true)),
    // @ts-expect-error a statement without a transaction cannot notify the other instances
    query(statement, () => invalidates('id', true)),
  ]
  t.equal(uncached.length, 2)
  const transactions = (database: Database) => [
    () => database.transaction(async () => invalidates('id', 'changed')),
    () => database.transaction(async () => invalidatesNothing('added')),
    () => database.transaction(async () => refusedFor('id', 'refused')),
    // @ts-expect-error the result alone is no Write
    () => database.transaction(async () => 'changed'),
  ]
  t.type(transactions, 'function')
  type HandWritten = ReturnType<typeof prepareHandWritten>
  const byHand: HandWritten extends Record<string, (...args: never[]) => Write<unknown>> ? true : false = true
  t.ok(byHand)
  t.same(invalidates('id', 1), { result: 1, evicts: ['id'], notifies: true, endsAccess: false })
  t.same(endsAccess('id', 1), { result: 1, evicts: ['id'], notifies: true, endsAccess: true })
  t.same(refusedFor('id', 1), { result: 1, evicts: ['id'], notifies: false, endsAccess: false })
  t.same(invalidatesNothing(1), { result: 1, evicts: null, notifies: false, endsAccess: false })
  t.end()
})

t.test('a feature with the name of a store replaces none of its operations', t => {
  const core = operationsOf([])
  const feature = {
    name: 'users',
    module: import.meta.url,
    operations: {
      *update() {
        yield { text: 'SELECT 1', values: [] }
        return invalidatesNothing('of the feature')
      },
    },
  }
  t.strictSame([...operationsOf([feature]).keys()], [...core.keys(), 'users.update'])
  t.ok(core.has('users:update'))
  t.end()
})
