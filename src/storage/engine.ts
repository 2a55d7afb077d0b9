/** What an engine implements, and the store that follows from it and from the operations. */
import type { AccountStore } from '../accounts/account-store.ts'
import type { CleanUpStore } from '../accounts/clean-up-store.ts'
import type { EventStore } from '../audit-log/event-store.ts'
import type { SessionStore } from '../auth/session-store.ts'
import type { MaybePromise } from '../maybe-promise.ts'
import type { UserStore } from '../users/user-store.ts'
import { copyArguments, featureStatement, readError } from './operations/feature-operation.ts'
import type { Query } from './operations/operation.ts'
import type { Operations, ResultOf } from './operations/operations.ts'
import {
  findEmailToken,
  findUser,
  findUserByEmail,
  findUserId,
  isKnownNetwork,
  listSessions,
} from './operations/reads.ts'
import type { Storage } from './storage.ts'
import { type FeatureRead, operationName, type StoredFeature } from './stored-feature.ts'

/** Besides running queries and operations: the functions of the store that are written by hand, because they are hot or sliced. */
export interface Engine
  extends Pick<
    Storage,
    | 'apiKeys'
    | 'adminKeys'
    | 'lastRequests'
    | 'openRateLimit'
    | 'bulkUsers'
    | 'subscribe'
    | 'deliverInvalidations'
    | 'ping'
    | 'close'
    | 'statistics'
  > {
  read<Result>(query: Query<Result>): MaybePromise<Result>
  /** Runs an operation in one transaction. Evicts and notifies what its write states, before the promise resolves. */
  write<Name extends keyof Operations>(
    name: Name,
    ...args: Parameters<Operations[Name]>
  ): Promise<ResultOf<Name>>
  /** As `write`, for an operation of a feature. */
  writeFeature(name: string, args: readonly unknown[]): Promise<unknown>
  readonly users: Pick<UserStore, 'list' | 'count'>
  readonly accounts: Pick<AccountStore, 'addUser'>
  readonly sessions: Pick<SessionStore, 'open' | 'find' | 'findNewest'>
  readonly events: Omit<EventStore, 'record' | 'recordLimited'>
  readonly cleanUp: Pick<CleanUpStore, 'removeSessions' | 'removeRateLimits'>
}

type StoreFunction = (...args: never[]) => MaybePromise<unknown>

/** The functions of a feature's `FeatureStore`. */
const featureStoreOf = (engine: Engine, feature: StoredFeature): Readonly<Record<string, StoreFunction>> => {
  const { operations = {}, reads = {} } = feature
  const write = (name: string): [string, StoreFunction] => [
    name,
    async (...args) => {
      const fullName = operationName(feature, name)
      return engine.writeFeature(fullName, copyArguments(fullName, args))
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
  return {
    users: {
      find: id => engine.read(findUser(id)),
      findByEmail: email => engine.read(findUserByEmail(email)),
      findId: email => engine.read(findUserId(email)),
      update: (id, changes, event, options) => engine.write('updateUser', id, changes, event, options),
      remove: (event, acting) => engine.write('removeUser', event, acting),
      removeFactors: event => engine.write('removeFactors', event),
      ...engine.users,
    },
    accounts: {
      rehash: (userId, from, to) => engine.write('rehash', userId, from, to),
      changePassword: (session, acting, newHash, event) =>
        engine.write('changePassword', session, acting, newHash, event),
      signInByMailbox: (signIn, session, event) => engine.write('signInByMailbox', signIn, session, event),
      ...engine.accounts,
    },
    sessions: {
      revoke: (id, event) => engine.write('revokeSession', id, event),
      revokeAll: (event, options) => engine.write('revokeSessions', event, options),
      noteAuthentication: (id, event) => engine.write('noteAuthentication', id, event),
      isKnownNetwork: (digest, since) => engine.read(isKnownNetwork(digest, since)),
      list: (userId, now, idleSince, limit) => engine.read(listSessions(userId, now, idleSince, limit)),
      ...engine.sessions,
    },
    emailTokens: {
      add: (token, event, acting) => engine.write('addEmailToken', token, event, acting),
      find: (digest, now) => engine.read(findEmailToken(digest, now)),
      confirmEmail: (token, event, proof) => engine.write('confirmEmail', token, event, proof),
      rejectEmail: (token, event) => engine.write('rejectEmail', token, event),
    },
    events: {
      record: event => engine.write('record', event),
      recordLimited: (event, limit, since) => engine.write('recordLimited', event, limit, since),
      ...engine.events,
    },
    cleanUp: {
      removeOldRows: (table, column, before, limit) =>
        engine.write('removeOldRows', table, column, before, limit),
      ...engine.cleanUp,
    },
    features: Object.fromEntries(features.map(feature => [feature.name, featureStoreOf(engine, feature)])),
    apiKeys: engine.apiKeys,
    adminKeys: engine.adminKeys,
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
