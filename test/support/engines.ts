/** The service on each of its engines: HTTP tests run on both (DESIGN §7). */
import type { FastifyInstance } from 'fastify'
import type { Test } from 'tap'
import { type BuildOptions, build, type Context, newFile } from './build.ts'
import { newDatabase } from './postgres.ts'

export interface Engine {
  readonly name: string
  /** The `DATABASE_URL` of a database with the schema of the service and without rows, removed with the test. */
  newDatabase(t: Context): Promise<string>
  /** An app on a new database, unless `env` names one. */
  build(t: Context, options?: BuildOptions): Promise<FastifyInstance>
}

const engine = (name: string, newDatabase: Engine['newDatabase']): Engine => ({
  name,
  newDatabase,
  async build(t, options = {}) {
    const DATABASE_URL = options.env?.DATABASE_URL ?? (await newDatabase(t))
    return build(t, { ...options, env: { ...options.env, DATABASE_URL } })
  },
})

const ENGINES: readonly Engine[] = [engine('sqlite', newFile), engine('postgres', newDatabase)]

/** Runs the same tests on each engine, under its name. */
export const onEveryEngine = async (
  t: Test,
  run: (t: Test, engine: Engine) => Promise<void>,
): Promise<void> => {
  for (const engine of ENGINES) await t.test(engine.name, t => run(t, engine))
}
