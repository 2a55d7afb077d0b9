/** The secrets that sign access tokens, and where the embedded store's own one is kept. */
import { createHmac, randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

export interface SigningKey {
  /** Names the key in a token's header, so that secrets can be rotated; tells nothing about the secret. */
  readonly id: string
  readonly secret: string
}

export interface SigningKeys {
  readonly current: SigningKey
  /** Still accepted, no longer used to sign. */
  readonly previous: SigningKey | null
}

const signingKey = (secret: string): SigningKey => ({
  id: createHmac('sha256', secret).update('gatehouse key id').digest('base64url').slice(0, 8),
  secret,
})

export const signingKeys = (secret: string, previous: string | null): SigningKeys => ({
  current: signingKey(secret),
  previous: previous === null ? null : signingKey(previous),
})

const MIN_BYTES = 32

/** Where the secret is kept that the embedded store's service made for itself. */
export const keptSecretFile = (databaseFile: string): string => `${databaseFile}.jwt-secret`

/** Puts a directory's entries on disk: a synced file without its entry is gone after a power cut. Windows has no such call. */
export const syncDirectory = (directory: string): void => {
  if (process.platform === 'win32') return
  const handle = openSync(directory, 'r')
  fsyncSync(handle)
  closeSync(handle)
}

/** Writes and syncs a new secret, then links it into place: two processes that start at once end up with the same one. */
const create = (file: string): void => {
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
 * The secret kept in `file`, made at the first start and readable by its owner alone (DESIGN §5).
 * @throws {Error} when the file is there but is no secret: a new one would end every session without a word.
 */
export const keptSecret = (file: string): string => {
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
    create(file)
    secret = read()
  }
  if (secret === undefined || Buffer.byteLength(secret) < MIN_BYTES) {
    const message = `${file} should hold the secret of the access tokens, and does not`
    throw Object.assign(new Error(message), { code: 'BAD_SECRET_FILE' })
  }
  return secret
}

/** A secret, or the file that {@link keptSecret} keeps one in. */
export type SecretSource = { readonly value: string } | { readonly keptIn: string }

/** @throws {Error} as {@link keptSecret} */
export const readSecret = (source: SecretSource): string =>
  'value' in source ? source.value : keptSecret(source.keptIn)
