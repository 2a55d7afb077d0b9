/** Operations whose transaction the server has rolled back because of a concurrent one (docs/design.md, "Storage"). */
import pg from 'pg'
import t, { type Test } from 'tap'
import type { AccountFeature } from '#core/store/account-feature'
import { openPostgresStorage } from '#core/store/postgres'
import { firstRow, invalidatesNothing, type Steps, type Write } from '#feature/declaration'
import { createDatabase, query } from '../support/postgres.ts'
import { until } from '../support/until.ts'

/** Fails with the code while fewer than `failures` attempts have failed. Sequences are not rolled back. */
function* conflict(code: string, failures: number): Steps<Write<number>> {
  yield { text: 'INSERT INTO attempts DEFAULT VALUES', values: [] }
  const attempt = yield* firstRow<{ number: number }>({
    text: `SELECT nextval('attempt')::integer AS number`,
    values: [],
  })
  const number = attempt?.number ?? 0
  if (number <= failures) yield { text: 'SELECT fail($1)', values: [code] }
  return invalidatesNothing(number)
}

/** Another session holds the gate until two operations have their first lock, so that each then waits for the other's. */
const GATE = 3

function* lockBoth(first: number, second: number): Steps<Write<string>> {
  yield { text: 'INSERT INTO attempts DEFAULT VALUES', values: [] }
  yield { text: 'SELECT pg_advisory_xact_lock($1)', values: [first] }
  yield { text: 'SELECT pg_advisory_xact_lock_shared($1)', values: [GATE] }
  yield { text: 'SELECT pg_advisory_xact_lock($1)', values: [second] }
  return invalidatesNothing('locked')
}

const feature: AccountFeature = {
  name: 'conflicts',
  module: import.meta.url,
  operations: { conflict, lockBoth },
}

interface Conflicts {
  conflict(code: string, failures: number): Promise<number>
  lockBoth(first: number, second: number): Promise<string>
}

const setUp = async (t: Test, { provokesDeadlocks = false } = {}) => {
  const url = await createDatabase(t, { provokesDeadlocks })
  await query(
    url,
    `CREATE TABLE attempts (id integer GENERATED ALWAYS AS IDENTITY); CREATE SEQUENCE attempt;
     CREATE FUNCTION fail(code text) RETURNS void LANGUAGE plpgsql AS
       $$ BEGIN RAISE EXCEPTION 'provoked' USING ERRCODE = code; END $$`,
  )
  const storage = await openPostgresStorage(url, 2, [feature])
  t.teardown(() => storage.close())
  const stored = async () => (await query(url, 'SELECT FROM attempts')).length
  return { url, stored, operations: storage.features.conflicts as unknown as Conflicts }
}

/** Only in this database: the view also has the locks of others on the server. */
const WAITING = `SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = database
  WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted`

t.test('postgres: an operation that is rolled back as a conflict is repeated', async t => {
  for (const code of ['40P01', '40001']) {
    const { operations, stored } = await setUp(t)
    t.equal(await operations.conflict(code, 2), 3)
    t.equal(await stored(), 1, 'what the attempts before have written is rolled back')
  }
})

t.test('postgres: the third conflict is final', async t => {
  const { operations, stored } = await setUp(t)
  await t.rejects(operations.conflict('40P01', 100), {
    code: 'storeUnavailable',
    cause: { code: '40P01' },
  })
  t.equal(await operations.conflict('40P01', 3), 4, 'there were three attempts')
  t.equal(await stored(), 1)
})

t.test('postgres: another failure is not repeated', async t => {
  const { operations } = await setUp(t)
  await t.rejects(operations.conflict('55P03', 1), { cause: { code: '55P03' } })
  t.equal(await operations.conflict('55P03', 1), 2)
})

t.test('postgres: two operations that deadlock both succeed', async t => {
  const { url, operations, stored } = await setUp(t, { provokesDeadlocks: true })
  const gate = new pg.Client({ connectionString: url })
  await gate.connect()
  t.teardown(() => gate.end())
  await gate.query(`SELECT pg_advisory_lock(${GATE})`)
  const both = Promise.all([operations.lockBoth(1, 2), operations.lockBoth(2, 1)])
  const waiting = async () => (await gate.query(WAITING)).rows
  await until(waiting, ({ length }) => length === 2, 10_000)
  await gate.query(`SELECT pg_advisory_unlock(${GATE})`)
  t.strictSame(await both, ['locked', 'locked'])
  t.equal(await stored(), 2)
  const deadlocks = async () =>
    (
      await query(url, 'SELECT deadlocks::integer FROM pg_stat_database WHERE datname = current_database()')
    )[0]
  t.strictSame(await until(deadlocks, found => found?.deadlocks === 1, 10_000), { deadlocks: 1 })
})
