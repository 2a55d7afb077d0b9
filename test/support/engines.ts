/** The service on each of its engines: HTTP tests run on both (docs/design.md, "Storage"). */
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import type { Test } from 'tap'
import { type BuildOptions, build, type Context, newFile, temporaryFolder } from './build.ts'
import { createDatabase, newDatabase } from './postgres.ts'
import { inShortRun } from './run.ts'

export interface Engine {
  readonly name: string
  /** The `DATABASE_URL` of a database with the schema of the service and without rows, removed with the test. */
  newDatabase(t: Context): Promise<string>
  /** The same without a schema: the service migrates it. */
  emptyDatabase(t: Context): Promise<string>
  /** An app on a new database, unless `env` names one. */
  build(t: Context, options?: BuildOptions): Promise<FastifyInstance>
}

const engine = (databases: Omit<Engine, 'build'>): Engine => ({
  ...databases,
  async build(t, options = {}) {
    const DATABASE_URL = options.env?.DATABASE_URL ?? (await databases.newDatabase(t))
    return build(t, { ...options, env: { ...options.env, DATABASE_URL } })
  },
})

const ENGINES: readonly Engine[] = [
  engine({
    name: 'sqlite',
    newDatabase: newFile,
    emptyDatabase: async t => `sqlite:${join(temporaryFolder(t), 'test.db')}`,
  }),
  engine({ name: 'postgres', newDatabase, emptyDatabase: createDatabase }),
]

type Tests = (t: Test, engine: Engine) => Promise<void>

interface Options {
  readonly skip?: string | false
}

const onEngines =
  (engines: readonly Engine[]) =>
  async (t: Test, run: Tests, options: Options = {}): Promise<void> => {
    for (const engine of engines) await t.test(engine.name, options, t => run(t, engine))
  }

/** Runs the same tests on each engine, under its name. */
export const onEveryEngine = onEngines(ENGINES)

/** The same, but on SQLite alone in `npm test`. */
export const onEnginesOfRun = onEngines(inShortRun(ENGINES.slice(0, 1), ENGINES))
