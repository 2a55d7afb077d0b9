/** What the documents say is held to what the code is. */
import { execFile } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { loadConfig } from '../../src/config/config.ts'
import { FILE_SETTINGS, SETTINGS } from '../../src/config/settings.ts'
import { ERRORS } from '../../src/errors.ts'
import { build } from '../support/build.ts'
import { liveRoutes } from '../support/routes.ts'

const PROJECT = join(import.meta.dirname, '..', '..')
const read = (file: string): string => readFileSync(join(PROJECT, file), 'utf8')

const readme = read('README.md')
const architecture = read('ARCHITECTURE.md')

/** The rows of the table below a heading, cells without back quotes. */
const tableBelow = (heading: string): string[][] =>
  (readme.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '')
    .split('\n')
    .filter(line => line.startsWith('| ') && !line.startsWith('|--'))
    .slice(1)
    .map(line =>
      line
        .slice(1, -1)
        .split('|')
        .map(cell => cell.replaceAll('`', '').trim()),
    )

t.test('settings: code, .env.example and the table of the README are one list (DESIGN §8)', async t => {
  const names = Object.keys(SETTINGS)
  t.same(
    tableBelow('Configuration').map(([name]) => name),
    names,
    'README',
  )
  const example = [...read('.env.example').matchAll(/^# ([A-Z_]+)=(.*)$/gm)].map(([, name, value]) => [
    name,
    value,
  ])
  const files = FILE_SETTINGS.map(name => `${name}_FILE`)
  t.same(example.map(([name]) => name).sort(), [...names, ...files].sort(), '.env.example')

  const defaults = Object.fromEntries(example)
  t.same(loadConfig(defaults), loadConfig({}), 'the values in .env.example are the defaults')
  const documented = Object.fromEntries(tableBelow('Configuration').map(([name, value]) => [name, value]))
  for (const name of names) t.equal(documented[name], defaults[name], `default of ${name}`)
})

t.test('errors: the table in the code and the one in the README are one list (DESIGN §3)', async t => {
  t.same(
    tableBelow('Errors').map(cells => cells.join(' ')),
    Object.values(ERRORS).map(({ status, field, message }) => `${status} ${field} ${message}`),
  )
})

t.test('the tables of docs/scaling.md are what the model makes of bench/RESULTS.md', async t => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--import', './src/preload.js', 'scripts/scaling-model.ts'],
    { cwd: PROJECT },
  )
  const [, tables] =
    /<!-- scaling-model -->\n([\s\S]*?)<!-- \/scaling-model -->/.exec(read('docs/scaling.md')) ?? []
  t.equal(tables?.trim(), stdout.trim())
})

t.test('routes: the table in the README is the live one (§4)', async t => {
  const live = liveRoutes(await build(t))
    .filter(({ documentation, method }) => !documentation && method !== 'HEAD')
    .map(({ method, url, gate }) => `${method} ${url} ${gate ?? 'public'}`)
  const gates: Record<string, string> = { public: 'public', user: 'user', 'admin key': 'adminKey' }
  t.same(
    tableBelow('Routes')
      .map(([route, gate = '']) => `${route} ${gates[gate]}`)
      .sort(),
    live.sort(),
  )
})

t.test('ARCHITECTURE.md: its files exist, and the order of the plugins is the live one', async t => {
  const files = [...architecture.matchAll(/\b(?:src|plugins|routes)\/[\w./-]*\w(?:\.ts|\/)/g)].map(
    ([file]) => file,
  )
  t.ok(files.length > 10)
  for (const file of new Set(files)) t.ok(existsSync(join(PROJECT, file)), file)

  // The drawing is in the order of a request: what runs when a response is sent comes last.
  const drawn = [
    ...architecture.matchAll(/^((?!graceful)[a-z]+(?:-[a-z]+)+|sensible|authentication|csrf)(?= {2,})/gm),
  ]
    .flatMap(([line]) => line.split(' · '))
    .map(name => name.trim())
  const app = await build(t)
  const loaded = [...app.printPlugins().matchAll(/[─┬] ([a-z]+(?:-[a-z]+)*) \d/g)].map(([, name]) => name)
  t.same(
    loaded.filter(name => drawn.includes(name ?? '')),
    drawn,
  )
  const plugins = globSync('*.ts', { cwd: join(PROJECT, 'plugins') }).map(file => file.replace('.ts', ''))
  for (const plugin of plugins)
    t.ok(loaded.includes(plugin), `${plugin} is the name of a file and of its plugin`)
})

t.test('figures: what documents say of the bench is what the bench wrote', async t => {
  const results = read('bench/RESULTS.md')
  for (const text of [readme, read('docs/scaling.md')]) {
    const rows = [...text.matchAll(/^\| `([\w-]+)` (\|.*)$/gm)].flatMap(([, scenario = '', row = '']) => {
      const section = results.split(/^## /m).find(part => part.startsWith(`${scenario}\n`))
      return section === undefined ? [] : [{ scenario, row, section }]
    })
    t.ok(rows.length > 5)
    for (const { scenario, row, section } of rows) t.ok(section.includes(`\n${row}\n`), `${scenario}: ${row}`)
  }
})

t.test('no document has a place that is still to be filled', async t => {
  for (const text of [readme, architecture, read('CHANGELOG.md')]) t.notMatch(text, /^[A-Z]{4,}$/m)
})
