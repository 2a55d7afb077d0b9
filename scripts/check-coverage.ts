/** Fails where the tests leave too much untouched: statements overall, and everything that decides who gets in. */
import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

const PROJECT = join(import.meta.dirname, '..')

/** Percent of the statements of src, plugins and routes together. */
const OVERALL = 95

/** Files whose every statement has to be run: the gates, tokens, principals, the table of errors. */
const WHOLE = [
  'plugins/access-token.ts',
  'plugins/authentication.ts',
  'routes/admin/autohooks.ts',
  'routes/private/autohooks.ts',
  'src/auth/access-tokens.ts',
  'src/auth/admin-keys.ts',
  'src/auth/rejected-tokens.ts',
  'src/auth/authenticator.ts',
  'src/auth/token-cache.ts',
  'src/auth/user-cache.ts',
  'src/auth/in-flight-lookups.ts',
  'src/errors.ts',
]

interface Count {
  readonly total: number
  readonly covered: number
}

const summary = JSON.parse(
  readFileSync(join(PROJECT, '.tap/report/coverage-summary.json'), 'utf8'),
) as Record<string, { statements: Count }>

const files = Object.entries(summary)
  .map(([file, { statements }]) => ({ file: relative(PROJECT, file), ...statements }))
  .filter(({ file }) => /^(src|plugins|routes)\//.test(file))

const percent = (counts: readonly Count[]): number => {
  const total = counts.reduce((sum, count) => sum + count.total, 0)
  return (counts.reduce((sum, count) => sum + count.covered, 0) / total) * 100
}

const faults = WHOLE.flatMap(name => {
  const counted = files.filter(({ file }) => file === name)
  return counted.length === 1 && percent(counted) === 100 ? [] : [`${name} is not covered whole`]
})
const overall = percent(files)
if (!(overall >= OVERALL))
  faults.push(`statements: ${overall.toFixed(2)} % of src, plugins and routes, below ${OVERALL} %`)

process.stdout.write(`${[`coverage: ${overall.toFixed(2)} % of statements`, ...faults].join('\n')}\n`)
process.exitCode = faults.length === 0 ? 0 : 1
