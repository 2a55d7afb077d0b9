/**
 * Every write that the writer thread can run. Each has its own savepoint in the transaction of its batch, so a write that fails
 * leaves nothing behind.
 */
import type { AnyOperation } from '../operations/operation.ts'
import { invalidatesNothing, type Write } from '../operations/write.ts'
import type { StoredFeature } from '../stored-feature.ts'
import type { Connection } from './database.ts'
import { OperationRunner } from './operation-runner.ts'
import { BARRIER, PROBE } from './writer-protocol.ts'

export type RunOperation = (...args: readonly unknown[]) => Write<unknown>

/** What a module exports that has the writes of an application. Functions cannot be sent to a thread, so the thread imports it. */
export interface WriterOperations {
  operationsOf(features: readonly StoredFeature[]): ReadonlyMap<string, AnyOperation>
  /** The operations that are written for SQLite's connection, by name. */
  prepareHandWritten(
    db: Connection,
    features: readonly StoredFeature[],
  ): Readonly<Record<string, RunOperation>>
}

const nothing: RunOperation = () => invalidatesNothing(undefined)

/** @param module the URL of a module with {@link WriterOperations}. */
export const prepareOperations = async (
  db: Connection,
  module: string,
  features: readonly StoredFeature[],
): Promise<ReadonlyMap<string, RunOperation>> => {
  const { operationsOf, prepareHandWritten } = (await import(module)) as WriterOperations
  const runner = new OperationRunner(db)
  const shared = [...operationsOf(features)].map(([name, operation]): [string, RunOperation] => [
    name,
    (...args) => runner.run(operation(...args)),
  ])
  return new Map([
    ...shared,
    ...Object.entries(prepareHandWritten(db, features)),
    [BARRIER, nothing],
    [PROBE, nothing],
  ])
}
