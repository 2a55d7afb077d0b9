/** Every rule of the specification has a test that names it; a rule without one fails here. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

/** The clauses that decide something, in this project's words; what the specification leaves open is not among them. */
const CLAUSES = {
  '§1': 'common processing in five steps, before gate and handler',
  '§1.3': 'errors of later steps are caught and formatted',
  '§4': 'the routes with their categories',
  '§5.1.1': 'the token from the cookie, else from the header; the first one found is used',
  '§5.1.2': 'identification on every route, and the last request noted',
  '§5.1.3': 'an invalid or missing token does not block a public route',
  '§5.1.4': 'a private route without an identified user is 401',
  '§5.2.1': 'the admin key in x-admin-key',
  '§5.2.2': 'compared with the configured ADMIN_KEY',
  '§5.2.3': 'missing or not matching is 401',
  '§5.2.4': 'admin routes are not gated by a user token',
  '§7.1': 'the error body: one property, fields with arrays of messages',
  '§7.2': 'the rules of errors: 401, fields, logging, hidden details, redirect',
}

const TEST = join(import.meta.dirname, '..')

/** Sections of other documents are numbered with the same sign. */
const withoutOthers = (title: string): string =>
  title.replaceAll(/(DESIGN|RFC \d+) §[\d.]+(, §\d(?!\.))*/g, '')

const titles = globSync('**/*.test.ts', { cwd: TEST }).flatMap(file =>
  [...readFileSync(join(TEST, file), 'utf8').matchAll(/t\.test\(\s*(['"`])([\s\S]*?)\1/g)].map(
    ([, , title = '']) => withoutOthers(title),
  ),
)

t.test('each clause of the specification is named in a test title', async t => {
  for (const [clause, rule] of Object.entries(CLAUSES)) {
    const named = titles.some(title => new RegExp(`${RegExp.escape(clause)}(?![.\\d])`).test(title))
    t.ok(named, `${clause}: ${rule}`)
  }
})
