/** Processes of a project whose `src/features/own.ts` lists features: the service, commands of features, and `copy`. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openSqliteStorage } from '#core/store/sqlite'
import { BUILT_IN_FEATURES } from '#features/built-in'
import { notes } from '../../examples/notes/notes.ts'
import { add, eventOf, NOW } from '../storage/contract/fixtures.ts'
import { ADMIN_KEY, JWT_SECRET, temporaryFolder } from '../support/build.ts'
import { createDatabase } from '../support/postgres.ts'
import { projectTree, withBuiltIn } from '../support/project-copy.ts'

const IMPORT_NOTES = `import { notes } from '../../examples/notes/notes.ts'\n`

/** A project with these features, and with `notes` among the built-in ones if `builtIn`. @returns runs a script of it. */
const project = (t: Test, features: string, { builtIn = false, imports = IMPORT_NOTES, more = {} } = {}) => {
  const files = {
    ...more,
    'src/features/own.ts': `${imports}export const FEATURES = [${features}] as const\n`,
    ...(builtIn && { 'src/features/built-in.ts': withBuiltIn('notes', IMPORT_NOTES) }),
  }
  const parts = ['src', 'plugins', 'routes', 'examples', 'package.json']
  const { folder } = projectTree(t, files, parts)
  return async (script: string, args: readonly string[], env: Record<string, string> = {}) => {
    const child = spawn(process.execPath, ['--import', './src/preload.js', script, ...args], {
      cwd: folder,
      env: { ...process.env, _TAPJS_PROCESSINFO_COVERAGE_: '0', NODE_ENV: 'test', ...env },
    })
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', chunk => {
      stdout += chunk
    })
    child.stderr.on('data', chunk => {
      stderr += chunk
    })
    const [code] = await once(child, 'close')
    return { code, stdout, stderr }
  }
}

t.test('a wrong declaration stops the service and the command line with one sentence', async t => {
  const run = project(t, 'notes, notes')
  const file = join(temporaryFolder(t), 'test.db')
  const env = { DATABASE_URL: `sqlite:${file}`, ADMIN_KEY, JWT_SECRET, MAIL_URL: 'off', PORT: '0' }
  const service = await run('src/server.ts', [], env)
  t.match(service, { code: 1, stderr: /^Gatehouse cannot start: The feature notes is declared twice\n$/ })
  const workers = await run('src/server.ts', [], {
    ...env,
    // Never connected to.
    DATABASE_URL: 'postgres://user@localhost:1/none',
    WORKERS: '2',
  })
  t.match(workers, { code: 1, stderr: /^(Gatehouse cannot start: The feature notes is declared twice\n)+/ })
  t.notMatch(workers.stderr, / at .*\.ts:/, 'no stack')
  t.match(await run('src/cli.ts', ['users', 'list'], env), {
    code: 1,
    stdout: '',
    stderr: /^The feature notes is declared twice\n$/,
  })
  t.notOk(existsSync(file))
})

const copyNotes = async (t: Test, run: ReturnType<typeof project>): Promise<void> => {
  const file = join(temporaryFolder(t), 'test.db')
  const source = await openSqliteStorage(file, [...BUILT_IN_FEATURES, notes])
  const { user } = await add(source)
  const { addNote } = source.features.notes as unknown as Record<
    string,
    (...args: unknown[]) => Promise<unknown>
  >
  const event = { ...eventOf(user.id, NOW), type: 'note.created', details: { note: 'a' } }
  await addNote?.({ id: 'a', text: 'a note', createdAt: NOW, updatedAt: NOW }, 100, event)
  await source.close()
  const list = await run('src/cli.ts', ['notes', 'list', user.id, '--database', `sqlite:${file}`])
  t.strictSame(list, { code: 0, stdout: 'a a note\n', stderr: '' })

  const url = await createDatabase(t)
  t.match(await run('src/cli.ts', ['copy', '--from', `sqlite:${file}`, '--to', url]), {
    code: 0,
    stdout: /\n {2}1 +notes\n/,
  })
  t.strictSame(await run('src/cli.ts', ['notes', 'list', user.id, '--database', url]), list)

  const other = await createDatabase(t)
  const without = await project(t, '')('src/cli.ts', ['copy', '--from', `sqlite:${file}`, '--to', other])
  t.match(without, {
    code: 0,
    stderr: /\nThe tables of the feature notes were left out: this version does not have the feature\n/,
  })
}

