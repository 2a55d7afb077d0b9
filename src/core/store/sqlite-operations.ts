/**
 * Every write that the writer thread can run. Each has its own savepoint in the transaction of its batch, so a write that fails
 * leaves nothing behind.
 */

import { invalidatesNothing, type Write } from '#storage/operations/write'
import type { Connection } from '#storage/sqlite/database'
import { OperationRunner } from '#storage/sqlite/operation-runner'
import { isOwned, type StoredFeature, tablesOf } from '#storage/stored-feature'
import { prepareCleanUpOperations } from '../accounts/sqlite-clean-up.ts'
import { prepareImportOperations } from '../accounts/sqlite-imports.ts'
import { prepareLastRequestOperations } from '../auth/sqlite-last-requests.ts'
import { operationsOf } from './operations.ts'
import { prepareHotOperations } from './sqlite-hot-operations.ts'

const prepareHandWritten = (db: Connection, features: readonly StoredFeature[]) =>
  ({
    ...prepareHotOperations(db),
    ...prepareLastRequestOperations(db),
    ...prepareImportOperations(db, tablesOf(features).filter(isOwned)),
    ...prepareCleanUpOperations(db),

    /** Does nothing. Calls run in order, so all earlier calls are settled when this one is. */
    barrier: (): Write<void> => invalidatesNothing(undefined),

    /** Does nothing itself. Its batch writes a page (the stamp), which shows whether the disk takes writes. */
    probe: (): Write<void> => invalidatesNothing(undefined),
  }) satisfies Record<string, (...args: never[]) => Write<unknown>>

export type HandWritten = ReturnType<typeof prepareHandWritten>

export type RunOperation = (...args: readonly unknown[]) => Write<unknown>

export const prepareOperations = (
  db: Connection,
  features: readonly StoredFeature[],
): ReadonlyMap<string, RunOperation> => {
  const runner = new OperationRunner(db)
  const shared = [...operationsOf(features)].map(([name, operation]): [string, RunOperation] => [
    name,
    (...args) => runner.run(operation(...args)),
  ])
  return new Map([
    ...shared,
    ...(Object.entries(prepareHandWritten(db, features)) as [string, RunOperation][]),
  ])
}
