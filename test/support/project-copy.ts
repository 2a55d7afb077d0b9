/** A copy of the project's code in a folder of its own, to be changed and then started: what a team does with theirs. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import type { BuildOptions, Context } from './build.ts'

const PROJECT = join(import.meta.dirname, '..', '..')

export interface Tree {
  readonly folder: string
  /** Builds the service from this copy. */
  build(t: Context, options?: BuildOptions): Promise<FastifyInstance>
}

/**
 * @param files texts by path, added to the copy or put in place of what is there; `null` removes the file.
 */
export const projectTree = (t: Context, files: Record<string, string | null>): Tree => {
  // Inside the project, where the copy's imports find its packages.
  mkdirSync(join(PROJECT, '.tap'), { recursive: true })
  const folder = mkdtempSync(join(PROJECT, '.tap', 'tree-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  for (const part of ['src', 'plugins', 'routes', 'test/support', 'package.json']) {
    cpSync(join(PROJECT, part), join(folder, part), { recursive: true })
  }
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
