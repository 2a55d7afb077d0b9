/** Every write that both engines run. The SQLite engine calls them by name, because functions cannot be sent to its writer thread. */
import { isOwned, operationName, type StoredFeature, tablesOf } from '../stored-feature.ts'
import { addEmailToken, confirmEmailWith, rejectEmailWith } from './email-tokens.ts'
import { record, recordLimited } from './events.ts'
import { removeFactorsWith } from './factors.ts'
import { featureOperation } from './feature-operation.ts'
import { accessOf, mailboxProofsOf, signInByMailboxWith } from './mailbox-sign-ins.ts'
import type { Operation } from './operation.ts'
import { removeOldRows } from './owned-rows.ts'
import { changePasswordWith, rehash } from './passwords.ts'
import { noteAuthentication, revokeSession, revokeSessions } from './sessions.ts'
import { removeUserWith, updateUserWith } from './users.ts'

/** The writes of the core. Each group is a store, with the same name and functions: `StoreOf` derives them. */
export const coreOperations = (features: readonly StoredFeature[]) => {
  // A table that refers to another one is declared after it, so its rows are deleted first.
  const owned = tablesOf(features).filter(isOwned).toReversed()
  const mailed = owned.filter(({ isMailed }) => isMailed === true)
  const ofFactors = owned.filter(({ isFactor }) => isFactor === true)
  return {
    users: {
      update: updateUserWith(mailed),
      remove: removeUserWith(owned),
      removeFactors: removeFactorsWith(ofFactors),
    },
    accounts: {
      rehash,
      changePassword: changePasswordWith(mailed),
      signInByMailbox: signInByMailboxWith(mailed, accessOf(features, owned), mailboxProofsOf(features)),
    },
    sessions: { revoke: revokeSession, revokeAll: revokeSessions, noteAuthentication },
    emailTokens: {
      add: addEmailToken,
      confirmEmail: confirmEmailWith(mailed),
      rejectEmail: rejectEmailWith(owned),
    },
    events: { record, recordLimited },
    cleanUp: { removeOldRows },
  } satisfies Record<string, Record<string, Operation>>
}

export type CoreOperations = ReturnType<typeof coreOperations>

/** The name under which an operation of the core is registered. The names of features have no colon. */
export const coreOperationName = (store: string, operation: string): string => `${store}:${operation}`

/** An operation with unknown arguments, as it is called by its name. */
export type AnyOperation = (...args: readonly unknown[]) => ReturnType<Operation>

/** Every operation by its name: those of the core, and those of the features. */
export const operationsOf = (features: readonly StoredFeature[]): ReadonlyMap<string, AnyOperation> => {
  const ofCore = Object.entries(coreOperations(features)).flatMap(([store, operations]) =>
    Object.entries(operations).map(([name, operation]) => [coreOperationName(store, name), operation]),
  )
  const ofFeatures = features.flatMap(feature =>
    Object.entries(feature.operations ?? {}).map(([name, operation]) => {
      const fullName = operationName(feature, name)
      return [fullName, featureOperation(fullName, operation)]
    }),
  )
  return new Map([...ofCore, ...ofFeatures] as [string, AnyOperation][])
}
