/** Every write that both engines run. The SQLite engine calls them by name, because functions cannot be sent to its writer thread. */
import { isOwned, operationName, type StoredFeature, tablesOf } from '../stored-feature.ts'
import { addEmailToken, confirmEmailWith, rejectEmailWith } from './email-tokens.ts'
import { record, recordLimited } from './events.ts'
import { removeFactorsWith } from './factors.ts'
import { featureOperation } from './feature-operation.ts'
import { accessOf, mailboxProofsOf, signInByMailboxWith } from './mailbox-sign-ins.ts'
import type { Operation, Query, Steps } from './operation.ts'
import { removeOldRows } from './owned-rows.ts'
import { changePasswordWith, rehash } from './passwords.ts'
import { noteAuthentication, revokeSession, revokeSessions } from './sessions.ts'
import { removeUserWith, updateUserWith } from './users.ts'
import type { UncachedWrite, Write } from './write.ts'

const coreOperations = (features: readonly StoredFeature[]) => {
  // A table that refers to another one is declared after it, so its rows are deleted first.
  const owned = tablesOf(features).filter(isOwned).toReversed()
  const mailed = owned.filter(({ isMailed }) => isMailed === true)
  const ofFactors = owned.filter(({ isFactor }) => isFactor === true)
  return {
    updateUser: updateUserWith(mailed),
    removeUser: removeUserWith(owned),
    removeFactors: removeFactorsWith(ofFactors),
    revokeSession,
    revokeSessions,
    noteAuthentication,
    rehash,
    changePassword: changePasswordWith(mailed),
    addEmailToken,
    confirmEmail: confirmEmailWith(mailed),
    rejectEmail: rejectEmailWith(owned),
    signInByMailbox: signInByMailboxWith(mailed, accessOf(features, owned), mailboxProofsOf(features)),
    record,
    recordLimited,
    removeOldRows,
  } satisfies Record<string, Operation | ((...args: never[]) => Query<UncachedWrite<unknown>>)>
}

export type Operations = ReturnType<typeof coreOperations>

/** The result of an operation, without what it invalidates. */
export type ResultOf<Name extends keyof Operations> =
  ReturnType<Operations[Name]> extends Query<{ result: infer Result }>
    ? Result
    : ReturnType<Operations[Name]> extends Generator<unknown, { result: infer Result }, never>
      ? Result
      : never

/** An operation with unknown arguments, as it is called by its name. */
export type AnyOperation = (
  ...args: readonly unknown[]
) => Steps<Write<unknown>> | Query<UncachedWrite<unknown>>

/** Every operation by its name: those of the core, and those of the features. */
export const operationsOf = (features: readonly StoredFeature[]): ReadonlyMap<string, AnyOperation> => {
  const others = features.flatMap(feature =>
    Object.entries(feature.operations ?? {}).map(([name, operation]) => {
      const fullName = operationName(feature, name)
      return [fullName, featureOperation(fullName, operation)]
    }),
  )
  return new Map([...Object.entries(coreOperations(features)), ...others] as [string, AnyOperation][])
}
