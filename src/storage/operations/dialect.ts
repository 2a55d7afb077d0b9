/** The differences between the engines in the statements of operations. */
export interface Dialect {
  /**
   * The end of a `SELECT` whose rows a concurrent transaction must not change before this one ends. Empty on SQLite, where one
   * transaction writes at a time.
   */
  readonly forShare: string
  /** The end of a `SELECT` whose rows a concurrent transaction must not remove before this one ends. Empty on SQLite. */
  readonly forKeyShare: string
  /** The end of a `SELECT` whose rows this transaction changes. Empty on SQLite. */
  readonly forNoKeyUpdate: string
  /** The end of a `SELECT` whose rows this transaction removes. Empty on SQLite. */
  readonly forUpdate: string
  /** The end of a `SELECT` that locks rows to remove them, and skips those that another transaction has locked. Empty on SQLite. */
  readonly forUpdateSkipLocked: string
  /**
   * Locks the table of users as an update of a row does. For operations that lock a user and then change or remove it. A copy
   * into this database locks the tables before users; with the opposite order the two would deadlock.
   */
  readonly lockUsersTable: string
  /**
   * A condition that is always true, in a `SELECT` of a user that also locks the row: waits until the operations that asked before
   * for the same user have ended. Without it, a transaction that waits for the row gets its id, and so the position of its event,
   * with the first wait, and may then wait again behind a later transaction: the events of a user would be out of order.
   * @param parameter with the user's id, such as `$1`.
   */
  inTurn(parameter: string): string
  /**
   * A condition that is always true, and waits until the operations that asked before for the same user with `inTurn` have ended, but
   * not for those with `inSharedTurn`.
   * @param parameter with the user's id, such as `$1`.
   */
  inSharedTurn(parameter: string): string
  /**
   * A statement that takes the lock with a name until the transaction ends, in the order of arrival. Empty on SQLite, where one
   * transaction writes at a time. Names share their space with the ids of users (`inTurn`).
   * @param parameter with the name, such as `$1`.
   */
  lockByName(parameter: string): string
  /**
   * Whether a column is one of the values of an array.
   * @param parameter such as `$1`.
   * @param type of the column.
   */
  isOneOf(column: string, parameter: string, type: 'text' | 'bigint'): string
  /**
   * What follows `FROM`: the objects of a JSON array as rows.
   * @param parameter such as `$1`.
   * @param columns the types of the objects' members, by name.
   */
  jsonRows(parameter: string, columns: Readonly<Record<string, 'text' | 'bigint'>>): string
}
