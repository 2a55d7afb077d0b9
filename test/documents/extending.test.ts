/**
 * The pages for teams that build on Gatehouse: a copy of the project with their code blocks passes its checks and tests.
 * examples/notes has the code of the page.
 */
import { execFile } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { FEATURES } from '#features/own'
import { impersonate } from '../support/admin-routes.ts'
import { asAdmin, bearer, build, signUp, temporaryFolder } from '../support/build.ts'
import { signedInTo } from '../support/console.ts'
import { globalErrorOf } from '../support/error-response.ts'
import { unlessTaken } from '../support/examples.ts'
import { applyBlocks, blocksOf } from '../support/page-blocks.ts'
import { projectTree, WHOLE_PROJECT } from '../support/project-copy.ts'

const PROJECT = join(import.meta.dirname, '..', '..')

const blocks = ['docs/extending.md', 'plugins/README.md'].flatMap(page =>
  blocksOf(page, readFileSync(join(PROJECT, page), 'utf8')),
)
const firstExamples = blocks.filter(({ section }) => section === 'Routes')

/**
 * The test of the page, the tests that compare documents and lists with the code, and others that look at every feature of the service: a
 * fork's feature must not make them fail.
 */
const TESTS = [
  './notes.test.ts',
  './documents/documents.test.ts',
  './documents/openapi.test.ts',
  './gates/access-matrix.test.ts',
  './errors/hostile-text.test.ts',
  './postgres/round-trips.test.ts',
  './process/idle.test.ts',
  './storage/postgres-schema.test.ts',
  './storage/sqlite-schema.test.ts',
]

/** Services that a text names, except of the page's own feature. */
const servicesIn = (text: string): string[] => {
  const [, listed = ''] = /`app\.services` has the use cases \(([^)]*)\)/.exec(text) ?? []
  const names = [...listed.matchAll(/`(\w+)`/g), ...text.matchAll(/\bapp\.services\.(\w+)/g)]
  return names.map(([, name = '']) => name).filter(name => name !== 'notes')
}

/** Which tests and subtests run: what takes long and does not concern the example is left out. */
const TAP_GREP = [
  '/^(?!.docs shows|an idle service|the primary of|also after a kill|memory of)/',
  '/notes?\\b|greeting|\\bage\\b|gates|K6/i',
].join('\n')

/** Limits the check of types to the code and the tests of the page: that of the project covers the others. */
const TSCONFIG = readFileSync(join(PROJECT, 'tsconfig.json'), 'utf8').replace(
  '"test", "bench", "scripts"',
  '"test/page.test.ts", "test/documents"',
)

/** Limits lint and the check of imports to what the blocks can break, for the same reason: 6 seconds of a core. */
const PACKAGE = readFileSync(join(PROJECT, 'package.json'), 'utf8')
  .replace('biome check .', `biome check ${[...new Set(blocks.map(({ path }) => path))].join(' ')}`)
  .replace('src plugins routes client bench scripts examples test', 'src plugins routes')

/** Bytes: the tests of the page write some megabytes. */
const MAX_OUTPUT = 2 ** 26

/** Runs a program in the folder and requires exit code 0. @returns its output. */
const succeeds = async (t: Test, cwd: string, file: string, args: readonly string[]): Promise<string> => {
  const env = { ...process.env, _TAPJS_PROCESSINFO_COVERAGE_: '0', TAP_GREP }
  const { code, stdout, stderr } = await promisify(execFile)(file, args, {
    cwd,
    env,
    maxBuffer: MAX_OUTPUT,
  }).then(
    output => ({ code: 0, ...output }),
    error => error,
  )
  t.equal(code, 0, args.join(' '), { output: `${stdout}${stderr}` })
  return stdout
}

/** The files of the page and those of the example. */
const EXAMPLES: readonly (readonly [string, string])[] = [
  ['src/features/notes/notes.ts', 'examples/notes/notes.ts'],
  ['src/features/notes/pages.ts', 'examples/notes/pages.ts'],
  ['src/features/notes/console-pages.ts', 'examples/notes/console-pages.ts'],
  ...['private/notes', 'public/shared-notes', 'public/security/notes'].map(
    folder =>
      [`src/features/notes/routes/${folder}/routes.ts`, `examples/notes/routes/${folder}/routes.ts`] as const,
  ),
]

