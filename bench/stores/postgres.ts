/** Databases of a temporary PostgreSQL server. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import type pg from 'pg'
import type { Session } from '#core/auth/session'
import { Connection, connectionOptions } from '#storage/postgres/connection'
import { fill } from './fill.ts'
import type { FilledDatabase } from './filled-database.ts'
import { selectSessions } from './sample-users.ts'

const PROGRAM = join(import.meta.dirname, 'postgres-process.ts')

let server: Promise<string> | null = null
let databases = 0

/** Starts the server in another process, which stops it after the bench exits, even if the bench is killed. */
const startServer = async (): Promise<string> => {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  // In its own process group, so that an interrupt from the terminal reaches only the bench.
  const child = spawn(process.execPath, [PROGRAM], {
    detached: true,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  child.once('message', resolve)
  child.once('exit', code => reject(new Error(`PostgreSQL did not start (${code})`)))
  const url = await promise
  child.unref()
  child.channel?.unref()
  return url
}

/** Connects without the service's statement timeouts. */
const connected = async <Result>(
  url: string,
  use: (client: pg.Client) => Promise<Result>,
): Promise<Result> => {
  const client = new Connection({ ...connectionOptions(url), statementTimeout: 0, query_timeout: 0 })
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

const createDatabase = async (): Promise<string> => {
  server ??= startServer()
  const url = new URL(await server)
  databases += 1
  const name = `bench_${databases}`
  await connected(url.href, client => client.query(`CREATE DATABASE ${name}`))
  url.pathname = name
  return url.href
}

export const createPostgresDatabase = async (users: number): Promise<FilledDatabase> => {
  const url = await createDatabase()
  const location = { engine: 'postgres', url } as const
  await fill(location, users)
  // Now, so that no checkpoint runs during a measurement.
  await connected(url, client => client.query('CHECKPOINT'))
  return {
    location,
    readSessions: every =>
      connected(url, async client => (await client.query<Session>(selectSessions(every))).rows),
  }
}
