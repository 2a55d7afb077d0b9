/** Opens SQLite stores for tests. */
import { join } from 'node:path'
import type { Test } from 'tap'
import { BUILT_IN_FEATURES } from '../../src/built-in-features.ts'
import { type Connection, openDatabase } from '../../src/storage/sqlite/database.ts'
import { openSqliteStorage } from '../../src/storage/sqlite/storage.ts'
import type { Storage } from '../../src/storage/storage.ts'
import { temporaryFolder } from '../support/build.ts'

const files = new WeakMap<Test, string>()

/** The database of a test, in a folder that is removed with it. */
export const fileOf = (t: Test): string => {
  const file = files.get(t) ?? join(temporaryFolder(t), 'store', 'test.db')
  files.set(t, file)
  return file
}

export const open = async (t: Test): Promise<Storage> => {
  const storage = await openSqliteStorage(fileOf(t), BUILT_IN_FEATURES)
  t.teardown(() => storage.close())
  return storage
}

/** A connection such as another process or a command line tool has. */
export const connect = (t: Test, file = fileOf(t)): Connection => {
  const connection = openDatabase(file, 5_000)
  t.teardown(() => connection.close())
  return connection
}
