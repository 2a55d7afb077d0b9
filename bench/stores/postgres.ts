/** Databases of a throw-away server, filled by statements of thousands of users each. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import pg from 'pg'
import type { Session } from '../../src/auth/session.ts'
import { connectionOptions } from '../../src/storage/postgres/database.ts'
import { migrate } from '../../src/storage/postgres/migrate.ts'
import { searchKey } from '../../src/users/user.ts'
import type { FilledDatabase } from './filled-database.ts'
import { type Sample, samples, selectSessions } from './sample-users.ts'

const PROGRAM = join(import.meta.dirname, 'postgres-process.ts')

let server: Promise<string> | null = null
let databases = 0

/** Of a process of its own, which outlives the bench by as long as it takes to end the server, whatever the bench died of. */
const startServer = async (): Promise<string> => {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  // In a process group of its own: an interrupt from the terminal is for the bench alone.
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

/** Without the limits that the service has: statements take as long as they take here. */
const connected = async <Result>(
  url: string,
  use: (client: pg.Client) => Promise<Result>,
): Promise<Result> => {
  const client = new pg.Client({ ...connectionOptions(url), statement_timeout: 0, query_timeout: 0 })
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

const ADD_USERS = `WITH added AS (
    INSERT INTO users (id, email, password_hash, first_name, last_name, first_name_key, last_name_key,
                       email_verified, disabled, created_at, updated_at)
    SELECT id, email, password_hash, first_name, last_name, first_name_key, last_name_key,
           email_verified, disabled, created_at, updated_at
    FROM json_populate_recordset(NULL::users, $1) RETURNING key, id
  )
  INSERT INTO sessions (id, user_key, created_at, expires_at, last_request_at)
  SELECT session.id, key, session."createdAt", session."expiresAt", session."lastRequestAt"
  FROM json_to_recordset($2) AS session
    (id text, "userId" text, "createdAt" bigint, "expiresAt" bigint, "lastRequestAt" bigint)
  JOIN added ON added.id = session."userId"`

const toRow = ({ user }: Sample) => ({
  id: user.id,
  email: user.email,
  password_hash: user.passwordHash,
  first_name: user.firstName,
  last_name: user.lastName,
  first_name_key: searchKey(user.firstName),
  last_name_key: searchKey(user.lastName),
  email_verified: Number(user.emailVerified),
  disabled: Number(user.disabled),
  created_at: user.createdAt,
  updated_at: user.updatedAt,
})

const addUsers = (url: string, count: number): Promise<void> =>
  connected(url, async client => {
    for (const slice of samples(count)) {
      const values = [slice.map(toRow), slice.map(({ session }) => session)]
      await client.query(
        ADD_USERS,
        values.map(value => JSON.stringify(value)),
      )
    }
    // Now, so that the server does neither by itself while something is measured.
    await client.query('VACUUM (ANALYZE)')
    await client.query('CHECKPOINT')
  })

export const createPostgresDatabase = async (users: number): Promise<FilledDatabase> => {
  const url = await createDatabase()
  await migrate(url)
  await addUsers(url, users)
  return {
    url,
    readSessions: every =>
      connected(url, async client => (await client.query<Session>(selectSessions(every))).rows),
  }
}
