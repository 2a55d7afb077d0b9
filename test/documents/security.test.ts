/**
 * docs/security.md and docs/audit: every requirement of ASVS V6 and V7 has a row, every case of other providers a test, and every test that
 * they name exists.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const PROJECT = join(import.meta.dirname, '..', '..')
const read = (file: string): string => readFileSync(join(PROJECT, file), 'utf8')

const rowsOf = (file: string): string[][] =>
  read(file)
    .trimEnd()
    .split('\n')
    .slice(1)
    .map(line => line.split('\t'))

const rows = rowsOf('docs/audit/asvs.tsv')
const promises = rowsOf('docs/audit/promises.tsv')

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
  const cases = promises.filter(([area, id = '']) => area === 'other providers' && /^[LO]\d+$/.test(id))
  const numbers = (letter: string, count: number) =>
    Array.from({ length: count }, (_, index) => `${letter}${index + 1}`)
  // L2, L3 and L5 are about other ways in.
  const expected = [...numbers('L', 20), ...numbers('O', 16)].filter(id => !['L2', 'L3', 'L5'].includes(id))
  t.same(
    cases.map(([, id]) => id),
    expected,
  )
  for (const [, id, , test = ''] of cases) {
    const file = test.replaceAll('`', '')
    t.match(read(file), new RegExp(`t\\.test\\(\\s*['\`]${id} `), `${id} in ${file}`)
  }
})

t.test('every test file that they name exists, and contains the test', async t => {
  const texts = ['docs/security.md', 'docs/audit/asvs.tsv', 'docs/audit/promises.tsv'].map(read)
  const files = [...texts.join('\n').matchAll(/\btest\/[\w/.-]+\.test\.ts/g)]
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
