/** Files that the service's own statements fill. */
import { join } from 'node:path'
import Database from 'better-sqlite3'
import type { Session } from '../../src/auth/session.ts'
import { openDatabase } from '../../src/storage/sqlite/database.ts'
import { migrate } from '../../src/storage/sqlite/migrate.ts'
import { prepareOperations } from '../../src/storage/sqlite/operations.ts'
import { temporaryFolder } from '../workspace.ts'
import type { FilledDatabase } from './filled-database.ts'
import { type Sample, samples, selectSessions } from './sample-users.ts'

const addUsers = (file: string, count: number): void => {
  const db = openDatabase(file, 0)
  const { addUser } = prepareOperations(db)
  const addSlice = db.transaction((slice: readonly Sample[]) => {
    for (const { user, session } of slice) addUser(user, session)
  })
  for (const slice of samples(count)) addSlice(slice)
  db.close()
}

export const createSqliteDatabase = async (users: number): Promise<FilledDatabase> => {
  const file = join(temporaryFolder(), 'bench.db')
  await migrate(file)
  addUsers(file, users)
  return {
    url: `sqlite:${file}`,
    async readSessions(every) {
      const db = new Database(file, { readonly: true })
      const sessions = db.prepare<[], Session>(selectSessions(every)).all()
      db.close()
      return sessions
    },
  }
}
