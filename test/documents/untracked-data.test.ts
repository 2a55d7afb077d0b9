/** Files that the documents' examples write are in no commit and no package. */
import { spawnSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { temporaryFolder } from '../support/build.ts'

const PROJECT = join(import.meta.dirname, '..', '..')
const DOCUMENTS = ['README.md', 'requests.http', ...globSync('docs/*.md', { cwd: PROJECT })]

/** Files that commands in the documents write, or read after the reader has written them. */
const filesOf = (text: string): string[] =>
  [
    /(?<=\bcurl [^\n]*) -[cobT] ([\w./-]+)/g,
    /--(?:file|tokens)[= ]([^\s<`;]+)/g,
    /\.backup ([^\s"']+)/g,
    /\busers \w+[^\n|]*? [<>] ([^\s<`&$]+)/g,
    /\bcp (?!-r )\S+ ([^\s`)]+)/g,
  ].flatMap(pattern => [...text.matchAll(pattern)].map(([, file = '']) => file))

const written = DOCUMENTS.flatMap(document => filesOf(readFileSync(join(PROJECT, document), 'utf8')))

t.test('every example writes below data/', async t => {
  for (const file of [
    'cookies.txt',
    'users.ndjson',
    'results.ndjson',
    'tokens.txt',
    'password.txt',
    'copy.db',
  ])
    t.ok(written.includes(`data/${file}`), file)
  for (const file of written) t.match(file, /^data\//)
})

t.test('git and npm pack ignore the files of the examples and the service', async t => {
  const folder = temporaryFolder(t)
  for (const part of [
    'src',
    'plugins',
    'routes',
    'test/support',
    'docs',
    'package.json',
    'README.md',
    'LICENSE',
  ])
    cpSync(join(PROJECT, part), join(folder, part), { recursive: true })
  // In place of a build, which test/embedding/package.test.ts packs.
  for (const part of ['src', 'plugins', 'routes'])
    cpSync(join(PROJECT, part), join(folder, 'dist', part), { recursive: true })
  for (const part of ['.gitignore', '.env.example', 'CHANGELOG.md', 'compose.yaml'])
    cpSync(join(PROJECT, part), join(folder, part))
  const run = (command: string, ...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(command, args, { cwd: folder, encoding: 'utf8' })
    if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr}`)
    return stdout
  }
  run('git', 'init', '--quiet')
  run('git', 'add', '--all')
  const left = [...written, '.env', 'data/gatehouse.db', 'data/gatehouse.db.jwt-secret', 'data/outbox/1.eml']
  for (const file of left) {
    mkdirSync(join(folder, dirname(file)), { recursive: true })
    writeFileSync(join(folder, file), 'canary')
  }
  t.equal(run('git', 'status', '--porcelain', '--untracked-files=all').replaceAll(/^A .*\n/gm, ''), '')

  // Files of the user in the working directory, too.
  for (const file of ['users.ndjson', 'copy.db', 'tokens.txt', 'notes/secret.txt']) {
    mkdirSync(join(folder, dirname(file)), { recursive: true })
    writeFileSync(join(folder, file), 'canary')
  }
  const [{ files }] = JSON.parse(
    run('npm', 'pack', '--dry-run', '--json', '--ignore-scripts', '--loglevel=error'),
  )
  const paths: string[] = files.map(({ path }: { path: string }) => path)
  const unneeded = paths.filter(
    path =>
      !/^dist\/(src|plugins|routes)\//.test(path) &&
      !['package.json', 'README.md', 'LICENSE', 'CHANGELOG.md', '.env.example'].includes(path),
  )
  t.same(unneeded, [])
  for (const path of paths) t.ok(statSync(join(folder, path)).size > 0 && !/canary/.test(path))
  for (const needed of ['dist/src/server.ts', 'dist/plugins/docs.ts', 'dist/routes/public/routes.ts'])
    t.ok(paths.includes(needed), needed)
})

t.test('database back-ups are readable only by their owner', async t => {
  const operations = readFileSync(join(PROJECT, 'docs/operations.md'), 'utf8')
  for (const command of ['.backup', 'pg_dump --'])
    t.match(operations, new RegExp(`\\(umask 077; [^\`]*${command.replace('.', '\\.')}`))
})
