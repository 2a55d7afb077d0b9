/** Checks the coverage of `npm run coverage`: a minimum overall, and 100 % of authentication and error mapping. */
import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

const ROOT = join(import.meta.dirname, '..')

/** Minimum percentage of the statements of src, plugins and routes together. */
const OVERALL = 95

/** Files that have to be covered completely: gates, tokens, principals, the registry of errors. */
const COMPLETE = [
  'plugins/access-token.ts',
  'plugins/authentication.ts',
  'routes/admin/autohooks.ts',
  'routes/private/autohooks.ts',
  'src/core/auth/access-tokens.ts',
  'src/core/auth/admin-authenticator.ts',
  'src/core/auth/admin-key.ts',
  'src/core/auth/rejected-tokens.ts',
  'src/core/auth/authenticator.ts',
  'src/core/auth/token-cache.ts',
  'src/core/auth/off-heap-token-cache.ts',
  'src/core/auth/token-record.ts',
  'src/core/auth/record-log.ts',
  'src/core/auth/user-cache.ts',
  'src/core/auth/in-flight-lookups.ts',
  'src/base/errors.ts',
]

interface Count {
  readonly total: number
  readonly covered: number
}

const summary = JSON.parse(readFileSync(join(ROOT, '.tap/report/coverage-summary.json'), 'utf8')) as Record<
  string,
  { statements: Count }
>

const files = Object.entries(summary)
  .map(([file, { statements }]) => ({ file: relative(ROOT, file), ...statements }))
  .filter(({ file }) => /^(src|plugins|routes)\//.test(file))

const percent = (counts: readonly Count[]): number => {
  const total = counts.reduce((sum, count) => sum + count.total, 0)
  return (counts.reduce((sum, count) => sum + count.covered, 0) / total) * 100
}

const failures = COMPLETE.flatMap(name => {
  const counted = files.filter(({ file }) => file === name)
  return counted.length === 1 && percent(counted) === 100 ? [] : [`${name} is not covered completely`]
})
const overall = percent(files)
if (!(overall >= OVERALL))
  failures.push(`statements: ${overall.toFixed(2)} % of src, plugins and routes, below ${OVERALL} %`)

process.stdout.write(`${[`coverage: ${overall.toFixed(2)} % of statements`, ...failures].join('\n')}\n`)
process.exitCode = failures.length === 0 ? 0 : 1
