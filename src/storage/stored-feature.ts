/** The part of a feature that the store runs: tables, migrations, operations. `src/feature/declaration.ts` has the whole declaration. */
import type { Kysely } from 'kysely'
import type { FeatureDialect, SqlDialect } from './migrations/session.ts'
import type { Read, Steps, StoreOf } from './operations/operation.ts'
import type { Write } from './operations/write.ts'

/** A feature that cannot be used as it is declared. The message is complete: no stack trace is needed. */
export class FeatureError extends Error {
  readonly code = 'FEATURE'

  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'FeatureError'
  }
}

export type FeatureOperation = (...args: never[]) => Steps<Write<unknown>>
export type FeatureRead = Read

/** Removes old rows. */
interface CleanUpRule<Column> {
  /** An indexed column with a timestamp in milliseconds since the epoch, or with text that begins with one. */
  readonly column: Column
  /** Milliseconds after that timestamp. */
  readonly after: number
  /** For text: the lowest value of a timestamp, such as `firstIdAt` for ids of `newId`. The primary key then needs no other index. */
  readonly firstAt?: (timestamp: number) => string
}

/** How the audit log records that a row was deleted. */
interface DeletionEvent {
  readonly type: string
  /** The property of the event's details that has the key of the row. */
  readonly detail: string
}

/** A table whose columns have these names. */
export interface FeatureTable<Column extends string = string> {
  /**
   * The column with the `users.key` of the user who owns a row. The rows are deleted with the user. `null` for rows that belong to no
   * user.
   */
  readonly owner: Column | null
  /** The primary key: one column of text. */
  readonly key: Column
  /** A column that increases with each change of a row. The start checks that it exists; nothing else reads it. */
  readonly updatedAt?: Column
  /**
   * A column besides the key with a unique index, or the columns of each such index: `[['organization_id', 'email'], ['code']]`. An
   * import leaves out a user with values that another row has.
   */
  readonly unique?: Column | readonly (readonly Column[])[]
  /** Whether its rows belong to factors of their owners: `DELETE /admin/users/:id/factors` deletes them. */
  readonly isFactor?: true
  /**
   * Whether its rows are secrets that were mailed, such as codes. Another e-mail, disabling, and another password once the e-mail is
   * confirmed, delete those of the user.
   */
  readonly isMailed?: true
  /**
   * The event of each deleted row, for rows that authenticate their owner without the password. A sign-in by the mailbox alone that confirms
   * the user's e-mail for the first time deletes them, because somebody else may have opened the account.
   */
  readonly grantsAccess?: DeletionEvent
  /**
   * The feature's sign-in method that a row belongs to: the last way to sign in cannot be removed. Rows of a method that is switched off
   * do not count. Needs `grantsAccess`.
   */
  readonly signsIn?: string
  /**
   * Whether a row ends with all sessions of its owner: when somebody ends all of them, at a password reset, and when the user is disabled.
   * Needs `grantsAccess`.
   */
  readonly endsWithSessions?: true
  readonly cleanUp?: CleanUpRule<Column>
}

/** Declares a table whose columns are the properties of `Row`. */
export const table = <Row>(declaration: FeatureTable<keyof Row & string>): FeatureTable => declaration

/** Values are for `$1` and so on, which a statement has once each and in this order. */
export type MigrationStatement = string | { readonly text: string; readonly values: readonly unknown[] }

export interface SqlMigration {
  /** One statement each. Line breaks and indentation may change after it ran. */
  readonly sql: (dialect: SqlDialect) => readonly MigrationStatement[]
  readonly up?: undefined
}

export interface KyselyMigration {
  /** Runs a migration that depends on rows. Each start then loads Kysely to compare the statements. */
  up(db: Kysely<unknown>, dialect: FeatureDialect): Promise<void>
}

/**
 * Runs in one transaction with all others. It must only add to what instances of the last version use.
 * @example
 * { sql: ({ text, keyType }) => [
 *   `create table notes (
 *     id ${text} primary key,
 *     user_key ${keyType} not null references users (key) on delete cascade
 *   )`,
 *   'create index notes_by_user_key on notes (user_key, id)',
 * ] }
 */
export type FeatureMigration = SqlMigration | KyselyMigration

/** A factor whose rows a feature has. */
export interface StoredFactor {
  readonly name: string
  /** Selects the keys of the users who have it, as `user_key`. */
  readonly users: string
  /** The type of the event when it is removed, if its table has no `grantsAccess` with events of its rows. */
  readonly removal?: string
}

export interface StoredFeature {
  readonly name: string
  /** `import.meta.url` of the module that exports the feature: the writer thread of SQLite imports it. */
  readonly module: string
  /** By name, such as `0001_notes`. They run in the order of their names. */
  readonly migrations?: Readonly<Record<string, FeatureMigration>>
  readonly tables?: Readonly<Record<string, FeatureTable>>
  readonly factor?: StoredFactor
  readonly operations?: Readonly<Record<string, FeatureOperation>>
  /** Statements that only read. On SQLite they run on the event loop, so each must be fast. */
  readonly reads?: Readonly<Record<string, FeatureRead>>
}

/** The functions that call the operations and reads of a feature. */
export type FeatureStore<
  Operations extends Readonly<Record<string, FeatureOperation>>,
  Reads extends Readonly<Record<string, FeatureRead>>,
> = StoreOf<Operations, Reads>

/** An identifier of SQL. */
export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** A table with its name. */
export type NamedTable = FeatureTable & { readonly name: string }

/** The columns of each unique index that the declaration names. */
export const uniquesOf = ({ unique = [] }: FeatureTable): readonly (readonly string[])[] =>
  typeof unique === 'string' ? [[unique]] : unique

/** A table whose rows belong to users. */
export type OwnedTable = NamedTable & { readonly owner: string }

export const isOwned = (table: NamedTable): table is OwnedTable => table.owner !== null

/** A table whose rows grant access. */
export type AccessTable = OwnedTable & Required<Pick<FeatureTable, 'grantsAccess'>>

export const grantsAccess = (table: NamedTable): table is AccessTable =>
  isOwned(table) && table.grantsAccess !== undefined

/** Whether emptying an account deletes the rows of its user. */
export const givesAccess = (table: NamedTable): table is OwnedTable =>
  isOwned(table) && (grantsAccess(table) || table.isFactor === true || table.isMailed === true)

export const tablesOf = (features: readonly StoredFeature[]): readonly NamedTable[] =>
  features.flatMap(({ tables = {} }) =>
    Object.entries(tables).map(([name, declaration]) => ({ name, ...declaration })),
  )

/** The name under which an operation of a feature is registered. */
export const operationName = (feature: StoredFeature, operation: string): string =>
  `${feature.name}.${operation}`
