/** Opens PostgreSQL stores for tests. */
import pg from 'pg'
import type { Test } from 'tap'
import { openPostgresStorage } from '#core/store/postgres'
import type { Storage } from '#core/store/store'
import { allFeatures } from '#features/built-in'
import type { Statement } from '#storage/postgres/database'
import { createDatabase, newDatabase, query } from '../support/postgres.ts'

const CONNECTIONS = 10

const urls = new WeakMap<Test, Promise<string>>()

/** The database of the test has no schema. Call it before the database is used. */
export const beginEmpty = (t: Test): void => void urls.set(t, createDatabase(t))

/** The database of a test, with the schema of the service unless {@link beginEmpty} was called. */
export const urlOf = (t: Test): Promise<string> => {
  const url = urls.get(t) ?? newDatabase(t)
  urls.set(t, url)
  return url
}

export const open = async (t: Test): Promise<Storage> => {
  const storage = await openPostgresStorage(await urlOf(t), CONNECTIONS, allFeatures())
  t.teardown(() => storage.close())
  return storage
}

/** Runs one statement beside the service, like an administrator's tool. */
export const ask = async (t: Test, text: string): Promise<Record<string, unknown>[]> =>
  query(await urlOf(t), text)

const planners = new WeakMap<Test, Promise<pg.Client>>()

/** A connection for plans, after the rows of the test have been analysed: 0.1 s of a core with ten thousand users. */
const openPlanner = async (t: Test): Promise<pg.Client> => {
  const client = new pg.Client({ connectionString: await urlOf(t) })
  t.teardown(() => client.end())
  await client.connect()
  await client.query('ANALYZE')
  return client
}

/**
 * PostgreSQL's plan of a statement; by default without sequential scans and sorts, as on a large table. Later plans of a test do not know of
 * rows that it adds after the first.
 */
export const explain = async (
  t: Test,
  { text, values }: Statement,
  { readsAll = false } = {},
): Promise<string> => {
  const planner = planners.get(t) ?? openPlanner(t)
  planners.set(t, planner)
  const client = await planner
  const setting = readsAll ? 'on' : 'off'
  await client.query(`SET enable_seqscan = ${setting}; SET enable_sort = ${setting}`)
  const { rows } = await client.query({ text: `EXPLAIN ${text}`, values: [...values] })
  return rows.map(row => row['QUERY PLAN']).join('\n')
}
