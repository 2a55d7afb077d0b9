/** Opens a store with the engine of its location. */
import type { StorageLocation } from '#storage/location'
import type { PostgresOptions } from '#storage/postgres/engine'
import type { AccountFeature } from './account-feature.ts'
import type { SeedStore } from './seed.ts'
import type { Storage } from './store.ts'

/**
 * Opens the store. Loads only the engine that it needs.
 * @param connections the maximum number of connections to PostgreSQL.
 * @throws {FeatureError} if a feature cannot be used as it is declared; {Error} if the store cannot be opened or migrated.
 */
export const openStorage = async (
  location: StorageLocation,
  connections: number,
  features: readonly AccountFeature[],
  options: PostgresOptions = { replica: null, waits: true },
): Promise<Storage> => {
  if (location.engine === 'sqlite') {
    const { openSqliteStorage } = await import('./sqlite.ts')
    return openSqliteStorage(location.file, features)
  }
  const { openPostgresStorage } = await import('./postgres.ts')
  return openPostgresStorage(location.url, connections, features, options)
}

/**
 * Opens a store for seeding, created and migrated like the service's.
 * @throws {Error} if it cannot be opened or migrated.
 */
export const openSeedStore = async (
  location: StorageLocation,
  features: readonly AccountFeature[],
): Promise<SeedStore> => {
  if (location.engine === 'sqlite') {
    const { openSqliteSeedStore } = await import('./sqlite-seed.ts')
    return openSqliteSeedStore(location.file, features)
  }
  const { openPostgresSeedStore } = await import('./postgres-seed.ts')
  return openPostgresSeedStore(location.url, features)
}
