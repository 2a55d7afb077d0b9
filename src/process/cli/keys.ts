/** `keys`: new keys and secrets. */
import { randomBytes } from 'node:crypto'
import type { Command } from 'commander'
import { oneOf } from '#base/settings/readers'
import { ASYMMETRIC_ALGORITHMS, type AsymmetricAlgorithm, newPrivateKey } from '#core/auth/private-key'
import { option } from '#feature/commands/options'
import { print } from '#feature/commands/output'

/** The size of a key: that of the output of HMAC-SHA256 (RFC 7518 §3.2). */
const BYTES = 32

interface NewKeyOptions {
  readonly algorithm?: AsymmetricAlgorithm
  readonly json?: true
}

export const keysCommands = (program: Command): void => {
  const keys = program.command('keys').description('Keys and secrets')
  keys
    .command('new')
    .description('Print a new strong key, for ADMIN_KEY, JWT_SECRET or ENCRYPTION_KEY; it is not stored')
    .addOption(
      option(
        '--algorithm <name>',
        `print a private key for JWT_PRIVATE_KEY instead: ${ASYMMETRIC_ALGORITHMS.join(' or ')}`,
        oneOf(...ASYMMETRIC_ALGORITHMS),
      ),
    )
    .option('--json', 'write it as one line of JSON, {"key":"…"}')
    .action(({ algorithm, json }: NewKeyOptions) => {
      const key = algorithm ? newPrivateKey(algorithm).trim() : randomBytes(BYTES).toString('base64url')
      print(json, { key }, [key])
    })
}
