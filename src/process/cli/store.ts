/** Use cases on the store that the environment names: without hashing threads, caches and background work. */
import { existsSync } from 'node:fs'
import { DeferredWork } from '#base/concurrency/deferred-work'
import { ConfigError } from '#base/settings/readers'
import { FeatureMetrics } from '#base/statistics/feature-metrics'
import { openNoCache } from '#core/auth/feature-caches'
import { NO_MAILS } from '#core/mail/mailer'
import { BreachedPasswords } from '#core/passwords/breached-passwords'
import { hash } from '#core/passwords/hashing-thread'
import { canonicalPassword } from '#core/passwords/policy'
import { noLoginThrottle } from '#core/rate-limits/login-throttle'
import { openStorage } from '#core/store/open'
import {
  type FeatureServicesDeps,
  finishRemovalOf,
  metricsOf,
  settingsOf,
  userScopesOf,
} from '#feature/assembly'
import { CommandError } from '#feature/commands/failure'
import { printStatus } from '#feature/commands/output'
import type { DatabaseOptions } from '#feature/declaration'
import { Keyring } from '#feature/encryption/keyring'
import { createFeatureDeps, createStoreServices, type StoreServices } from '#feature/store-services'
import { allFeatures } from '#features/built-in'
import type { StorageLocation } from '#storage/location'
import { encryptionKeysOf, siteOf } from '../config/config.ts'
import { type Environment, readSettings, type Settings } from '../config/read-settings.ts'
import type { Values } from '../config/settings.ts'

/** Nearly all commands run one query at a time. */
const CONNECTIONS = 1

/** The environment of the process, with `--database` instead of `DATABASE_URL`. */
export const environment = ({ database }: DatabaseOptions): Environment =>
  database === undefined
    ? process.env
    : { ...process.env, DATABASE_URL: database, DATABASE_URL_FILE: undefined }

/**
 * Reads the settings, without the checks of the whole configuration: most commands need no token secret, for example.
 * @throws {ConfigError} with all errors at once.
 */
export const readAll = (options: DatabaseOptions): Settings => {
  const read = readSettings(environment(options), settingsOf(allFeatures()))
  if (read.errors.length > 0) throw new ConfigError(read.errors)
  return read
}

/** The settings of the core. @throws {ConfigError} with all errors at once. */
export const settings = (options: DatabaseOptions): Values => readAll(options).values

/** Opening a mistyped path would create an empty store. */
const assertExists = (location: StorageLocation): void => {
  if (location.engine === 'sqlite' && !existsSync(location.file))
    throw new CommandError(`There is no file ${location.file}: the service creates it when it first starts`)
}

export interface Store extends StoreServices {
  /** What the services of features are created with. */
  readonly featureDeps: FeatureServicesDeps
}

/** Hashes on the main thread, which has nothing else to do. */
const hasher = { hash: async (password: string) => hash(canonicalPassword(password)) }

const noSignIn = async (): Promise<never> => {
  throw new Error('The command line signs nobody in')
}

/** What the command line does not have. */
const ABSENT = {
  loginThrottle: noLoginThrottle,
  openCache: openNoCache,
  ed25519Signer: () => null,
  clientTokens: () => null,
  memberships: () => null,
  keyFile: () => null,
  mails: NO_MAILS,
}
const ABSENT_USE_CASES = {
  signIns: { complete: noSignIn, remove: noSignIn, knownMethods: { methods: [], hasMailed: false } },
  emailAddresses: { sendVerification: async () => undefined },
  readKeptMetrics: async () => [],
}

const logger = { error: printStatus, warn: printStatus, info: printStatus }

/**
 * Runs `use` on the store. Running services notice the changes like those of other instances.
 * @throws {ConfigError}; {CommandError} if the file does not exist; {Error} if the store cannot be opened; errors of `use`.
 */
export const withStore = async (
  options: DatabaseOptions,
  use: (store: Store) => Promise<void>,
  connections = CONNECTIONS,
): Promise<void> => {
  const { values, featureSettings } = readAll(options)
  const { DATABASE_URL, BREACHED_PASSWORDS_URL, SESSION_LIFETIME, SESSION_IDLE } = values
  assertExists(DATABASE_URL)
  const features = allFeatures()
  const storage = await openStorage(DATABASE_URL, connections, features)
  const breachedPasswords = new BreachedPasswords(BREACHED_PASSWORDS_URL, error =>
    printStatus(`The password was not compared with breached ones: ${(error as Error).message}`),
  )
  const deferred = new DeferredWork(error => printStatus((error as Error).message))
  let createdKeyring: Keyring | null | undefined
  const keyring = (): Keyring | null => {
    createdKeyring ??= Keyring.from(encryptionKeysOf(values))
    return createdKeyring
  }
  const metrics = new FeatureMetrics(metricsOf(features)).recorders
  const userScopes = userScopesOf(features)
  const given = {
    ...{ keyring, logger, metrics, deferred, userScopes, clock: Date.now },
    ...{ settings: featureSettings, ...ABSENT },
  }
  const { deps, close } = createFeatureDeps(siteOf(values), storage, given)
  const services = createStoreServices({
    storage,
    features,
    featureSettings,
    hasher,
    breachedPasswords,
    keyring,
    limits: { lifetime: SESSION_LIFETIME, idle: SESSION_IDLE },
    clock: Date.now,
    mails: NO_MAILS,
    finishRemoval: finishRemovalOf(features, deps),
    // The operator may do everything.
    protectedRole: null,
  })
  const { users, sessions } = services
  const featureDeps: FeatureServicesDeps = { ...deps, ...ABSENT_USE_CASES, users, sessions }
  try {
    await use({ ...services, featureDeps })
  } finally {
    await deferred.close()
    await close()
    await breachedPasswords.close()
    await storage.close()
  }
}
