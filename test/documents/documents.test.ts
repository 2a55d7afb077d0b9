/** What the documents say is held to what the code is. */
import { execFile } from 'node:child_process'
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Command } from 'commander'
import t from 'tap'
import { type DeclaredError, ERRORS } from '#base/errors'
import { ACCOUNT_MAILS } from '#core/accounts/mails'
import type { MailKinds } from '#core/mail/kinds'
import { RATE_LIMITS } from '#core/rate-limits/limits'
import { adminScopesOf, eventSchemasOf, rateLimitsOf, settingsOf, userScopesOf } from '#feature/assembly'
import type { Feature } from '#feature/declaration'
import { BUILT_IN_FEATURES } from '#features/built-in'
import { FEATURES } from '#features/own'
import { coreCommands } from '#process/cli/commands'
import type { SettingDeclarations } from '#process/config/read-settings'
import { namesWith, SETTINGS } from '#process/config/settings'
import { build } from '../support/build.ts'
import { loadConfig } from '../support/config.ts'
import { MAILED_SIGN_INS } from '../support/email-codes.ts'
import { type LiveRoute, liveRoutes } from '../support/routes.ts'

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

t.test('settings: code, .env.example and docs/configuration.md have one list', async t => {
  const table = tableBelow(read('docs/configuration.md'), '## Settings')
  const settings: SettingDeclarations = { ...SETTINGS, ...settingsOf(BUILT_IN) }
  const names = Object.keys(settings)
  t.same(
    table.map(([name]) => name),
    names,
    'docs/configuration.md',
  )
  const example = [...read('.env.example').matchAll(/^# ([A-Z_]+)=(.*)$/gm)].map(([, name, value]) => [
    name,
    value,
  ])
  const files = namesWith('canBeFile', settings).map(name => `${name}_FILE`)
  t.same(example.map(([name]) => name).sort(), [...names, ...files].sort(), '.env.example')

  const defaults = Object.fromEntries(example)
  t.same(loadConfig(defaults), loadConfig({}), 'the values in .env.example are the defaults')
  const documented = Object.fromEntries(table.map(([name, value]) => [name, value]))
  const meanings = Object.fromEntries(
    table.map(([name, , meaning = '']) => [name, meaning.replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1')]),
  )
  for (const [name, setting] of Object.entries(settings)) {
    t.equal(defaults[name], setting.default ?? '', `default of ${name} in .env.example`)
    t.equal(documented[name], setting.default ?? '', `default of ${name} in docs/configuration.md`)
  }
  for (const [name, { description }] of Object.entries(SETTINGS))
    t.equal(meanings[name], description, `meaning of ${name} in docs/configuration.md`)
})

t.test('the documents of ENCRYPTION_KEY name every feature that encrypts', async t => {
  const names: Readonly<Record<string, RegExp>> = {
    console: /console/,
    'email-codes': /mailed \[?codes/,
    identities: /other\s+providers/,
    totp: /authenticator\s+apps/,
    webhooks: /webhooks/,
  }
  const encrypting = globSync('src/{core,features}/*/*.ts', { cwd: PROJECT }).filter(file =>
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

t.test('errors: the table in the code and the one in docs/api.md are one list', async t => {
  t.same(
    tableBelow(api, '## Errors').map(cells => cells.join(' ')),
    [ERRORS, ...BUILT_IN.map(({ errors = {} }) => errors)]
      .flatMap(Object.values<DeclaredError>)
      .map(({ status, field, message }) => `${status} ${field} ${message}`),
  )
})

t.test('events: the table in docs/events.md has every type, in the order of the code', async t => {
  t.same(
    tableBelow(read('docs/events.md'), '## Types').map(([type]) => type),
    Object.keys(eventSchemasOf(BUILT_IN)),
  )
})

t.test('rate limits: the table in docs/api.md has the limits of the code and their routes', async t => {
  const routesWith = (isListed: (route: LiveRoute) => boolean): string[] =>
    live
      .filter(route => isListed(route) && !route.ofFeature && route.method !== 'HEAD')
      .map(({ method, url }) => `${method} ${url}`)
      .sort()
  t.same(
    tableBelow(api, '## Rate limits').map(([name, points, seconds, routes = '']) => [
      name,
      { points: Number(points), seconds: Number(seconds) },
      (routes.match(/\b(?:GET|POST|PUT|DELETE) [^\s,]+/g) ?? []).sort(),
    ]),
    [
      ...Object.entries({ ...RATE_LIMITS.perAddress, ...rateLimitsOf(BUILT_IN) }).map(([name, limit]) => [
        name,
        limit,
        routesWith(({ rateLimit }) => rateLimit === name),
      ]),
      ['write', RATE_LIMITS.writesPerUser, routesWith(({ isExemptWrite }) => isExemptWrite)],
    ],
  )
})

t.test('re-authentication: docs/api.md names the routes that need it', async t => {
  const [, list = ''] = /## Re-authentication.*?\*\*The routes\*\* are ([^.]*)\./s.exec(api) ?? []
  t.same(
    [...list.matchAll(/`([^`]+)`/g)].map(([, route]) => route).sort(),
    live
      .filter(({ reauthenticate, ofFeature }) => reauthenticate && !ofFeature)
      .map(({ method, url }) => `${method} ${url}`)
      .sort(),
  )
})

t.test('mails: the table in docs/mail.md has the kinds and subjects of the code', async t => {
  const kinds: MailKinds = Object.assign({}, ACCOUNT_MAILS, ...BUILT_IN.map(({ mails }) => mails))
  t.same(
    tableBelow(read('docs/mail.md'), '## Kinds').map(([kind, subject]) => [kind, subject]),
    Object.entries(kinds).map(([kind, { subject }]) => [kind, subject]),
  )
})

/** What all commands have, or all but a few: said once above the table. */
const COMMON_OPTIONS = ['--help', '--database', '--json']

const namesOf = (text: string): string[] =>
  [...text.matchAll(/--[a-z-]+/g)].map(([name]) => name).filter(name => !COMMON_OPTIONS.includes(name))

/** Each command that does something, as it is typed, with the options of its own. */
const leaves = (command: Command, path: readonly string[] = []): [string, string[]][] => {
  if (command.commands.length > 0)
    return command.commands.flatMap(each => leaves(each, [...path, each.name()]))
  const args = command.usage().replace('[options]', '').trim()
  const flags = command.options.map(option => option.flags).join(' ')
  return [[[...path, args].join(' ').trim(), namesOf(flags)]]
}

t.test('commands: the table in docs/operations.md has every command and its options', async t => {
  const program = new Command()
  coreCommands(program)
  const declared = {
    userScopes: userScopesOf(BUILT_IN),
    adminScopes: adminScopesOf(BUILT_IN),
    eventTypes: Object.keys(eventSchemasOf(BUILT_IN)),
  }
  for (const { commands } of BUILT_IN) await commands?.(program, async () => undefined, declared)
  const documented = tableBelow(read('docs/operations.md'), '## Command line').map(
    ([command = '', , options = '']) => [command, namesOf(options)],
  )
  t.same(documented, leaves(program))
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

t.test('scopes: the tables in docs/api.md have those of the code, in its order', async t => {
  t.same(
    tableBelow(api, '## API keys').map(([scope]) => scope),
    Object.keys(userScopesOf(BUILT_IN)),
  )
  for (const [scope, allows = ''] of tableBelow(api, '## API keys')) {
    const routes = live.filter(
      each => each.gate === 'user' && each.scope === scope && each.method !== 'HEAD' && !each.ofFeature,
    )
    if (/^[A-Z]+ \//.test(allows))
      t.same(
        allows.split(', '),
        routes.map(({ method, url }) => `${method} ${url}`),
        `D6: ${scope}`,
      )
  }
  t.same(tableBelow(api, '## Admin keys'), Object.entries(adminScopesOf(BUILT_IN)))
})

t.test('scopes of fields: the table in docs/api.md is the live one', async t => {
  const scoped = app.routeTable.flatMap(({ methods, url, options }) => {
    const fields = Object.keys(options.config?.fieldScopes ?? {})
    return fields.length === 0 ? [] : [[`${methods[0]} ${url}`, fields.sort().join(', ')]]
  })
  const table = tableBelow(api, '### Scopes of fields').map(([route, fields]) => [route, fields])
  t.same(table.sort(), scoped.sort())
})

t.test('routes: the table in docs/api.md is the live one (§4)', async t => {
  const routes = live
    .filter(
      ({ documentation, page, ofFeature, method }) =>
        !documentation && !page && !ofFeature && method !== 'HEAD',
    )
    .map(({ method, url, gate, scope, fieldScopes }) =>
      [method, url, gate ?? 'public', ...(scope === undefined ? [] : [scope]), ...fieldScopes].join(' '),
    )
  const gates: Record<string, string> = { public: 'public', user: 'user', 'admin key': 'adminKey' }
  t.same(
    tableBelow(api, '## Routes')
      .map(([route, cell = '']) => {
        const [gate = '', ...scope] = cell.split(', ')
        return [route, gates[gate], ...scope].join(' ')
      })
      .sort(),
    routes.sort(),
  )
})

t.test('hosted pages: the table in docs/api.md is the live one', async t => {
  const pages = live
    .filter(({ page, ofFeature, method }) => page && !ofFeature && method !== 'HEAD')
    .map(({ method, url, gate = 'public' }) => `${method} ${url} ${gate}`)
  t.same(
    tableBelow(api, '## Hosted pages')
      .map(([page]) => `${page} public`)
      .sort(),
    pages.sort(),
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

t.test('figures: what documents say of the bench is what the bench wrote', async t => {
  const results = read('bench/RESULTS.md')
  for (const text of [readme, read('docs/load-testing.md'), read('docs/scaling.md')]) {
    const rows = [...text.matchAll(/^\| `([\w-]+)` (\|.*)$/gm)].flatMap(([, scenario = '', row = '']) => {
      const section = results.split(/^## /m).find(part => part.startsWith(`${scenario}\n`))
      return section === undefined ? [] : [{ scenario, row, section }]
    })
    t.ok(rows.length > 5)
    for (const { scenario, row, section } of rows) t.ok(section.includes(`\n${row}\n`), `${scenario}: ${row}`)
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

t.test('links: every file and every heading that a document links to exists', async t => {
  let links = 0
  for (const document of DOCUMENTS)
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

t.test('README.md has at most 200 lines and leads to every document', async t => {
  t.ok(readme.trimEnd().split('\n').length <= 200)
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
