/** What tests of the known schema have in common: the recorded checksums, and whether a start loads the query builder. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const WATCH = `
import { registerHooks } from 'node:module'
let loads = false
registerHooks({
  load(url, context, next) {
    loads ||= url.includes('/kysely/')
    return next(url, context)
  },
})
const { BUILT_IN_FEATURES } = await import('./src/built-in-features.ts')
`

/**
 * @param statements open the store with `BUILT_IN_FEATURES`. The database is `process.env.DATABASE`.
 * @throws {Error} if they print an error.
 */
export const loadsQueryBuilder = (statements: string, database: string): boolean => {
  const cwd = join(import.meta.dirname, '..', '..')
  const script = `${WATCH}${statements}\nprocess.stdout.write(String(loads))`
  const env = { ...process.env, DATABASE: database }
  const args = ['--input-type=module', '--eval', script]
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd, env, encoding: 'utf8' })
  if (stderr !== '') throw new Error(stderr)
  return JSON.parse(stdout)
}

/** The rows of `feature_migrations` as they stand in the known schema. */
export const checksumsOf = (rows: readonly object[]): Record<string, Record<string, string>> => {
  const checksums: Record<string, Record<string, string>> = {}
  for (const { feature, name, checksum } of rows as Record<'feature' | 'name' | 'checksum', string>[])
    checksums[feature] = { ...checksums[feature], [name]: checksum }
  return checksums
}
