/** The keys that the service generates beside its SQLite file if they are not set (docs/design.md, "Tokens and sessions"). */
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { syncDirectory } from '#base/files'
import {
  ASYMMETRIC_ALGORITHMS,
  type AsymmetricAlgorithm,
  CURVES,
  newPrivateKey,
  type PrivateKey,
  PrivateKeyError,
  parsePrivateKey,
} from './private-key.ts'

const MIN_BYTES = 32

const PRIVATE_KEY_SUFFIX = '.pem'

export const secretFileOf = (databaseFile: string): string => `${databaseFile}.jwt-secret`

/** The key that encrypts second factors (docs/design.md, "Second factors"). */
export const encryptionKeyFileOf = (databaseFile: string): string => `${databaseFile}.encryption-key`

/** One file for each algorithm: after a change of the algorithm, the former key still verifies. */
export const privateKeyFileOf = (databaseFile: string, algorithm: AsymmetricAlgorithm): string =>
  `${databaseFile}.jwt-${algorithm.toLowerCase()}${PRIVATE_KEY_SUFFIX}`

/** A private key that a feature generates. @param name in lower case. */
export const featureKeyFileOf = (databaseFile: string, name: string): string =>
  `${databaseFile}.${name}${PRIVATE_KEY_SUFFIX}`

/** The text of a file without white space at both ends; `null` if there is none. */
const readIfExists = (file: string): string | null => {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return null
  }
}

/** Links the synced file to its name, so that two processes that start at once use the same secret. */
const createFile = (file: string, secret: string): void => {
  const draft = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`
  const handle = openSync(draft, 'wx', 0o600)
  writeSync(handle, `${secret.trim()}\n`)
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
 * The text of the file of a generated key. The first start creates it, readable by its owner only.
 * @param newSecret makes the key.
 */
export const readOrCreate = (file: string, newSecret: () => string): string => {
  const existing = readIfExists(file)
  if (existing !== null) return existing
  createFile(file, newSecret())
  return readIfExists(file) ?? ''
}

const badFile = (message: string): Error => Object.assign(new Error(message), { code: 'BAD_SECRET_FILE' })

const checkSecret = (file: string, secret: string): string => {
  if (Buffer.byteLength(secret) < MIN_BYTES)
    throw badFile(`${file} must contain a secret of at least ${MIN_BYTES} bytes`)
  return secret
}

const checkPrivateKey = (file: string, pem: string, algorithm: AsymmetricAlgorithm): PrivateKey => {
  const privateKey = parseFile(file, pem)
  if (privateKey.algorithm !== algorithm)
    throw badFile(`${file} must contain the ${CURVES[algorithm]} key of the access tokens`)
  return privateKey
}

const parseFile = (file: string, pem: string): PrivateKey => {
  try {
    return parsePrivateKey(pem)
  } catch (error) {
    throw error instanceof PrivateKeyError ? badFile(`${file} ${error.message}`) : error
  }
}

/**
 * The secret in `file`, which the first start creates, readable by its owner only.
 * @throws {Error} `BAD_SECRET_FILE` if the file exists without a secret: a new one would end every session unnoticed.
 */
export const readOrCreateSecret = (file: string): string =>
  checkSecret(
    file,
    readOrCreate(file, () => randomBytes(48).toString('base64url')),
  )

export type SecretSource = { readonly value: string } | { readonly file: string }

/** @throws {Error} `BAD_SECRET_FILE` */
export const readSecret = (source: SecretSource): string =>
  'value' in source ? source.value : readOrCreateSecret(source.file)

/** `null` if there is no file. Creates none. @throws {Error} `BAD_SECRET_FILE` */
export const readExistingSecret = (source: SecretSource): string | null => {
  if ('value' in source) return source.value
  const secret = readIfExists(source.file)
  return secret === null ? null : checkSecret(source.file, secret)
}

/** A private key, or the database beside which generated ones are kept. */
export type PrivateKeySource = { readonly value: PrivateKey } | { readonly databaseFile: string }

/**
 * Without a setting, the first start creates the file, readable by its owner only.
 * @throws {Error} `BAD_SECRET_FILE` if it exists without a key of the algorithm.
 */
export const readPrivateKey = (source: PrivateKeySource, algorithm: AsymmetricAlgorithm): PrivateKey => {
  if ('value' in source) return source.value
  const file = privateKeyFileOf(source.databaseFile, algorithm)
  return checkPrivateKey(
    file,
    readOrCreate(file, () => newPrivateKey(algorithm)),
    algorithm,
  )
}

/** The given key, or those of all files that exist. Creates none. @throws {Error} `BAD_SECRET_FILE` */
export const readExistingPrivateKeys = (source: PrivateKeySource): PrivateKey[] => {
  if ('value' in source) return [source.value]
  return ASYMMETRIC_ALGORITHMS.flatMap(algorithm => {
    const file = privateKeyFileOf(source.databaseFile, algorithm)
    const pem = readIfExists(file)
    return pem === null ? [] : [checkPrivateKey(file, pem, algorithm)]
  })
}

/** Private keys beside a database, those of features too. */
const privateKeyFiles = (databaseFile: string): readonly string[] => {
  const folder = dirname(databaseFile)
  const names = existsSync(folder) ? readdirSync(folder) : []
  return names
    .filter(name => name.startsWith(`${basename(databaseFile)}.`) && name.endsWith(PRIVATE_KEY_SUFFIX))
    .sort()
    .map(name => join(folder, name))
}

export const generatedKeyFiles = (
  databaseFile: string,
): { kind: 'secret' | 'private key' | 'encryption key'; file: string }[] => [
  ...[
    { kind: 'secret' as const, file: secretFileOf(databaseFile) },
    { kind: 'encryption key' as const, file: encryptionKeyFileOf(databaseFile) },
  ].filter(({ file }) => existsSync(file)),
  ...privateKeyFiles(databaseFile).map(file => ({ kind: 'private key' as const, file })),
]
