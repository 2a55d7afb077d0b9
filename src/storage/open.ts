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
