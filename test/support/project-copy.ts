/** Copies of the project's code in temporary folders, for tests that change the code. */
import { spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import type { Feature } from '#feature/declaration'
import { type BuildOptions, build, type Context } from './build.ts'

const PROJECT = join(import.meta.dirname, '..', '..')

export interface Tree {
  readonly folder: string
  /** Builds the service from this copy. */
  build(t: Context, options?: BuildOptions): Promise<FastifyInstance>
}

/** What the service needs to run. */
const CODE = ['src', 'plugins', 'routes', 'test/support', 'package.json']

const UNTRACKED = ['.env', '.git', '.tap', 'data', 'node_modules']

/** Everything in the repository. */
export const WHOLE_PROJECT: readonly string[] = readdirSync(PROJECT).filter(name => !UNTRACKED.includes(name))

/** @returns the text of `src/features/built-in.ts` with another feature. */
export const withBuiltIn = (feature: string, importStatement: string): string =>
  importStatement +
  readFileSync(join(PROJECT, 'src/features/built-in.ts'), 'utf8').replace(
    'BUILT_IN_FEATURES = [',
    `$&${feature}, `,
  )

type Build = Tree['build']

const newFolder = (t: Context): string => {
  // Inside the project, so that the copy's imports find its packages.
  mkdirSync(join(PROJECT, '.tap'), { recursive: true })
  const folder = mkdtempSync(join(PROJECT, '.tap', 'tree-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const copy = (folder: string, parts: readonly string[]): void => {
  for (const part of parts) cpSync(join(PROJECT, part), join(folder, part), { recursive: true })
}

const change = (folder: string, files: Record<string, string | null>): void => {
  for (const [path, content] of Object.entries(files)) {
    const file = join(folder, path)
    mkdirSync(dirname(file), { recursive: true })
    if (content === null) rmSync(file)
    else writeFileSync(file, content)
  }
}

const buildIn =
  (folder: string): Build =>
  async (t, options) => {
    const support = (await import(join(folder, 'test/support/build.ts'))) as typeof import('./build.ts')
    return support.build(t, options)
  }

/**
 * @param files texts by path that are added or replaced; `null` removes the file.
 * @param parts paths to copy; by default what the service needs to run.
 */
export const projectTree = (
  t: Context,
  files: Record<string, string | null>,
  parts: readonly string[] = CODE,
): Tree => {
  const folder = newFolder(t)
  copy(folder, parts)
  change(folder, files)
  return { folder, build: buildIn(folder) }
}

/** Creates `path` with links to what it contains in the project, except for `file`. */
const link = (folder: string, path: string, file: string): void => {
  mkdirSync(join(folder, path), { recursive: true })
  for (const name of readdirSync(join(PROJECT, path)))
    if (name !== file) symlinkSync(join(PROJECT, path, name), join(folder, path, name))
}

/** The module of a feature that only adds routes. */
const ADDED = `export const added = { name: 'added', module: import.meta.url, routes: new URL('./routes/', import.meta.url) }\n`

/**
 * Like {@link projectTree} for files in `routes/` and `plugins/`, without the rest of the code: the service uses the modules that this
 * process has loaded already, which takes a third of the time. Routes that the project does not have need no copy: they are those of a
 * feature.
 */
export const routesTree = (
  t: Context,
  files: Record<`${'routes' | 'plugins'}/${string}`, string | null>,
): Pick<Tree, 'build'> => {
  const folder = newFolder(t)
  const areNew = Object.keys(files).every(
    path => path.startsWith('routes/') && !existsSync(join(PROJECT, path)),
  )
  if (areNew) {
    change(folder, { ...files, 'added.ts': ADDED })
    return {
      async build(t, options) {
        const { added } = (await import(join(folder, 'added.ts'))) as { added: Feature }
        return build(t, { ...options, features: [...(options?.features ?? []), added] })
      },
    }
  }
  link(folder, 'src', 'app.ts')
  link(folder, 'test/support', 'build.ts')
  copy(folder, ['package.json', 'plugins', 'routes', 'src/app.ts', 'test/support/build.ts'])
  change(folder, files)
  return { build: buildIn(folder) }
}

/** Copies what a clone of the repository has, and new files that Git does not ignore, without tests and the bench. */
export const copyCheckout = (folder: string): void => {
  const files = ['--cached', '--others', '--exclude-standard', '--', '.', ':!test', ':!bench']
  const { stdout } = spawnSync('git', ['ls-files', '-z', ...files], { cwd: PROJECT, encoding: 'utf8' })
  const existing = stdout.split('\0').filter(file => file !== '' && existsSync(join(PROJECT, file)))
  for (const file of existing) cpSync(join(PROJECT, file), join(folder, file))
}
