/** What an engine implements, and the store that follows from it and from the operations. */
import type { MaybePromise } from '#base/maybe-promise'
import { copyArguments, featureStatement, readError } from '#storage/operations/feature-operation'
import type { Query, Read } from '#storage/operations/operation'
import { type FeatureRead, operationName, type StoredFeature } from '#storage/stored-feature'
import { type CoreOperations, coreOperationName, coreOperations } from './operations.ts'
import { CORE_READS } from './reads.ts'
import type { Storage } from './storage.ts'
import type { Derived } from './stores.ts'

/** The functions of a store that do not follow from operations and reads. */
type ByHand<Name extends keyof CoreOperations> = Omit<Storage[Name], keyof Derived<Name>>

/** Besides running queries and operations: what the store has written by hand, because it is hot or read in slices. */
export interface Engine extends Omit<Storage, keyof CoreOperations | 'features'> {
  read<Result>(query: Query<Result>): MaybePromise<Result>
  /**
   * Runs an operation of `operationsOf` in one transaction. Evicts and notifies what its write states, before the promise
   * resolves.
   */
  write(name: string, args: readonly unknown[]): Promise<unknown>
  readonly users: ByHand<'users'>
  readonly accounts: ByHand<'accounts'>
  readonly sessions: ByHand<'sessions'>
  readonly apiKeys: ByHand<'apiKeys'>
  readonly adminKeys: ByHand<'adminKeys'>
  readonly events: ByHand<'events'>
  readonly cleanUp: ByHand<'cleanUp'>
}

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
const featureStoreOf = (engine: Engine, feature: StoredFeature): Readonly<Record<string, StoreFunction>> => {
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

export const storageOf = (engine: Engine, features: readonly StoredFeature[]): Storage => {
  let closing: Promise<void> | null = null
  const operations = coreOperations(features)
  const coreStore = <Name extends keyof CoreOperations>(name: Name) =>
    coreStoreOf(engine, name, operations[name])
  return {
    users: { ...coreStore('users'), ...engine.users },
    accounts: { ...coreStore('accounts'), ...engine.accounts },
    sessions: { ...coreStore('sessions'), ...engine.sessions },
    emailTokens: coreStore('emailTokens'),
    events: { ...coreStore('events'), ...engine.events },
    cleanUp: { ...coreStore('cleanUp'), ...engine.cleanUp },
    features: Object.fromEntries(features.map(feature => [feature.name, featureStoreOf(engine, feature)])),
    apiKeys: { ...coreStore('apiKeys'), ...engine.apiKeys },
    adminKeys: { ...coreStore('adminKeys'), ...engine.adminKeys },
    lastRequests: engine.lastRequests,
    bulkUsers: engine.bulkUsers,
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
