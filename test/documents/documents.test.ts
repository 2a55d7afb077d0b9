/** What the documents say is held to what the code is. */
import { execFile } from 'node:child_process'
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual, promisify } from 'node:util'
import t from 'tap'
import { ACCOUNT_MAILS } from '#core/accounts/mails'
import type { MailKinds } from '#core/mail/kinds'
import { settingsOf } from '#feature/assembly'
import type { Feature } from '#feature/declaration'
import { BUILT_IN_FEATURES } from '#features/built-in'
import { FEATURES } from '#features/own'
import type { SettingDeclarations } from '#process/config/read-settings'
import { namesWith, SETTINGS } from '#process/config/settings'
import { cellsOf, readRun, toPage } from '../../bench/report.ts'
import { currentDocuments } from '../../scripts/document-tables.ts'
import { build } from '../support/build.ts'
import { loadConfig } from '../support/config.ts'
import { MAILED_SIGN_INS } from '../support/email-codes.ts'
import { liveRoutes } from '../support/routes.ts'

const BUILT_IN: readonly Feature[] = BUILT_IN_FEATURES
const ADDED: readonly Feature[] = FEATURES

const PROJECT = join(import.meta.dirname, '..', '..')
const read = (file: string): string => readFileSync(join(PROJECT, file), 'utf8')

const DOCUMENTS = ['*.md', 'docs/*.md', 'bench/*.md'].flatMap(pattern => globSync(pattern, { cwd: PROJECT }))

const readme = read('README.md')
const api = read('docs/api.md')
const architecture = read('ARCHITECTURE.md')

const app = await build(t, { env: MAILED_SIGN_INS })
const live = liveRoutes(app)

/** The rows of the first table below a heading, cells without back quotes. */
const tableBelow = (document: string, heading: string): string[][] =>
  (/\n(?:\|.*\n)+/.exec(document.split(`\n${heading}\n`)[1] ?? '')?.[0] ?? '')
    .trim()
    .split('\n')
    .slice(2)
    .map(line =>
      line
        .slice(1, -1)
        .split('|')
        .map(cell => cell.replaceAll('`', '').trim()),
    )

/** The routes and settings of a fork with features are its own. */
const isFork = ADDED.length > 0 && 'src/features/own.ts has features'

t.test(
  'tables of the documents follow from the code: `npm run documents` writes them (§4)',
  { skip: isFork },
  async t => {
    for (const [file, text] of await currentDocuments()) t.equal(read(file), text, file)
  },
)

t.test('settings: code and .env.example have one list', async t => {
  const settings: SettingDeclarations = { ...SETTINGS, ...settingsOf(BUILT_IN) }
  const example = [...read('.env.example').matchAll(/^# ([A-Z_]+)=(.*)$/gm)].map(([, name, value]) => [
    name,
    value,
  ])
  const files = namesWith('canBeFile', settings).map(name => `${name}_FILE`)
  t.same(example.map(([name]) => name).sort(), [...Object.keys(settings), ...files].sort())

  const defaults = Object.fromEntries(example)
  const { settings: given, ...config } = loadConfig(defaults)
  const { settings: byDefault, ...defaultConfig } = loadConfig({})
  t.same(config, defaultConfig, 'the values in .env.example are the defaults')
  const shown = (states: typeof given) => states.map(({ isSet, ...state }) => state)
  t.same(shown(given), shown(byDefault), 'administrators see them as such')
  for (const [name, setting] of Object.entries(settings))
    t.equal(defaults[name], setting.default ?? '', `default of ${name}`)
})

