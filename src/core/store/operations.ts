/** Every operation of the store that both engines run. SQLite calls writes by name, because functions cannot be sent to its writer thread. */

import { featureOperation } from '#storage/operations/feature-operation'
import type { AnyOperation, Operation, Read } from '#storage/operations/operation'
import { operationName } from '#storage/stored-feature'
import { accountOperations } from '../accounts/stored-accounts.ts'
import { emailTokenOperations, emailTokenReads } from '../accounts/stored-email-tokens.ts'
import { importOperations } from '../accounts/stored-imports.ts'
import { passwordOperations } from '../accounts/stored-passwords.ts'
import { signInMethodOperations } from '../accounts/stored-sign-in-methods.ts'
import { signInOperations } from '../accounts/stored-sign-ins.ts'
import { eventOperations, eventReads } from '../audit-log/stored-events.ts'
import { adminKeyOperations, apiKeyOperations } from '../auth/stored-keys.ts'
import { sessionRemoval } from '../auth/stored-session-removal.ts'
import { sessionOperations, sessionReads } from '../auth/stored-sessions.ts'
import { cleanUpOperations, ownedTablesOf } from '../users/owned-rows.ts'
import { userRemovalsOf } from '../users/stored-removals.ts'
import { userOperations, userReads } from '../users/stored-users.ts'
import type { AccountFeature } from './account-feature.ts'

/** The writes of the core. Each group is a store, with the same name and functions: `StoreOf` derives them. */
export const coreOperations = (features: readonly AccountFeature[]) => {
  const tables = ownedTablesOf(features)
  const removals = userRemovalsOf(features, tables)
  return {
    users: userOperations(tables, removals),
    accounts: {
      ...accountOperations,
      ...passwordOperations(tables),
      ...signInOperations(features, tables),
      ...signInMethodOperations(features, tables),
    },
    sessions: sessionOperations(tables),
    apiKeys: apiKeyOperations,
    adminKeys: adminKeyOperations,
    emailTokens: emailTokenOperations(tables, removals),
    events: eventOperations,
    bulkUsers: importOperations(tables.all),
    cleanUp: { ...cleanUpOperations, ...sessionRemoval },
  } satisfies Record<string, Record<string, Operation>>
}

export type CoreOperations = ReturnType<typeof coreOperations>

/** The reads of one statement, on the event loop. Each group is a part of the store with its name. */
export const CORE_READS = {
  users: userReads,
  accounts: {},
  apiKeys: {},
  adminKeys: {},
  sessions: sessionReads,
  emailTokens: emailTokenReads,
  events: eventReads,
  bulkUsers: {},
  cleanUp: {},
} satisfies Record<keyof CoreOperations, Record<string, Read>>

export type CoreReads = typeof CORE_READS

/** The name under which an operation of the core is registered. The names of features have no colon. */
export const coreOperationName = (store: string, operation: string): string => `${store}:${operation}`

/** Every operation by its name: those of the core, and those of the features. */
export const operationsOf = (features: readonly AccountFeature[]): ReadonlyMap<string, AnyOperation> => {
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