t.test('a feature has commands, and copy copies its rows', async t => {
  await copyNotes(t, project(t, 'notes'))
})

t.test('so does a built-in feature, which src/features/own.ts does not list', async t => {
  await copyNotes(t, project(t, '', { builtIn: true }))
})

t.test('a feature cannot have the name of a built-in one', async t => {
  const run = project(t, 'notes', { builtIn: true })
  t.match(await run('src/cli.ts', ['users', 'list']), {
    code: 1,
    stderr: /^The feature notes is declared twice\n$/,
  })
})

const ABOUT = `
import { defineFeature } from '#feature/declaration'

export const about = defineFeature({
  name: 'about',
  module: import.meta.url,
  services: { about: ({ config }) => config },
  commands: (program, withServices) => {
    program.command('about').option('--database <url>').action(options =>
      withServices(options, async ({ about }) => console.log(JSON.stringify(about))))
  },
})
`

t.test('a command knows of the configuration what its services need', async t => {
  const imports = `import { about } from './about.ts'\n`
  const run = project(t, 'about', { imports, more: { 'src/features/about.ts': ABOUT } })
  const file = join(temporaryFolder(t), 'test.db')
  const DATABASE_URL = `sqlite:${file}`
  await (await openSqliteStorage(file, BUILT_IN_FEATURES)).close()
  const env = {
    NODE_ENV: 'production',
    PUBLIC_URL: 'https://example.com/api',
    WEB_URL: 'https://app.example.com',
    PAGES: 'off',
  }
  const { stdout, code } = await run('src/cli.ts', ['about', '--database', DATABASE_URL], env)
  t.equal(code, 0)
  t.strictSame(JSON.parse(stdout), {
    isProduction: true,
    productName: 'example.com',
    publicUrl: 'https://example.com/api',
    webUrl: 'https://app.example.com/',
    eventsKept: 365 * 86_400_000,
    requireEmailVerification: false,
  })
  const wrong = await run('src/cli.ts', ['about', '--database', DATABASE_URL], { PUBLIC_URL: 'x' })
  t.match(wrong, { code: 2, stdout: '', stderr: /PUBLIC_URL / })
})

/** Fails after it has added commands: at the top, and to a group of the core. */
const BROKEN = `
import { defineFeature } from '#feature/declaration'

const commands = async program => {
  program.command('broken').command('list').action(() => console.log('half'))
  program.commands.find(command => command.name() === 'users').command('break').action(() => console.log('half'))
  throw new Error('not today')
}

export const broken = defineFeature({ name: 'broken', module: import.meta.url, commands })
`

t.test('commands that fail to load hit no other command', async t => {
  const imports = `${IMPORT_NOTES}import { broken } from './broken.ts'\n`
  const run = project(t, 'broken, notes', { imports, more: { 'src/features/broken.ts': BROKEN } })
  const file = join(temporaryFolder(t), 'test.db')
  await (await openSqliteStorage(file, [...BUILT_IN_FEATURES, notes])).close()
  const database = ['--database', `sqlite:${file}`]
  const nobody = '018f0000-0000-7000-8000-000000000000'
  t.strictSame(await run('src/cli.ts', ['notes', 'list', nobody, ...database]), {
    code: 0,
    stdout: '',
    stderr: '',
  })
  t.match(await run('src/cli.ts', ['users', 'list', ...database]), { code: 0, stderr: '' })
  for (const args of [
    ['broken', 'list'],
    ['users', 'break'],
  ])
    t.match(await run('src/cli.ts', args), {
      code: 2,
      stdout: '',
      stderr: /unknown command .*\nThe commands of the feature broken are missing: Error: not today\n/s,
    })
})