const IMPORT = /^import ([^']*) from '(.*)'$/gm

/** @returns the path of an imported file in the project; the name of a package. */
const pathOf = (specifier: string, importer: string): string => {
  if (specifier.startsWith('.')) return join(dirname(importer), specifier)
  if (!specifier.startsWith('#')) return specifier
  return `${specifier.startsWith('#routes/') ? '' : 'src/'}${specifier.slice(1)}.ts`
}

/** The code of a file without comments at its start, and its imports in any order, by paths in the project. */
const codeOf = (folder: string, path: string) => {
  const text = readFileSync(join(folder, path), 'utf8')
    // The page's feature is in the list, so `app.services` has its type.
    .replace(/^import type \{ ServicesOf .*\n/m, '')
    .replace(', type notes as feature', '')
    .replace(' as typeof app.services & ServicesOf<[typeof feature]>', '')
  const imports = [...text.matchAll(IMPORT)].map(([, names, from = '']) => {
    const file = pathOf(from, path)
    return `${names} from ${EXAMPLES.find(([, example]) => example === file)?.[0] ?? file}`
  })
  return { imports: imports.sort(), code: text.split(IMPORT).at(-1) }
}

t.test('every service that a page names exists', async t => {
  const { services } = await build(t)
  for (const page of ['docs/extending.md', 'docs/embedding.md', 'CONTRIBUTING.md', 'plugins/README.md'])
    for (const name of servicesIn(readFileSync(join(PROJECT, page), 'utf8')))
      t.ok(name in services, `${page}: ${name}`)
})

t.test(
  'the first examples of docs/extending.md work without the later ones',
  unlessTaken('notes'),
  async t => {
    const tree = projectTree(t, {})
    applyBlocks(tree.folder, firstExamples)
    const app = await tree.build(t)
    const ann = await signUp(app, { firstName: 'Ann' })

    const note = { method: 'POST', url: '/notes', payload: { text: 'buy hay' } } as const
    t.equal(globalErrorOf(t, await app.inject(note), 401), 'Sign in to use this route')
    const noted = await app.inject({ ...note, headers: bearer(ann.token) })
    t.equal(noted.statusCode, 201)
    t.same(noted.json(), { text: 'buy hay', by: ann.id })

    const greet = async (headers = {}) => (await app.inject({ url: '/greeting', headers })).json()
    t.same(await greet(), { greeting: 'Hello stranger' })
    t.same(await greet(bearer(ann.token)), { greeting: 'Hello Ann' })

    const url = `/admin/users/${ann.id}/age`
    const refused = await app.inject({ url, headers: bearer(ann.token) })
    t.equal(globalErrorOf(t, refused, 401), 'This route needs a valid admin key')
    t.same((await app.inject({ url, headers: asAdmin })).json(), { days: 0 })
  },
)

/** The blocks change the project without features. A fork with features of its own tests those. */
const skip = FEATURES.length > 0 && 'src/features/own.ts has features'

t.test('all blocks together', { skip }, async t => {
  const tree = projectTree(
    t,
    {
      'test/page.test.ts': TESTS.map(file => `import '${file}'\n`).join(''),
      'tsconfig.json': TSCONFIG,
      'package.json': PACKAGE,
    },
    WHOLE_PROJECT,
  )
  applyBlocks(tree.folder, blocks)
  // As step 3 says.
  rmSync(join(tree.folder, 'routes/private/notes/routes.ts'))
  // Later blocks replace some of the first examples. Outside the scopes these are checked, but not loaded.
  applyBlocks(
    tree.folder,
    firstExamples.map(block => ({ ...block, path: block.path.replace(/^routes\/\w+/, 'routes/examples') })),
  )
  t.test('npm run check and tests pass', async t => {
    const { folder } = tree
    const output = await succeeds(t, folder, process.execPath, [
      '--import',
      './src/preload.js',
      'test/page.test.ts',
    ])
    await succeeds(t, folder, 'npm', ['run', 'check'])
    for (const title of [
      'a note belongs',
      'a note is recorded',
      'moderation of notes',
      'GET /notes: 401 exactly',
      'GET /greeting',
      'POST /notes:',
      'PUT /notes/:id:',
      'K6: every list',
      'the round trips of a request',
      'the writer thread loads',
      'the known schema is',
    ])
      t.match(output, `- ${title}`)
  })

  t.test('examples/notes has the code of the page', async t => {
    for (const [path, example] of EXAMPLES)
      t.same(codeOf(tree.folder, path), codeOf(PROJECT, example), example)
  })

  t.test('the command lists notes', async t => {
    const env = { DATABASE_URL: `sqlite:${join(temporaryFolder(t), 'notes.db')}` }
    const app = await tree.build(t, { env })
    const { id, token } = await signUp(app)
    const payload = { text: 'buy hay' }
    const added = await app.inject({ method: 'POST', url: '/notes', headers: bearer(token), payload })
    const args = ['--import', './src/preload.js', 'src/cli.ts', 'notes', 'list', id]
    const listed = await succeeds(t, tree.folder, process.execPath, [...args, '--database', env.DATABASE_URL])
    t.equal(listed, `${added.json().id} buy hay\n`)
  })

  t.test('the console shows notes on the page of their user', async t => {
    const app = await tree.build(t, { env: { CONSOLE: 'on' } })
    const { id, token } = await signUp(app)
    const payload = { text: 'buy hay' }
    const added = await app.inject({ method: 'POST', url: '/notes', headers: bearer(token), payload })
    const client = await signedInTo(app)
    await client.open(`/console/users/${id}`)
    t.match(client.page, '<h2>Added notes</h2>')
    t.match(client.page, `<code>${added.json().id}</code>`)
    await client.open(`/console/events?userId=${id}&type=note.created`)
    t.equal(client.status, 200)
  })

  t.test('the hook refuses impersonation, the plugin decorates requests', async t => {
    const app = await tree.build(t, {
      extend: app => app.get('/tenant', async request => ({ tenant: Reflect.get(request, 'tenant') })),
    })
    const { id } = await signUp(app)
    const headers = bearer((await impersonate(app, id)).json().accessToken)
    const added = await app.inject({ method: 'POST', url: '/notes', headers, payload: { text: 'buy hay' } })
    t.equal(globalErrorOf(t, added, 403), 'An impersonated session cannot do this')
    t.same((await app.inject({ url: '/notes', headers })).json(), { results: [], nextCursor: null })

    const named = await app.inject({ url: '/tenant', headers: { 'x-tenant': 'stable' } })
    t.same(named.json(), { tenant: 'stable' })
  })
})

t.test('a block that does not apply is an error with its page and line', async t => {
  const folder = temporaryFolder(t)
  const apply = (...lines: string[]): string => {
    writeFileSync(join(folder, 'a.ts'), 'one\ntwo\none\nthree\nfour\n')
    applyBlocks(folder, blocksOf('page.md', ['text', ...lines, '```', ''].join('\n')))
    return readFileSync(join(folder, 'a.ts'), 'utf8')
  }
  t.equal(
    apply('```diff', '--- a.ts', ' one', '-two', '+2', ' one', '@@', '+3½', ' four'),
    'one\n2\none\nthree\n3½\nfour\n',
  )
  t.equal(apply('```ts', '// a.ts', '', 'five'), '// a.ts\n\nfive\n')
  t.equal(apply('```ts illustration', '// a.ts', 'five'), 'one\ntwo\none\nthree\nfour\n')

  const inFile = 'page.md:2: a.ts: this hunk'
  const wrong: [string, ...string[]][] = [
    ['page.md:2: the block names no file', '```ts', 'const one = 1'],
    ['page.md:2: the block names no file', '```diff', ' one', '+two'],
    [`${inFile} is not found`, '```diff', '--- a.ts', ' two', ' three', '+four'],
    [`${inFile} is found several times`, '```diff', '--- a.ts', ' one', '+two'],
    [`${inFile} is not below the hunk before it`, '```diff', '--- a.ts', ' four', '+5', '@@', ' two', '+3'],
    [`${inFile} has no line of the file`, '```diff', '--- a.ts', '+five'],
    [`${inFile} has a line without a sign`, '```diff', '--- a.ts', ' three', 'four', '+five'],
  ]
  for (const [message, ...lines] of wrong)
    t.throws(() => apply(...lines), { message: new RegExp(`^${message}:\\n`) }, message)
})
