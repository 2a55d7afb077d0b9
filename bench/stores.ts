/** Stores with users, filled without HTTP and hashing: a million users take about a minute. */
import { randomBytes } from 'node:crypto'
import { AccessTokens } from '#core/auth/access-tokens'
import { allFeatures } from '#features/built-in'
import { loadConfig } from '#process/config/config'
import { shuffled } from './statistics.ts'
import { addApiKeys } from './stores/api-keys.ts'
import { createPostgresDatabase } from './stores/postgres.ts'
import { createSqliteDatabase } from './stores/sqlite.ts'

export type Environment = Readonly<Record<string, string>>

export interface Store {
  /** The environment of a service on this store. */
  readonly environment: Environment
  /**
   * Access tokens of so many users, evenly spread over all users, in random order.
   * @param env settings of the service that accepts them, besides the environment.
   */
  tokens(count: number, env?: Environment): Promise<readonly string[]>
  /** As {@link tokens}, new API keys of the users. */
  apiKeys(count: number): Promise<readonly string[]>
}

const ENGINES = { sqlite: createSqliteDatabase, postgres: createPostgresDatabase }

export type Engine = keyof typeof ENGINES

export const isEngine = (name: string): name is Engine => Object.hasOwn(ENGINES, name)

export const createStore = async (engine: Engine, users: number): Promise<Store> => {
  const { location, readSessions } = await ENGINES[engine](users)
  const url = location.engine === 'sqlite' ? `sqlite:${location.file}` : location.url
  const environment = { DATABASE_URL: url, JWT_SECRET: randomBytes(48).toString('base64url') }
  return {
    environment,
    async tokens(count, env = {}) {
      const issuer = AccessTokens.from(loadConfig({ ...environment, ...env }, allFeatures()))
      const sessions = await readSessions(Math.floor(users / count))
      return shuffled(sessions.map(session => issuer.issue(session)))
    },
    async apiKeys(count) {
      const sessions = await readSessions(Math.floor(users / count))
      return shuffled(await addApiKeys(location, sessions))
    },
  }
}
