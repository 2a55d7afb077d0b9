/** `keys`: new keys and secrets. */
import { randomBytes } from 'node:crypto'
import type { Command } from 'commander'
import { adminKeyCommands } from './admin-keys.ts'
import { print } from './output.ts'

/** As long as the output of HMAC-SHA256 (RFC 7518 §3.2). */
const BYTES = 32

export const keysCommands = (program: Command): void => {
  const keys = program.command('keys').description('Keys and secrets')
  keys
    .command('new')
    .description('Print a new strong key, for ADMIN_KEY or JWT_SECRET; it is not stored')
    .option('--json', 'write it as one line of JSON, {"key":"…"}')
    .action(({ json }: { json?: boolean }) => {
      const key = randomBytes(BYTES).toString('base64url')
      print(json, { key }, [key])
    })
  adminKeyCommands(keys)
}
