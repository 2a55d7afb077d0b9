/** Opens SQLite stores for tests. */
import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Test } from 'tap'
import { openSqliteStorage } from '#core/store/sqlite'
import type { Storage } from '#core/store/store'
import { allFeatures } from '#features/built-in'
import { type Connection, openDatabase } from '#storage/sqlite/database'
import type { OpenFiles } from '#storage/sqlite/database-file'
import { InvalidationReceiver, newInvalidationBuffer } from '#storage/sqlite/invalidation-ring'
import { Writer } from '#storage/sqlite/writer'
import { WriterOwner } from '#storage/sqlite/writer-owner'
import { temporaryFolder } from '../support/build.ts'
import { createMigratedFile } from '../support/sqlite.ts'
import { pooledWriter } from '../support/writer-pool.ts'

const files = new WeakMap<Test, string>()

/** The database of a test, in a folder that is removed with it. */
export const fileOf = (t: Test): string => {
  const file = files.get(t) ?? join(temporaryFolder(t), 'store', 'test.db')
  files.set(t, file)
  return file
}

/** Opens the database of the test, which has the schema, with the writer thread that the test process shares. */
export const open = async (t: Test): Promise<Storage> => {
  const file = fileOf(t)
  if (!existsSync(file)) {
    mkdirSync(dirname(file), { recursive: true })
    await createMigratedFile(file)
  }
  const storage = await openSqliteStorage(file, allFeatures(), pooledWriter)
  t.teardown(() => storage.close())
  return storage
}

/** A connection such as another process or a command line tool has. */
export const connect = (t: Test, file = fileOf(t)): Connection => {
  const connection = openDatabase(file, 5_000)
  t.teardown(() => connection.close())
  return connection
}

const OPERATIONS = new URL('../../src/core/store/sqlite-operations.ts', import.meta.url).href

/** A writer thread with one client, and what it has published. */
export const startWriter = (files: OpenFiles) => {
  const buffer = newInvalidationBuffer()
  const invalidations: string[] = []
  const receiver = new InvalidationReceiver(buffer, {
    invalidate: id => invalidations.push(id),
    invalidateAll: () => invalidations.push('all'),
  })
  const deliverInvalidations = () => receiver.deliver()
  const writer = new Writer({ deliverInvalidations, onFileProblem: () => undefined })
  const owner = new WriterOwner({ ...files, operations: OPERATIONS, features: [], invalidations: buffer })
  owner.addClient(port => writer.connect(port))
  const close = async () => {
    await writer.close()
    await owner.close()
  }
  return { writer, deliverInvalidations, invalidations, close }
}
