/** docs/security.md: every requirement of ASVS V6 and V7 has a row, and every test that it names exists. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const PROJECT = join(import.meta.dirname, '..', '..')
const read = (file: string): string => readFileSync(join(PROJECT, file), 'utf8')

const security = read('docs/security.md')
/** Comments name what is still to be added. */
const rows = (security.split('\n## OWASP ASVS\n')[1] ?? '')
  .split('\n')
  .filter(line => /^\| \d/.test(line))
  .map(line =>
    line
      .replaceAll(/<!--.*?-->/g, '')
      .slice(1, -1)
      .split('|')
      .map(cell => cell.trim()),
  )

/** The number of requirements in each section. */
const SECTIONS = { '6': [3, 12, 8, 6, 8, 4, 2, 4], '7': [3, 4, 2, 5, 3, 2] }

t.test('ASVS: each requirement of V6 and V7 is in the table, in order', async t => {
  const requirements = Object.entries(SECTIONS).flatMap(([chapter, counts]) =>
    counts.flatMap((count, section) =>
      Array.from({ length: count }, (_, index) => `${chapter}.${section + 1}.${index + 1}`),
    ),
  )
  t.same(
    rows.map(([number]) => number),
    requirements,
  )
  for (const [number = '', level, requirement, status, how] of rows) {
    t.match(level, /^[123]$/, number)
    t.ok(requirement, `${number}: the requirement`)
    t.match(status, /^(met|partly|not met|n\/a)$/, number)
    if (status !== 'met') t.ok(how, `${number}: the reason`)
  }
})

t.test('each case of sign-in with other providers has a test whose title begins with it', async t => {
  const [, section = ''] = security.split('\n## Sign-in with other providers\n')
  const cases = [...(section.split('\n## ')[0] ?? '').matchAll(/^\| ([LO]\d+) \|.*`(test\/[^`]+)` \|$/gm)]
  const numbers = (letter: string, count: number) =>
    Array.from({ length: count }, (_, index) => `${letter}${index + 1}`)
  // L2, L3 and L5 are about other ways in.
  const expected = [...numbers('L', 20), ...numbers('O', 16)].filter(id => !['L2', 'L3', 'L5'].includes(id))
  t.same(
    cases.map(([, id]) => id),
    expected,
  )
  for (const [, id, file = ''] of cases)
    t.match(read(file), new RegExp(`t\\.test\\(\\s*['\`]${id} `), `${id} in ${file}`)
})

t.test('every test file that docs/security.md names exists, and contains the test', async t => {
  const files = [...security.replaceAll(/<!--.*?-->/g, '').matchAll(/\btest\/[\w/.-]+\.test\.ts/g)]
  t.ok(files.length > 50)
  for (const file of new Set(files.map(([file]) => file))) t.ok(existsSync(join(PROJECT, file)), file)
  const named = rows.flatMap(([number, , , , , shown = '']) =>
    [...shown.matchAll(/`(test\/[^`]+)`: \*([^*]+)\*/g)].map(([, file = '', title = '']) => ({
      number,
      file,
      title,
    })),
  )
  for (const { number, file, title } of named)
    t.ok(read(file).includes(title), `${number}: ${file} has "${title}"`)
})
