/** What migrations run on: a connection to one of the engines, and how the engines differ in the text of migrations. */
import type { ColumnDataType, RawBuilder } from 'kysely'

export type Engine = 'sqlite' | 'postgres'

/**
 * Runs SQL on the connection that migrates: one statement with `values`, in the engine's own placeholders, or any number of them without.
 * @returns the rows of one statement.
 */
export type Run = <Row extends object>(text: string, values?: readonly unknown[]) => Promise<readonly Row[]>

export interface MigrationSession {
  readonly engine: Engine
  readonly run: Run
}

/** A migration that has run; those of the core have no feature and no checksum. Or, without a name, the fingerprint of a feature. */
export interface RecordedRow {
  readonly feature: string | null
  readonly name: string | null
  readonly checksum: string | null
}

/** The differences between the engines, for migrations that are SQL text. */
export interface SqlDialect {
  readonly engine: Engine
  /** The type of `users.key`, and of columns that refer to it. */
  readonly keyType: 'integer' | 'bigint'
  /** The type of text that is compared by code points, for columns that are sorted or are keys. */
  readonly text: string
}

/** The differences between the engines, for migrations that are functions of Kysely. */
export interface FeatureDialect extends Omit<SqlDialect, 'keyType' | 'text'> {
  readonly keyType: ColumnDataType
  readonly text: ColumnDataType | RawBuilder<unknown>
}

export const SQL_DIALECTS = {
  sqlite: { engine: 'sqlite', keyType: 'integer', text: 'text' },
  postgres: { engine: 'postgres', keyType: 'bigint', text: 'text collate "C"' },
} as const satisfies Readonly<Record<Engine, SqlDialect>>
