/**
 * Operations of the store, written once for both engines. An operation is a generator: it yields statements, gets their rows, and
 * returns a {@link Write}. The SQLite engine runs it synchronously in a savepoint on its writer thread, the PostgreSQL engine in a
 * transaction, with one round trip for each statement.
 */
import type { MaybePromise } from '#base/maybe-promise'
import type { Dialect } from './dialect.ts'
import type { UncachedWrite, Write } from './write.ts'

/** One statement. Parameters are `$1`, `$2`, …; a type that PostgreSQL cannot infer is stated with `CAST($1 AS text)`. */
export interface Statement {
  /** A function for a text with a fragment of the {@link Dialect}. An empty text is not run, and returns no rows. */
  readonly text: string | ((dialect: Dialect) => string)
  /** Booleans are 0 and 1 on SQLite, and in features on PostgreSQL too. Arrays are for `dialect.isOneOf`. */
  readonly values: readonly unknown[]
  /** For a constant text: PostgreSQL then prepares it once for each connection. */
  readonly name?: string
}

/** SQL of the key of the user whose id is `$1`. */
export const USER_KEY = '(SELECT key FROM users WHERE id = $1)'

/** Part of an operation. `yield*` returns its result. */
export type Steps<Result> = Generator<Statement, Result, readonly unknown[]>

/** One statement that runs without a transaction of its own, and what its rows mean. */
export interface Query<Result> {
  readonly statement: Statement
  readonly result: (rows: readonly never[]) => Result
}

/** A write: of several statements in one transaction, or of one without a transaction of its own. */
export type Operation = (...args: never[]) => Steps<Write<unknown>> | Query<UncachedWrite<unknown>>

/** An operation with unknown arguments, as it is called by its name. */
export type AnyOperation = (...args: readonly unknown[]) => ReturnType<Operation>

/** A read of one statement. */
export type Read = (...args: never[]) => Query<unknown>

/** The function of a store that runs an operation. */
type WriteOf<Run> = Run extends (
  ...args: infer Args
) => Steps<Write<infer Result>> | Query<Write<infer Result>>
  ? (...args: Args) => Promise<Result>
  : never

/** The function of a store that runs a read. */
type ReadOf<Start> = Start extends (...args: infer Args) => Query<infer Result>
  ? (...args: Args) => MaybePromise<Result>
  : never

/** The functions that follow from operations and reads. A write is on disk before its promise resolves. */
export type StoreOf<Operations, Reads> = {
  readonly [Name in keyof Operations]: WriteOf<Operations[Name]>
} & {
  readonly [Name in keyof Reads]: ReadOf<Reads[Name]>
}

/** @param result the rows have the columns that the statement returns: nothing checks their type. */
export const query = <Row, Result>(
  statement: Statement,
  result: (rows: readonly Row[]) => Result,
): Query<Result> => ({ statement, result })

/** Runs a statement. @returns its rows; the caller states their type. */
export function* rows<Row>(statement: Statement): Steps<readonly Row[]> {
  return (yield statement) as readonly Row[]
}

/** Runs a statement. @returns its first row. */
export function* firstRow<Row>(statement: Statement): Steps<Row | undefined> {
  const [row] = yield* rows<Row>(statement)
  return row
}

/** The SQLSTATE of PostgreSQL for a value that is not unique. */
export const UNIQUE_VIOLATION = '23505'

const UNIQUE_VIOLATIONS: ReadonlySet<unknown> = new Set([
  UNIQUE_VIOLATION,
  'SQLITE_CONSTRAINT_UNIQUE',
  'SQLITE_CONSTRAINT_PRIMARYKEY',
])

/**
 * Runs a statement. @returns its rows, or `'taken'` if it violates a unique constraint: the operation must then end without
 * another statement, because PostgreSQL has aborted the transaction. Both engines roll back what the operation has written.
 */
export function* unlessTaken<Row>(statement: Statement): Steps<readonly Row[] | 'taken'> {
  try {
    return yield* rows<Row>(statement)
  } catch (error) {
    if (UNIQUE_VIOLATIONS.has((error as { code?: unknown }).code)) return 'taken'
    throw error
  }
}
