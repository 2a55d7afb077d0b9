/** A copy of the project's code in a temporary folder, for tests that change the code. */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import type { BuildOptions, Context } from './build.ts'

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

/** @returns the text of `src/built-in-features.ts` with another feature. */
export const withBuiltIn = (feature: string, importStatement: string): string =>
  importStatement +
  readFileSync(join(PROJECT, 'src/built-in-features.ts'), 'utf8').replace(
    'BUILT_IN_FEATURES = [',
    `$&${feature}, `,
  )

/**
 * @param files texts by path that are added or replaced; `null` removes the file.
 * @param parts paths to copy; by default what the service needs to run.
 */
export const projectTree = (
  t: Context,
  files: Record<string, string | null>,
  parts: readonly string[] = CODE,
): Tree => {
  // Inside the project, so that the copy's imports find its packages.
  mkdirSync(join(PROJECT, '.tap'), { recursive: true })
  const folder = mkdtempSync(join(PROJECT, '.tap', 'tree-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  for (const part of parts) cpSync(join(PROJECT, part), join(folder, part), { recursive: true })
  for (const [path, content] of Object.entries(files)) {
    const file = join(folder, path)
    mkdirSync(dirname(file), { recursive: true })
    if (content === null) rmSync(file)
    else writeFileSync(file, content)
  }
  return {
    folder,
    async build(t, options) {
      const support = (await import(join(folder, 'test/support/build.ts'))) as typeof import('./build.ts')
      return support.build(t, options)
    },
  }
}
