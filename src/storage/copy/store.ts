/** What a copy needs of a store, on either engine: `sqlite.ts` and `postgres.ts`. */
import type { Engine, RecordedRow } from '../migrations/session.ts'

/** An error that the operator can fix. The message is complete: no stack trace is needed. */
export class CopyError extends Error {}

export type Role = 'the source' | 'the target'

/** The values of the columns of {@link CopiedTable}. An integer may be a `bigint`, or a number as text. */
export type Row = readonly (string | number | bigint | Buffer | null)[]

export interface CopiedTable {
  readonly name: string
  readonly columns: readonly string[]
}

/** The numbers that were assigned last, whether or not their rows still exist. They are never assigned again. */
export interface LastNumbers {
  /** `users.key` */
  readonly key: number
  /** `events.position` */
  readonly position: number
}

/** A store that is copied, or one that the copy fills. Its functions throw {@link CopyError}. */
export interface CopyStore {
  readonly engine: Engine
  /** The migrations of a source. Fails if it is no database of the service, or of one of its earlier versions. */
  recorded(): Promise<readonly RecordedRow[]>
  /**
   * Keeps every other process from writing until {@link close}, and fails if one of the service is connected.
   * @param last of the source, for a target.
   */
  begin(tables: readonly string[], last?: LastNumbers): Promise<void>
  /** The columns of a table, without those that the engine computes. Empty if there is no such table. */
  columns(table: string): Promise<readonly string[]>
  count(table: string): Promise<number>
  lastNumbers(): Promise<LastNumbers>
  /** All rows in batches. @param order columns; empty for any order. */
  rows(table: CopiedTable, order: readonly string[]): AsyncIterable<readonly Row[]>
  /** Removes what triggers have added. */
  clear(table: string): Promise<void>
  add(table: CopiedTable, rows: readonly Row[]): Promise<void>
  commit(last: LastNumbers): Promise<void>
  /** Ends the transaction without a change. */
  close(): Promise<void>
}

/** Rows in a batch. */
export const BATCH = 500

export const errorOf = (role: Role, cause: unknown, table?: string): CopyError => {
  const message = cause instanceof Error ? cause.message : String(cause)
  return new CopyError(`${role}: ${table === undefined ? '' : `the table ${table}: `}${message}`, { cause })
}
