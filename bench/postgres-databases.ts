/** Databases of a temporary PostgreSQL server. */
import { spawn } from 'node:child_process'
import { Connection, connectionOptions } from '#storage/postgres/connection'
import { startPostgres } from '../scripts/postgres-server.ts'

if (import.meta.main) {
  const starting = startPostgres({ durable: true })
  process.once('disconnect', async () => (await starting).stop())
  const { url } = await starting
  if (process.connected) process.send?.(url)
}

/** Starts the server in another process, which stops it after the bench exits, even if the bench is killed. */
const startServer = async (): Promise<string> => {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  // In its own process group, so that an interrupt from the terminal reaches only the bench.
  const child = spawn(process.execPath, [import.meta.filename], {
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

/** @returns the rows of a query, which may take longer than the service lets one take. */
export const query = async <Row extends object>(url: string, text: string): Promise<readonly Row[]> => {
  const client = new Connection({ ...connectionOptions(url), statementTimeout: 0, query_timeout: 0 })
  await client.connect()
  try {
    return (await client.query<Row>(text)).rows
  } finally {
    await client.end()
  }
}

let server: Promise<string> | null = null
let databases = 0

/** @returns the URL of a new, empty database. */
export const createPostgresDatabase = async (): Promise<string> => {
  server ??= startServer()
  const url = new URL(await server)
  databases += 1
  const name = `bench_${databases}`
  await query(url.href, `CREATE DATABASE ${name}`)
  url.pathname = name
  return url.href
}
