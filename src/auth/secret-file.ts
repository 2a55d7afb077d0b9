/** The secret that the service generates beside its SQLite file if `JWT_SECRET` is not set (DESIGN §5). */
import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { syncDirectory } from '../files.ts'

const MIN_BYTES = 32

export const secretFileOf = (databaseFile: string): string => `${databaseFile}.jwt-secret`

/** Writes and syncs a new secret, then links it to its name, so that two processes that start at once use the same secret. */
const createSecret = (file: string): void => {
  const draft = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`
  const handle = openSync(draft, 'wx', 0o600)
  writeSync(handle, `${randomBytes(48).toString('base64url')}\n`)
  fsyncSync(handle)
  closeSync(handle)
  try {
    linkSync(draft, file)
    syncDirectory(dirname(file))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(draft)
  }
}

/**
 * The secret in `file`. The first start creates it, readable by its owner only (DESIGN §5).
 * @throws {Error} `BAD_SECRET_FILE` if the file exists without a secret: a new one would end every session unnoticed.
 */
export const readOrCreateSecret = (file: string): string => {
  const read = (): string | undefined => {
    try {
      return readFileSync(file, 'utf8').trim()
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      return undefined
    }
  }
  let secret = read()
  if (secret === undefined) {
    createSecret(file)
    secret = read()
  }
  if (secret === undefined || Buffer.byteLength(secret) < MIN_BYTES) {
    const message = `${file} must contain the secret of the access tokens (at least ${MIN_BYTES} bytes)`
    throw Object.assign(new Error(message), { code: 'BAD_SECRET_FILE' })
  }
  return secret
}

/** A secret, or the file of {@link readOrCreateSecret}. */
export type SecretSource = { readonly value: string } | { readonly file: string }

/** @throws {Error} as {@link readOrCreateSecret} */
export const readSecret = (source: SecretSource): string =>
  'value' in source ? source.value : readOrCreateSecret(source.file)
