/**
 * The pages for teams that build on Gatehouse: a copy of the project with examples/notes as a feature and the code blocks of the pages passes
 * its checks and tests.
 */
import { execFile } from 'node:child_process'
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { FEATURES } from '#features/own'
import { impersonate } from '../support/admin-routes.ts'
import { asAdmin, bearer, build, signUp, temporaryFolder, updateUser } from '../support/build.ts'
import { signedInTo } from '../support/console.ts'
import { globalErrorOf } from '../support/error-response.ts'
import { unlessTaken } from '../support/examples.ts'
import { mailbox } from '../support/mailbox.ts'
import { applyBlocks, blocksOf, excerptsOf } from '../support/page-blocks.ts'
import { projectTree, WHOLE_PROJECT } from '../support/project-copy.ts'

const PROJECT = join(import.meta.dirname, '..', '..')

const read = (path: string): string => readFileSync(join(PROJECT, path), 'utf8')

const blocks = ['docs/extending.md', 'plugins/README.md'].flatMap(page => blocksOf(page, read(page)))
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
  '/notes?\\b|gates|K6/i',
].join('\n')

/** Limits the check of types to the code and the tests of the page: that of the project covers the others. */
const TSCONFIG = read('tsconfig.json').replace(
  '"test", "bench", "scripts"',
  '"test/groups/page.test.ts", "test/documents"',
)

const FEATURE = 'src/features/notes'

const LINTED = new Set(blocks.filter(block => !firstExamples.includes(block)).map(({ path }) => path))

/** Limits lint and the check of imports to what the page can break, for the same reason: 6 seconds of a core. */
const PACKAGE = read('package.json')
  .replace('biome check .', `biome check ${[FEATURE, 'routes/examples', ...LINTED].join(' ')}`)
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

t.test('every service that a page names exists', async t => {
  const { services } = await build(t)
  for (const page of ['docs/extending.md', 'docs/embedding.md', 'CONTRIBUTING.md', 'plugins/README.md'])
    for (const name of servicesIn(read(page))) t.ok(name in services, `${page}: ${name}`)
})

t.test('what the page quotes of the examples stands there', async t => {
  const excerpts = excerptsOf(read('docs/extending.md'))
  t.ok(excerpts.length > 3)
  for (const { path, parts } of excerpts) {
    let rest = read(path)
    for (const part of parts) {
      const at = rest.indexOf(part)
      t.not(at, -1, `${path}:\n${part}`)
      rest = rest.slice(at + part.length)
    }
  }
})

t.test('the first example of docs/extending.md works without the feature', unlessTaken('notes'), async t => {
  const tree = projectTree(t, {})
  applyBlocks(tree.folder, firstExamples)
  const app = await tree.build(t)
  const ann = await signUp(app)

  const note = { method: 'POST', url: '/notes', payload: { text: 'buy hay' } } as const
  t.equal(globalErrorOf(t, await app.inject(note), 401), 'Sign in to use this route')
  const noted = await app.inject({ ...note, headers: bearer(ann.token) })
  t.equal(noted.statusCode, 201)
  t.same(noted.json(), { text: 'buy hay', by: ann.id })
})

/** The page changes the project without features. A fork with features of its own tests those. */
const skip = FEATURES.length > 0 && 'src/features/own.ts has features'

t.test('the feature in a copy of the project', { skip }, async t => {
  const tree = projectTree(
    t,
    {
      'test/groups/page.test.ts': TESTS.map(file => `import '.${file}'\n`).join(''),
      'tsconfig.json': TSCONFIG,
      'package.json': PACKAGE,
    },
    WHOLE_PROJECT,
  )
  applyBlocks(tree.folder, blocks)
  // As the page says.
  const isCode = (path: string): boolean => !path.endsWith('README.md')
  cpSync(join(PROJECT, 'examples/notes'), join(tree.folder, FEATURE), { recursive: true, filter: isCode })
  rmSync(join(tree.folder, 'routes/private/notes'), { recursive: true })
  // The first example is checked too, but not loaded.
  applyBlocks(
    tree.folder,
    firstExamples.map(block => ({ ...block, path: block.path.replace(/^routes\/\w+/, 'routes/examples') })),
  )
  t.test('npm run check and tests pass', async t => {
    const { folder } = tree
    const output = await succeeds(t, folder, process.execPath, [
      '--import',
      './src/preload.js',
      'test/groups/page.test.ts',
    ])
    await succeeds(t, folder, 'npm', ['run', 'check'])
    for (const title of [
      'a note belongs',
      'GET /notes: 401 exactly',
      'POST /notes:',
      'PUT /notes/:id:',
      'K6: every list',
      'the round trips of a request',
      'the writer thread loads',
      'the known schema is',
    ])
      t.match(output, `- ${title}`)
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

  t.test('a note is recorded and mailed', async t => {
    const app = await tree.build(t)
    const { id, email, token } = await signUp(app)
    const payload = { text: 'buy hay' }
    const note = (await app.inject({ method: 'POST', url: '/notes', headers: bearer(token), payload })).json()
    const url = `/admin/events?userId=${id}&type=note.created`
    const { results } = (await app.inject({ url, headers: asAdmin })).json()
    t.match(results, [{ type: 'note.created', actor: { type: 'user', id }, details: { note: note.id } }])
    // Closes the service, which sends the mails.
    t.ok((await mailbox(app).final(email)).includes('You added a note'))
  })

  t.test('moderation needs a role', async t => {
    const app = await tree.build(t)
    const { id, token } = await signUp(app)
    const moderate = () => app.inject({ url: '/notes/moderation', headers: bearer(token) })
    t.equal(globalErrorOf(t, await moderate(), 403), 'This needs a role that you do not have')
    await updateUser(app, id, { roles: ['moderator'] })
    t.strictSame((await moderate()).json(), { moderator: id })
  })

  t.test('the console shows notes on the page of their user', async t => {
    const app = await tree.build(t, { env: { CONSOLE: 'on' } })
    const { id, token } = await signUp(app)
    const payload = { text: 'buy hay' }
    const added = await app.inject({ method: 'POST', url: '/notes', headers: bearer(token), payload })
    const client = await signedInTo(app)
    await client.open(`/console/users/${id}`)
    t.match(client.page, 'Added notes')
    await client.open(`/console/users/${id}/notes`)
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
  t.same(excerptsOf('```ts a/b.ts\none\n  // …\nthree\n```\n'), [
    { path: 'a/b.ts', parts: ['one\n', 'three\n'] },
  ])

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
