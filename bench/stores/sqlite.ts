import { join } from 'node:path'
import Database from 'better-sqlite3'
import type { Session } from '#core/auth/session'
import { temporaryFolder } from '../workspace.ts'
import { fill } from './fill.ts'
import type { FilledDatabase } from './filled-database.ts'
import { selectSessions } from './sample-users.ts'

export const createSqliteDatabase = async (users: number): Promise<FilledDatabase> => {
  const file = join(temporaryFolder(), 'bench.db')
  const location = { engine: 'sqlite', file } as const
  await fill(location, users)
  return {
    location,
    async readSessions(every) {
      const db = new Database(file, { readonly: true })
      const sessions = db.prepare<[], Session>(selectSessions(every)).all()
      db.close()
      return sessions
    },
  }
}
