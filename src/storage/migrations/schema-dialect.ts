/** What the engines say differently in the one list of migrations. */
import type { ColumnDataType, ColumnDefinitionBuilder, CreateTableBuilder, RawBuilder } from 'kysely'

export interface SchemaDialect {
  /** The type of `users.key`. */
  readonly keyType: ColumnDataType
  /** Makes a primary key count up, never giving a number twice. */
  readonly identity: (column: ColumnDefinitionBuilder) => ColumnDefinitionBuilder
  /** Text that is compared by code points. */
  readonly text: ColumnDataType | RawBuilder<unknown>
  /** What stands behind a table's columns. */
  readonly sessionsOptions: RawBuilder<unknown> | null
  readonly lastRequestsOptions: RawBuilder<unknown> | null
  /** For rows that come in the order of their primary key, and stay as they are. */
  readonly appendedOptions: RawBuilder<unknown> | null
  /** Whether the indexes of lists also have what lists are filtered by, to be decided without the row. */
  readonly coveringIndexes: boolean
  /** Whether one transaction writes at a time. */
  readonly oneWriter: boolean
  /** Whether instances count requests together, in a table. */
  readonly sharedRateLimits: boolean
}

/** @param end what stands behind the columns, if anything does. */
export const ending = <Table extends string, Column extends string>(
  table: CreateTableBuilder<Table, Column>,
  end: RawBuilder<unknown> | null,
) => (end === null ? table : table.modifyEnd(end))
