/** Stores with users, filled without HTTP and hashing: a million users take about a minute. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { newId } from '#base/ids'
import { actingUser } from '#core/audit-log/event'
import { AccessTokens } from '#core/auth/access-tokens'
import { API_KEY_PREFIX, newOpaqueKey } from '#core/auth/opaque-key'
import { USER_SCOPES } from '#core/auth/scopes'
import { openSeedStore, openStorage } from '#core/store/open'
import type { ApiKeyStore } from '#features/api-keys/stored-api-keys'
import { allFeatures } from '#features/built-in'
import { loadConfig } from '#process/config/config'
import type { StorageLocation } from '#storage/location'
import { createPostgresDatabase, query } from './postgres-databases.ts'
import {
  type Environment,
  type Server,
  type StartOptions,
  startServer,
  temporaryFolder,
} from './processes.ts'
import { LIMITS, type SampleSession, samples, selectSessions } from './sample-users.ts'
import { shuffled } from './statistics.ts'

export interface Store {
  /** The environment of a service on this store. */
  readonly environment: Environment
  readonly location: StorageLocation
  /** The sessions of so many users, evenly spread over all users. Each user has one. */
  sessions(count: number): Promise<readonly SampleSession[]>
  /** Access tokens of so many users, evenly spread over all users, in random order. */
  tokens(count: number): Promise<readonly string[]>
  /** New API keys of so many users, evenly spread over all users, in random order. */
  apiKeys(count: number): Promise<readonly string[]>
}

export type Engine = StorageLocation['engine']

export const isEngine = (name: string): name is Engine => name === 'sqlite' || name === 'postgres'

/** Connections of a pool to PostgreSQL, for {@link addApiKeys}. */
const CONNECTIONS = 10

/** Keys that are added at a time, so that their writes share transactions. */
const SLICE = 1_000

/** Adds an API key to the user of each session. @returns the keys. */
const addApiKeys = async (
  location: StorageLocation,
  sessions: readonly SampleSession[],
): Promise<readonly string[]> => {
  const storage = await openStorage(location, CONNECTIONS, allFeatures())
  const { addApiKey } = storage.features['api-keys'] as ApiKeyStore
  const add = async ({ id: sessionId, userId }: SampleSession): Promise<string> => {
    const { text, digest, shownPrefix: prefix } = newOpaqueKey(API_KEY_PREFIX)
    const [id, now] = [newId(), Date.now()]
    const dates = { createdAt: now, expiresAt: null, lastUsedAt: null }
    const key = { id, name: 'bench', digest, prefix, scopes: Object.keys(USER_SCOPES), ...dates }
    const actor = actingUser(userId, null)
    const event = { id: newId(now), at: now, type: 'api-key.created', details: { apiKey: id }, actor, userId }
    const outcome = await addApiKey(key, sessionId, event)
    if (outcome !== 'added') throw new Error(`An API key could not be added: ${outcome}`)
    return text
  }
  const keys: string[] = []
  try {
    for (let from = 0; from < sessions.length; from += SLICE)
      keys.push(...(await Promise.all(sessions.slice(from, from + SLICE).map(add))))
  } finally {
    await storage.close()
  }
  return keys
}

const newLocation = async (engine: Engine): Promise<StorageLocation> =>
  engine === 'sqlite'
    ? { engine, file: join(temporaryFolder(), 'bench.db') }
    : { engine, url: await createPostgresDatabase() }

const readSessions = async (location: StorageLocation, every: number): Promise<readonly SampleSession[]> => {
  if (location.engine === 'postgres') return query(location.url, selectSessions(every))
  const database = new Database(location.file, { readonly: true })
  try {
    return database.prepare<[], SampleSession>(selectSessions(every)).all()
  } finally {
    database.close()
  }
}

/** Creates a store with so many users, each with a session. */
export const createStore = async (engine: Engine, users: number): Promise<Store> => {
  const location = await newLocation(engine)
  const seeds = await openSeedStore(location, allFeatures())
  for (const slice of samples(users)) await seeds.add(slice, LIMITS.idle)
  await seeds.finish()
  await seeds.close()
  // Now, so that no checkpoint runs during a measurement.
  if (location.engine === 'postgres') await query(location.url, 'CHECKPOINT')
  const url = location.engine === 'sqlite' ? `sqlite:${location.file}` : location.url
  const environment = { DATABASE_URL: url, JWT_SECRET: randomBytes(48).toString('base64url') }
  const sessions = (count: number): Promise<readonly SampleSession[]> =>
    readSessions(location, Math.floor(users / count))
  return {
    environment,
    location,
    sessions,
    async tokens(count) {
      const issuer = AccessTokens.from(loadConfig(environment, allFeatures()))
      return shuffled((await sessions(count)).map(session => issuer.issue(session)))
    },
    apiKeys: async count => shuffled(await addApiKeys(location, await sessions(count))),
  }
}

/** Starts the service like `npm start`, with production defaults and a store of users. */
export const startService = (
  { environment }: Store,
  env: Environment = {},
  options: StartOptions = {},
): Promise<Server> => startServer('src/server.ts', { ...environment, ...env }, options)
