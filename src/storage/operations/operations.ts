/** Every write that both engines run. The SQLite engine calls them by name, because functions cannot be sent to its writer thread. */
import { operationName, type StoredFeature } from '../stored-feature.ts'
import { emailTokenOperations } from './email-tokens.ts'
import { eventOperations } from './events.ts'
import { featureOperation } from './feature-operation.ts'
import { adminKeyOperations, apiKeyOperations } from './keys.ts'
import type { Operation } from './operation.ts'
import { cleanUpOperations, ownedTablesOf } from './owned-rows.ts'
import { passwordOperations } from './passwords.ts'
import { sessionOperations } from './sessions.ts'
import { signInMethodOperations } from './sign-in-method-removal.ts'
import { signInOperations } from './sign-ins.ts'
import { userRemovalsOf } from './user-removals.ts'
import { userOperations } from './users.ts'

/** The writes of the core. Each group is a store, with the same name and functions: `StoreOf` derives them. */
export const coreOperations = (features: readonly StoredFeature[]) => {
  const tables = ownedTablesOf(features)
  const removals = userRemovalsOf(features, tables)
  return {
    users: userOperations(tables, removals),
    accounts: {
      ...passwordOperations(tables),
      ...signInOperations(features, tables),
      ...signInMethodOperations(features, tables),
    },
    sessions: sessionOperations,
    apiKeys: apiKeyOperations,
    adminKeys: adminKeyOperations,
    emailTokens: emailTokenOperations(tables, removals),
    events: eventOperations,
    cleanUp: cleanUpOperations,
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
