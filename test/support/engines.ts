/** The service on each of its engines: HTTP tests run on both (DESIGN §7). */
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import type { Test } from 'tap'
import { type BuildOptions, build, type Context, temporaryFolder } from './build.ts'
import { createDatabase } from './postgres.ts'

export interface Engine {
  readonly name: string
  /** The `DATABASE_URL` of an empty database, removed with the test. */
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

const ENGINES: readonly Engine[] = [
  engine('sqlite', async t => `sqlite:${join(temporaryFolder(t), 'test.db')}`),
  engine('postgres', createDatabase),
]

/** Runs the same tests on each engine, under its name. */
export const onEveryEngine = async (
  t: Test,
  run: (t: Test, engine: Engine) => Promise<void>,
): Promise<void> => {
  for (const engine of ENGINES) await t.test(engine.name, t => run(t, engine))
}
