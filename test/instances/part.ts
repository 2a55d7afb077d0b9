import type { PostgresServer } from '../../scripts/postgres-server.ts'
import type { Context } from '../support/build.ts'
import type { Random } from '../support/random.ts'

/** What a part of the run is given. */
export interface Part {
  /** Takes what has to be ended, whatever happens. */
  readonly context: Context
  readonly random: Random
  readonly rounds: number
  readonly postgres: PostgresServer
  /** An empty database on that server. */
  readonly databaseUrl: string
  /** What every instance is started with. */
  readonly env: Record<string, string>
}
