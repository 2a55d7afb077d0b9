/** A PostgreSQL database for each test, on the server that `npm test` started or, for a file alone, on one of its own. */
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { startPostgres } from '../../scripts/postgres-server.ts'
import type { Context } from './build.ts'

let own: Promise<string> | null = null

const startOwn = async (): Promise<string> => {
  const server = await startPostgres()
  let stopping = false
  // All tests of the file are done: nothing else is left to wait for.
  process.on('beforeExit', () => {
    if (!stopping) void server.stop()
    stopping = true
  })
  return server.url
}

const serverUrl = (): Promise<string> => {
  const given = process.env.TEST_DATABASE_URL
  if (given) return Promise.resolve(given)
  own ??= startOwn()
  return own
}

/** Runs one statement on a connection of its own. */
export const query = async (url: string, text: string): Promise<Record<string, unknown>[]> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

/** An empty database, gone with the test. @returns its URL. */
export const createDatabase = async (t: Context): Promise<string> => {
  const server = await serverUrl()
  const name = `gatehouse_test_${randomBytes(8).toString('hex')}`
  await query(server, `CREATE DATABASE ${name}`)
  t.teardown(() => query(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`))
  const url = new URL(server)
  url.pathname = name
  return url.href
}
