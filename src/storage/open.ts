import type { SeedStore } from './seed.ts'
import type { Storage } from './storage.ts'

/** Where users are kept: in a file of this machine, or in a database that many instances share. */
export type StorageLocation =
  | { readonly engine: 'sqlite'; readonly file: string }
  | { readonly engine: 'postgres'; readonly url: string }

/**
 * Opens the store, and loads the one engine that it needs.
 * @param connections to PostgreSQL, how many may be used at once.
 * @throws {Error} when it cannot be opened or brought up to date.
 */
export const openStorage = async (location: StorageLocation, connections: number): Promise<Storage> => {
  if (location.engine === 'sqlite') {
    const { openSqliteStorage } = await import('./sqlite/storage.ts')
    return openSqliteStorage(location.file)
  }
  const { openPostgresStorage } = await import('./postgres/storage.ts')
  return openPostgresStorage(location.url, connections)
}

/**
 * Opens a store to be filled, which is made and brought up to date like the service's.
 * @throws {Error} when it cannot be.
 */
export const openSeedStore = async (location: StorageLocation): Promise<SeedStore> => {
  if (location.engine === 'sqlite') {
    const { openSqliteSeedStore } = await import('./sqlite/seed.ts')
    return openSqliteSeedStore(location.file)
  }
  const { openPostgresSeedStore } = await import('./postgres/seed.ts')
  return openPostgresSeedStore(location.url)
}
