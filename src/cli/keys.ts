import { randomBytes } from 'node:crypto'
import type { Command } from 'commander'
import { print } from './output.ts'

/** As many as a signature with HMAC-SHA256 can use (RFC 7518 §3.2). */
const BYTES = 32

export const keysCommands = (program: Command): void => {
  program
    .command('keys')
    .description('Keys and secrets')
    .command('new')
    .description('Print a new strong key, fit for ADMIN_KEY and for JWT_SECRET; it is kept nowhere')
    .option('--json', 'write it as one line of JSON, {"key":"…"}')
    .action(({ json }: { json?: boolean }) => {
      const key = randomBytes(BYTES).toString('base64url')
      print(json, { key }, [key])
    })
}
