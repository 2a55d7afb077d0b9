/** The schema of a store, as the application declares it. */
import type { StoredFeature } from '../stored-feature.ts'
import type { Engine, Run } from './session.ts'

/** Statements, or a function where they depend on rows. */
export type CoreMigration = string | ((run: Run) => Promise<void>)

export interface Schema {
  readonly migrations: (engine: Engine) => ReadonlyMap<string, CoreMigration>
  /** The tables of the core that the running service writes. */
  readonly tables: readonly string[]
  readonly features: readonly StoredFeature[]
}
