/** Organizations for a store with users, without HTTP. */
import Database from 'better-sqlite3'
import pg from 'pg'

/** Runs statements in order. */
const runAll = async (url: string, statements: readonly string[]): Promise<void> => {
  if (!url.startsWith('postgres')) {
    const database = new Database(url.replace(/^sqlite:/, ''))
    for (const text of statements) database.prepare(text).run()
    database.close()
    return
  }
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    for (const text of statements) await client.query(text)
  } finally {
    await client.end()
  }
}

/** A UUID that begins with eight digits, and ends with a number. */
const idOf = (url: string, prefix: string, number: string): string =>
  url.startsWith('postgres')
    ? `'${prefix}-0000-7000-8000-' || lpad((${number})::text, 12, '0')`
    : `'${prefix}-0000-7000-8000-' || substr('000000000000' || (${number}), -12)`

const series = (name: string, count: number): string =>
  `${name} (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM ${name} WHERE i + 1 < ${count})`

/** Adds organizations, and makes each user a member of so many of them. */
export const addOrganizations = (url: string, organizations: number, each: number): Promise<void> =>
  runAll(url, [
    `WITH RECURSIVE ${series('numbers', organizations)}
      INSERT INTO organizations (id, slug, name, search_name, created_at, updated_at, deleted_at)
      SELECT ${idOf(url, '01900000', 'i')}, 'team-' || i, 'Team ' || i, 'team ' || i, 1, 1, 0 FROM numbers`,
    `WITH RECURSIVE ${series('numbers', each)}
      INSERT INTO organization_members (id, organization_id, user_key, roles, rank, created_at, updated_at)
      SELECT ${idOf(url, '01900000', `key * ${each} + i`)}, ${idOf(url, '01900000', `(key * ${each} + i) % ${organizations}`)}, key,
        '["member"]', 2, 1, 1
      FROM users CROSS JOIN numbers`,
  ])