t.test('the documents of ENCRYPTION_KEY name every feature that encrypts', async t => {
  const names: Readonly<Record<string, RegExp>> = {
    console: /console/,
    'email-codes': /mailed \[?codes/,
    identities: /other\s+providers/,
    oauth: /refresh\s+tokens/,
    totp: /authenticator\s+apps/,
    webhooks: /webhooks/,
  }
  const encrypting = globSync('src/features/*/*.ts', { cwd: PROJECT }).filter(file =>
    /keyring\b.*=>|keyring\(\)/.test(read(file)),
  )
  const features = new Set(encrypting.map(file => file.split('/')[2] ?? ''))
  t.same([...features].sort(), Object.keys(names))
  const [, comment = ''] = /\n\n((?:# .*\n)+)# ENCRYPTION_KEY=/.exec(read('.env.example')) ?? []
  const [section = ''] = read('docs/configuration.md').split('\n## Encryption key\n')[1]?.split('\n## ') ?? []
  for (const pattern of Object.values(names)) {
    t.match(comment, pattern, '.env.example')
    t.match(section, pattern, 'docs/configuration.md')
  }
})

t.test('examples: the table has each folder, and the ports of the code, which are all different', async t => {
  const rows = tableBelow(`\n${read('examples/README.md')}`, '# Examples')
  t.same(
    rows.map(([name = '']) => name.replace(/^\[(.*)\]\(.*/, '$1')),
    [
      'the service',
      ...readdirSync(join(PROJECT, 'examples'), { withFileTypes: true })
        .filter(entry => entry.isDirectory())
        .map(({ name }) => name),
    ],
  )
  const ports = rows.map(
    ([name, , , listed = '']) => [name, Array.from(listed.matchAll(/\d+/g), ([port]) => port)] as const,
  )
  const all = ports.flatMap(([, listed]) => listed)
  t.equal(new Set(all).size, all.length, 'no two have the same')
  const sources: Readonly<Record<string, readonly [file: string, port: RegExp]>> = {
    'the service': ['.env.example', /^# PORT=(\d+)$/m],
    'forward-auth': ['examples/forward-auth/nginx.conf', /listen [\d.]+:(\d+)/],
    mcp: ['examples/mcp/server.ts', /PORT = ([\d_]+)/],
    observability: ['examples/observability/prometheus.yml', /targets: \['[\d.]+:(\d+)'/],
    provider: ['examples/provider/provider.ts', /PORT = ([\d_]+)/],
    saas: ['examples/saas/server.ts', /PORT = '(\d+)'/],
    webhooks: ['examples/webhooks/receiver.js', /PORT = '(\d+)'/],
  }
  for (const [name = '', listed] of ports) {
    const example = name.replace(/^\[(.*)\]\(.*/, '$1')
    const [file, port] = sources[example] ?? []
    t.equal(file === undefined, listed.length === 0, example)
    if (file !== undefined && port !== undefined)
      t.ok(listed.includes(port.exec(read(file))?.[1]?.replace('_', '') ?? ''), file)
  }
  t.match(read('examples/webhooks/README.md'), `localhost:${ports.at(-1)?.[1][0]}`)
  t.notMatch(read('examples/webhooks/README.md'), 'ann@example.com', 'the address of the quickstart')
})

t.test('deploy/kubernetes.yaml trusts no network by itself', async t => {
  const [, name = '', value = ''] =
    /name: (TRUST_PROXY), value: (.*) }/.exec(read('deploy/kubernetes.yaml')) ?? []
  t.throws(() => loadConfig({ [name]: value }), /TRUST_PROXY must be/)
})

t.test('mails: the table in docs/mail.md has the kinds and subjects of the code', async t => {
  const kinds: MailKinds = Object.assign({}, ACCOUNT_MAILS, ...BUILT_IN.map(({ mails }) => mails))
  t.same(
    tableBelow(read('docs/mail.md'), '## Kinds').map(([kind, subject]) => [kind, subject]),
    Object.entries(kinds).map(([kind, { en }]) => [kind, en.subject]),
  )
})

t.test('the tables of docs/scaling.md are what the model makes of the results of the bench', async t => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--import', './src/preload.js', 'scripts/scaling-model.ts'],
    { cwd: PROJECT },
  )
  const [, tables] =
    /<!-- scaling-model -->\n([\s\S]*?)<!-- \/scaling-model -->/.exec(read('docs/scaling.md')) ?? []
  t.equal(tables?.trim(), stdout.trim())
})

t.test('scopes of fields: the table in docs/api.md is the live one', async t => {
  const scoped = app.routeTable.flatMap(({ methods, url, options }) => {
    const fields = Object.keys(options.config?.fieldScopes ?? {})
    return fields.length === 0 ? [] : [[`${methods[0]} ${url}`, fields.sort().join(', ')]]
  })
  const table = tableBelow(api, '### Scopes of fields').map(([route, fields]) => [route, fields])
  t.same(table.sort(), scoped.sort())
})

t.test('hosted pages: the table in docs/pages.md has each page', async t => {
  const pages = live.filter(({ page, ofFeature, method }) => page && !ofFeature && method === 'GET')
  const documented = tableBelow(read('docs/pages.md'), '## Pages').flatMap(([cell = '']) => cell.split(', '))
  const urls = pages.map(({ url }) => url.replace(/^\/pages\/.*/, '/pages/…'))
  t.same(
    documented.map(page => page.replace(/^…/, '/security/organizations')).sort(),
    [...new Set(urls)].sort(),
  )
})

t.test('ARCHITECTURE.md: its files exist, and the order of the plugins is the live one', async t => {
  const files = [...architecture.matchAll(/\b(?:src|plugins|routes)\/[\w./-]*\w(?:\.ts|\/)/g)].map(
    ([file]) => file,
  )
  t.ok(files.length > 10)
  for (const file of new Set(files)) t.ok(existsSync(join(PROJECT, file)), file)

  const folders = globSync('src/*/', { cwd: PROJECT }).map(folder => `${folder.replace(/\/$/, '')}/`)
  const ofFeatures = new Set(ADDED.map(({ module }) => dirname(relative(PROJECT, fileURLToPath(module)))))
  for (const folder of folders)
    t.ok(
      architecture.includes(folder) || ofFeatures.has(folder.slice(0, -1)),
      `ARCHITECTURE.md names ${folder}`,
    )

  // The drawing is in the order of a request: what runs when a response is sent comes last.
  const drawn = [
    ...architecture.matchAll(/^((?!graceful)[a-z]+(?:-[a-z]+)+|sensible|authentication|csrf)(?= {2,})/gm),
  ]
    .flatMap(([line]) => line.split(' · '))
    .map(name => name.trim())
  const loaded = [...app.printPlugins().matchAll(/[─┬] ([a-z]+(?:-[a-z]+)*) \d/g)].map(([, name]) => name)
  t.same(
    loaded.filter(name => drawn.includes(name ?? '')),
    // A plugin with hooks for the request and for the response is drawn twice.
    [...new Set(drawn)],
  )
  const plugins = globSync('*.ts', { cwd: join(PROJECT, 'plugins') }).map(file => file.replace('.ts', ''))
  for (const plugin of plugins)
    t.ok(loaded.includes(plugin), `${plugin} is the name of a file and of its plugin`)
})

t.test('figures: what documents say of the bench is what it measured', async t => {
  t.equal(read('bench/RESULTS.md'), toPage(readRun('sqlite'), readRun('postgres')), 'bench/RESULTS.md')

  const { scenarios } = readRun('sqlite')
  for (const text of [read('docs/load-testing.md'), read('docs/scaling.md')]) {
    const rows = [...text.matchAll(/^\| `([\w-]+)` \| (.*) \|$/gm)].flatMap(([, name = '', row = '']) => {
      const scenario = scenarios.find(each => each.name === name)
      return scenario && 'findings' in scenario ? [{ name, row, findings: scenario.findings }] : []
    })
    t.ok(rows.length > 5)
    for (const { name, row, findings } of rows) {
      const cells = row.split('|').map(cell => cell.trim())
      t.ok(
        findings.some(finding => isDeepStrictEqual(cellsOf(finding), cells)),
        `${name}: ${row}`,
      )
    }
  }
})

/** What renders as text: no code. */
const proseOf = (document: string): string =>
  document
    .replaceAll(/^ *```[\s\S]*?^ *```$/gm, '')
    .replaceAll(/`[^`\n]*`/g, code => code.replaceAll(/[[\]]/g, ''))

/** The anchors of a document's headings, as GitHub makes them. */
const anchorsOf = (document: string): string[] =>
  [...document.replaceAll(/^ *```[\s\S]*?^ *```$/gm, '').matchAll(/^#{1,6} (.+)$/gm)].map(
    ([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
        .replaceAll(' ', '-'),
  )

const FOLDER_PAGES = globSync('{client,plugins,routes,examples/*,src/features/*}/README.md', { cwd: PROJECT })

t.test('links: every file and every heading that a document links to exists', async t => {
  let links = 0
  for (const document of [...DOCUMENTS, ...FOLDER_PAGES])
    for (const [, target = ''] of proseOf(read(document)).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue
      links += 1
      const [path = '', anchor] = target.split('#')
      const file = path === '' ? document : join(dirname(document), path)
      const exists = existsSync(join(PROJECT, file))
      t.ok(exists, `${document}: ${target}`)
      if (exists && anchor !== undefined)
        t.ok(anchorsOf(read(file)).includes(anchor), `${document}: the heading of ${target}`)
    }
  t.ok(links > 50)
  for (const file of globSync('docs/audit/*.tsv', { cwd: PROJECT }))
    for (const [, target = '', anchor = ''] of read(file).matchAll(/\((docs\/[\w-]+\.md)#([\w-]+)\)/g))
      t.ok(anchorsOf(read(target)).includes(anchor), `${file}: ${target}#${anchor}`)
})

t.test('every heading of docs/design.md that a comment names exists', async t => {
  const headings = [...read('docs/design.md').matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading)
  let names = 0
  for (const file of globSync('{src,plugins,routes,bench,scripts,examples,client,test}/**/*.ts', {
    cwd: PROJECT,
  }))
    for (const [, list = ''] of read(file).matchAll(/docs\/design\.md((?:(?:,| and)[\s*]+"[^"]+")+)/g))
      for (const [, name] of list.replaceAll(/\s+\*?\s*/g, ' ').matchAll(/"([^"]+)"/g)) {
        names += 1
        t.ok(headings.includes(name), `${file}: ${name}`)
      }
  t.ok(names > 50)
})

t.test('README.md has at most 160 lines and leads to every document', async t => {
  t.ok(readme.trimEnd().split('\n').length <= 160)
  const map = tableBelow(readme, '## Documents').map(([name]) => name)
  for (const file of DOCUMENTS.filter(name => name !== 'README.md' && !name.startsWith('bench/')))
    t.ok(map.includes(`[${file}](${file})`), file)
})

t.test('the example route is the same in README.md and docs/extending.md', async t => {
  const example = /```ts\n\/\/ routes\/private\/notes\/routes\.ts\n[\s\S]*?```/.exec(readme)?.[0]
  t.ok(example !== undefined && read('docs/extending.md').includes(example))
})

t.test('no document has a place that is still to be filled', async t => {
  for (const document of DOCUMENTS) t.notMatch(read(document), /^[A-Z]{4,}$/m, document)
})
