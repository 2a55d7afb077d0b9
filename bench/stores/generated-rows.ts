/** Rows that the database generates by itself: a million in seconds. */
import Database from 'better-sqlite3'
import pg from 'pg'

export const isPostgres = (url: string): boolean => url.startsWith('postgres')

/** Runs statements in order, each in a transaction of its own. */
export const runAll = async (url: string, statements: readonly string[]): Promise<void> => {
  if (!isPostgres(url)) {
    const database = new Database(url.replace(/^sqlite:/, ''))
    // Ten million events took half of the time.
    database.pragma('synchronous = OFF')
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
export const idOf = (url: string, prefix: string, number: string): string =>
  isPostgres(url)
    ? `'${prefix}-0000-7000-8000-' || lpad((${number})::text, 12, '0')`
    : `'${prefix}-0000-7000-8000-' || substr('000000000000' || (${number}), -12)`

/** A UUIDv7 of a time in milliseconds, which ends with a number. Both are expressions of 64 bits. */
export const timeIdOf = (url: string, at: string, number: string): string => {
  const hex = (digits: number, value: string): string =>
    isPostgres(url) ? `lpad(to_hex(${value}), ${digits}, '0')` : `printf('%0${digits}x', ${value})`
  return `${hex(8, `(${at}) >> 16`)} || '-' || ${hex(4, `(${at}) & 65535`)} || '-7000-8000-' || ${hex(12, number)}`
}

/** A common table expression with the numbers from 0 on, as `i`. */
export const series = (name: string, count: number): string =>
  `${name} (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM ${name} WHERE i + 1 < ${count})`

/**
 * On PostgreSQL, indexes of ten million rows are created in a third of the time that it takes to maintain them. Those of constraints
 * stay. The planner then knows the table as after autovacuum; the service never analyses SQLite.
 * @returns the statements, and those around them.
 */
export const withoutIndexes = (
  url: string,
  table: string,
  statements: readonly string[],
): readonly string[] =>
  isPostgres(url)
    ? [
        `CREATE TEMPORARY TABLE dropped AS SELECT indexname AS name, replace(indexdef, ' ON ONLY ', ' ON ') AS definition
          FROM pg_indexes WHERE tablename = '${table}' AND indexname NOT IN (SELECT conname FROM pg_constraint)`,
        `DO $$ DECLARE index record; BEGIN
          FOR index IN SELECT * FROM dropped LOOP EXECUTE format('DROP INDEX %I', index.name); END LOOP;
        END $$`,
        ...statements,
        `DO $$ DECLARE index record; BEGIN
          FOR index IN SELECT * FROM dropped LOOP EXECUTE index.definition; END LOOP;
        END $$`,
        'DROP TABLE dropped',
        `VACUUM ANALYZE ${table}`,
      ]
    : statements
