/**
 * Runs a command with `TEST_DATABASE_URL`. If it is not set, starts a temporary server and stops it afterwards.
 * `node scripts/with-postgres.ts tap`
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { startPostgres } from './postgres-server.ts'

const [command = '', ...args] = process.argv.slice(2)
const given = process.env.TEST_DATABASE_URL || undefined
const server = given === undefined ? await startPostgres() : null
const TEST_DATABASE_URL = given ?? server?.url
try {
  const child = spawn(command, args, { env: { ...process.env, TEST_DATABASE_URL }, stdio: 'inherit' })
  // The terminal interrupts the command too: wait for its exit.
  process.on('SIGINT', () => undefined)
  process.on('SIGTERM', () => child.kill())
  const [code] = (await once(child, 'exit')) as [number | null]
  process.exitCode = code ?? 1
} finally {
  await server?.stop()
}
