import type { PostgresServer } from '../../../scripts/postgres-server.ts'
import type { Context } from '../../support/build.ts'
import type { Random } from '../../support/random.ts'

/** The input of a part of the run. */
export interface Part {
  /** Registers clean-up, also after an error. */
  readonly context: Context
  readonly random: Random
  readonly rounds: number
  readonly postgres: PostgresServer
  /** An empty database on that server. */
  readonly databaseUrl: string
  /** The environment of every instance. */
  readonly env: Record<string, string>
}
