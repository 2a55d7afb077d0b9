/** Copies from one store to another, and the contents to compare afterwards. */
import { v7 as uuidv7 } from 'uuid'
import { schemaOf } from '#core/store/migrations'
import { COPIED_TABLES } from '#core/store/tables'
import { allFeatures } from '#features/built-in'
import { type CopyReport, copy } from '#storage/copy/copy'
import { databaseUrl } from '#storage/location'
import { openDatabase } from '#storage/sqlite/database'
import { migrate } from '#storage/sqlite/migrate'
import { type StoredFeature, tablesOf } from '#storage/stored-feature'
import { select } from './stored-rows.ts'

/** Copies in this process. @param from and `to`: values of `DATABASE_URL`. */
export const copyStore = (
  from: string,
  to: string,
  features: readonly StoredFeature[] = allFeatures(),
  onProgress: (done: number, total: number) => void = () => undefined,
  signal: AbortSignal = new AbortController().signal,
): Promise<CopyReport> =>
  copy(databaseUrl(from), databaseUrl(to), {
    coreTables: COPIED_TABLES,
    schema: schemaOf(features),
    signal,
    onProgress,
  })

/** Every row that a copy contains, by table. PostgreSQL's driver returns a `bigint` as text. */
export const contentOf = async (
  url: string,
  features: readonly StoredFeature[] = allFeatures(),
): Promise<Record<string, string[]>> => {
  const content: Record<string, string[]> = {}
  for (const name of [...COPIED_TABLES, ...tablesOf(features).map(table => table.name)]) {
    const rows = await select(url, `SELECT * FROM ${name}`)
    content[name] = rows
      .map(row =>
        JSON.stringify(
          Object.entries(row)
            .map(([key, value]) => [key, value === null ? null : String(value)])
            .sort(),
        ),
      )
      .sort()
  }
  return content
}

/** Makes a source of `count` users, each with a session. */
export const makeSource = async (file: string, count: number): Promise<void> => {
  await migrate(file, schemaOf(allFeatures()))
  const db = openDatabase(file, 60_000)
  const addUser = db.prepare(`INSERT INTO users (id, email, password_hash, first_name_key, last_name_key,
    email_verified, disabled, created_at, updated_at) VALUES (?, ?, 'hash', '', '', 0, 0, 1, 1)`)
  const addSession = db.prepare(
    'INSERT INTO sessions (id, user_key, created_at, expires_at, last_request_at) VALUES (?, ?, 1, 2, 1)',
  )
  db.transaction(() => {
    for (let index = 0; index < count; index += 1) {
      const { lastInsertRowid: key } = addUser.run(uuidv7(), `user${index}@example.com`)
      addSession.run(uuidv7(), key)
    }
  })()
  db.close()
}
