/** Derives the store from an engine, the operations and reads, and the functions that the engine has by hand. */

import type { MaybePromise } from '#base/maybe-promise'
import type { Engine } from '#storage/engine'
import { copyArguments, featureStatement, readError } from '#storage/operations/feature-operation'
import type { Read } from '#storage/operations/operation'
import { type FeatureRead, operationName } from '#storage/stored-feature'
import type { AccountFeature } from './account-feature.ts'
import { CORE_READS, type CoreOperations, coreOperationName, coreOperations } from './operations.ts'
import type { Derived, Storage } from './store.ts'

/**
 * What each engine runs by hand: reads of the hot path, lists in slices, and writes of many rows. An engine may replace an operation, too:
 * on PostgreSQL each statement of one costs a round trip.
 */
export interface ByHand {
  readonly users: OmitDerived<'users'>
  readonly accounts?: Pick<Storage['accounts'], 'addUser'>
  readonly sessions: OmitDerived<'sessions'> & Partial<Pick<Storage['sessions'], 'open'>>
  readonly apiKeys: OmitDerived<'apiKeys'>
  readonly adminKeys: OmitDerived<'adminKeys'>
  readonly grants: Storage['grants']
  readonly clients: Storage['clients']
  readonly events: OmitDerived<'events'>
  readonly cleanUp: OmitDerived<'cleanUp'> & Partial<Pick<Storage['cleanUp'], 'removeSessions'>>
  readonly bulkUsers: OmitDerived<'bulkUsers'> & Partial<Pick<Storage['bulkUsers'], 'importUsers'>>
  readonly lastRequests: Storage['lastRequests']
}

type OmitDerived<Name extends keyof CoreOperations> = Omit<Storage[Name], keyof Derived<Name>>

type StoreFunction = (...args: never[]) => MaybePromise<unknown>

/** The functions of a store that run operations and reads of the core. */
const coreStoreOf = <Name extends keyof CoreOperations>(
  engine: Engine,
  store: Name,
  operations: CoreOperations[Name],
) => {
  const write = (name: string): [string, StoreFunction] => {
    const fullName = coreOperationName(store, name)
    return [name, (...args) => engine.write(fullName, args)]
  }
  const read = ([name, start]: [string, Read]): [string, StoreFunction] => [
    name,
    (...args) => engine.read(start(...args)),
  ]
  return Object.fromEntries([
    ...Object.keys(operations).map(write),
    ...Object.entries<Read>(CORE_READS[store]).map(read),
  ]) as Derived<Name>
}

/** The functions of a feature's `FeatureStore`. */
const featureStoreOf = (engine: Engine, feature: AccountFeature): Readonly<Record<string, StoreFunction>> => {
  const { operations = {}, reads = {} } = feature
  const write = (name: string): [string, StoreFunction] => [
    name,
    async (...args) => {
      const fullName = operationName(feature, name)
      return engine.write(fullName, copyArguments(fullName, args))
    },
  ]
  const read = ([name, start]: [string, FeatureRead]): [string, StoreFunction] => {
    const fullName = operationName(feature, name)
    const fail = (error: unknown): never => {
      throw readError(fullName, error)
    }
    return [
      name,
      (...args) => {
        try {
          const { statement, result } = start(...args)
          const found = engine.read({ statement: featureStatement(fullName, statement), result })
          return found instanceof Promise ? found.catch(fail) : found
        } catch (error) {
          return fail(error)
        }
      },
    ]
  }
  return Object.fromEntries([...Object.keys(operations).map(write), ...Object.entries(reads).map(read)])
}

export const createStore = (engine: Engine, byHand: ByHand, features: readonly AccountFeature[]): Storage => {
  let closing: Promise<void> | null = null
  const operations = coreOperations(features)
  const coreStore = <Name extends keyof CoreOperations>(name: Name) =>
    coreStoreOf(engine, name, operations[name])
  return {
    users: { ...coreStore('users'), ...byHand.users },
    accounts: { ...coreStore('accounts'), ...byHand.accounts },
    sessions: { ...coreStore('sessions'), ...byHand.sessions },
    emailTokens: coreStore('emailTokens'),
    events: { ...coreStore('events'), ...byHand.events },
    cleanUp: { ...coreStore('cleanUp'), ...byHand.cleanUp },
    features: Object.fromEntries(features.map(feature => [feature.name, featureStoreOf(engine, feature)])),
    apiKeys: { ...coreStore('apiKeys'), ...byHand.apiKeys },
    adminKeys: { ...coreStore('adminKeys'), ...byHand.adminKeys },
    grants: byHand.grants,
    clients: byHand.clients,
    lastRequests: byHand.lastRequests,
    bulkUsers: { ...coreStore('bulkUsers'), ...byHand.bulkUsers },
    openRateLimit: engine.openRateLimit,
    subscribe: engine.subscribe,
    deliverInvalidations: engine.deliverInvalidations,
    ping: engine.ping,
    statistics: engine.statistics,
    close: () => {
      closing ??= engine.close()
      return closing
    },
  }
}
