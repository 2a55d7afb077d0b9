/** The differences between the engines in the common list of migrations. */
import type { ColumnDataType, ColumnDefinitionBuilder, CreateTableBuilder, RawBuilder } from 'kysely'

/** The type of `users.key`, and of columns that refer to it. */
export const KEY_TYPES = { sqlite: 'integer', postgres: 'bigint' } as const

/** What the migrations of features need of it. */
export interface FeatureDialect {
  readonly engine: 'sqlite' | 'postgres'
  /** The type of `users.key`, and of columns that refer to it. */
  readonly keyType: ColumnDataType
  /** Text that is compared by code points, for columns that are sorted or are keys. */
  readonly text: ColumnDataType | RawBuilder<unknown>
}

export interface SchemaDialect extends FeatureDialect {
  /** Makes a primary key an increasing number that is never reused. */
  readonly identity: (column: ColumnDefinitionBuilder) => ColumnDefinitionBuilder
  /** The options after the columns of `CREATE TABLE`; `null` for none. */
  readonly sessionsOptions: RawBuilder<unknown> | null
  readonly lastRequestsOptions: RawBuilder<unknown> | null
  readonly userRolesOptions: RawBuilder<unknown> | null
  /** For tables whose rows are inserted in the order of the primary key and are not updated. */
  readonly appendOnlyOptions: RawBuilder<unknown> | null
  /** Whether the indexes of lists also contain the columns that lists are filtered by, so that no table row is read. */
  readonly coveringIndexes: boolean
  /** The language of triggers, which has no common part. */
  readonly triggerLanguage: 'sqlite' | 'plpgsql'
  /** Whether only one transaction writes at a time. */
  readonly singleWriter: boolean
  /** Whether instances share the counts of rate limits, in a table. */
  readonly sharedRateLimits: boolean
}

/** Adds the options after the columns; `null` for none. */
export const withTableOptions = <Table extends string, Column extends string>(
  table: CreateTableBuilder<Table, Column>,
  options: RawBuilder<unknown> | null,
) => (options === null ? table : table.modifyEnd(options))
