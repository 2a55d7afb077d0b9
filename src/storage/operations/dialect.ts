/** The differences between the engines in the statements of operations. */
export interface Dialect {
  /**
   * The end of a `SELECT` whose rows a concurrent transaction must not change before this one ends. Empty on SQLite, where one
   * transaction writes at a time.
   */
  readonly forShare: string
  /** As `forShare`, but only against the removal of the row. */
  readonly forKeyShare: string
  /** As `forShare`, for rows that this transaction changes, or removes (`forUpdate`). */
  readonly forNoKeyUpdate: string
  readonly forUpdate: string
  /** As `forUpdate`, but skips rows that another transaction has locked. */
  readonly forUpdateSkipLocked: string
  /**
   * Locks the table of users as an update of a row does. For operations that lock a user and then change or remove it. A copy
   * into this database locks the table before users (`src/storage/copy/target.ts`); with the opposite order the two would deadlock.
   */
  readonly lockUsersTable: string
  /**
   * Whether a column is one of the values of an array.
   * @param parameter such as `$1`.
   * @param type of the column.
   */
  isOneOf(column: string, parameter: string, type: 'text' | 'bigint'): string
}
