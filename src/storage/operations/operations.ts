/** Every write that both engines run. The SQLite engine calls them by name, because functions cannot be sent to its writer thread. */
import { grantsAccess, isOwned, operationName, type StoredFeature, tablesOf } from '../stored-feature.ts'
import { addEmailToken, confirmEmail, type GrantedAccess, resetPasswordWith } from './email-tokens.ts'
import { record } from './events.ts'
import { removeFactorsWith } from './factors.ts'
import { featureOperation } from './feature-operation.ts'
import type { Operation, Query, Steps } from './operation.ts'
import { removeOldRows } from './owned-rows.ts'
import { changePassword, rehash } from './passwords.ts'
import { noteAuthentication, revokeSession, revokeSessions } from './sessions.ts'
import { removeUserWith, updateUser } from './users.ts'
import type { UncachedWrite, Write } from './write.ts'

export const OPERATIONS = {
  updateUser,
  /** {@link operationsOf} replaces it by one that knows the tables of features. */
  removeUser: removeUserWith([]),
  /** As `removeUser`. */
  removeFactors: removeFactorsWith([]),
  revokeSession,
  revokeSessions,
  noteAuthentication,
  rehash,
  changePassword,
  addEmailToken,
  confirmEmail,
  /** As `removeUser`. */
  resetPassword: resetPasswordWith({ tables: [], factors: [] }),
  record,
  removeOldRows,
} satisfies Record<string, Operation | ((...args: never[]) => Query<UncachedWrite<unknown>>)>

export type Operations = typeof OPERATIONS

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

const grantedAccess = (features: readonly StoredFeature[]): GrantedAccess => ({
  tables: tablesOf(features).filter(grantsAccess),
  factors: features
    .filter(feature => tablesOf([feature]).some(grantsAccess))
    .flatMap(({ factor }) => (factor === undefined ? [] : [factor.name])),
})

/** Every operation by its name: those of the core, and those of the features. */
export const operationsOf = (features: readonly StoredFeature[]): ReadonlyMap<string, AnyOperation> => {
  // A table that refers to another one is declared after it, so its rows are deleted first.
  const owned = tablesOf(features).filter(isOwned).toReversed()
  const own = {
    ...OPERATIONS,
    removeUser: removeUserWith(owned),
    removeFactors: removeFactorsWith(owned.filter(({ isFactor }) => isFactor === true)),
    resetPassword: resetPasswordWith(grantedAccess(features)),
  }
  const others = features.flatMap(feature =>
    Object.entries(feature.operations ?? {}).map(([name, operation]) => {
      const fullName = operationName(feature, name)
      return [fullName, featureOperation(fullName, operation)]
    }),
  )
  return new Map([...Object.entries(own), ...others] as [string, AnyOperation][])
}
