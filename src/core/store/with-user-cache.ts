/**
 * A store whose users have their exact last request. The database gets it later than the cache, so a user who is
 * read has the later one of both; and the cache learns of a newer version. Nothing else merges them: {@link UserFunctions} of each store are
 * required, so that a new one does not compile before it is added here.
 */

import type { MaybePromise } from '#base/maybe-promise'
import type { UserCache } from '../auth/user-cache.ts'
import type { User } from '../users/user.ts'
import type { Storage } from './store.ts'

/** The users of a result: itself, the items of a list, or its `user`. */
type UsersOf<Result> = Result extends User
  ? Result
  : Result extends readonly (infer Item)[]
    ? UsersOf<Item>
    : Result extends { readonly user: infer Found }
      ? UsersOf<Found>
      : never

/** The functions of a store that return users. */
type UserFunctions<Store> = {
  readonly [Name in keyof Store as Store[Name] extends (...args: never[]) => infer Result
    ? [UsersOf<Awaited<Result>>] extends [never]
      ? never
      : Name
    : never]: Store[Name]
}

const mapMaybe = <Value, Result>(
  value: MaybePromise<Value>,
  use: (value: Value) => Result,
): MaybePromise<Result> => (value instanceof Promise ? value.then(use) : use(value))

export const withUserCache = (storage: Storage, userCache: UserCache): Storage => {
  const { users, accounts, emailTokens, bulkUsers } = storage
  const merge = <Found extends User>(user: Found): Found => {
    userCache.recordVersion(user)
    return userCache.withLastRequest(user)
  }
  /** Writes return the changed user, or why nothing was changed. */
  const mergeChanged = async <Rejection extends string | undefined>(
    written: Promise<User | Rejection>,
  ): Promise<User | Rejection> => {
    const result = await written
    return typeof result === 'object' ? merge(result) : result
  }
  const ofUsers: UserFunctions<Storage['users']> = {
    find: (...args) => mapMaybe(users.find(...args), user => user && merge(user)),
    findByEmail: email =>
      mapMaybe(users.findByEmail(email), found => found && { ...found, user: merge(found.user) }),
    update: (...args) => mergeChanged(users.update(...args)),
    list: query => mapMaybe(users.list(query), found => found.map(merge)),
  }
  const ofAccounts: UserFunctions<Storage['accounts']> = {
    changePassword: (...args) => mergeChanged(accounts.changePassword(...args)),
    signIn: async (...args) => {
      const signedIn = await accounts.signIn(...args)
      return typeof signedIn === 'object' ? { ...signedIn, user: merge(signedIn.user) } : signedIn
    },
  }
  const ofEmailTokens: UserFunctions<Storage['emailTokens']> = {
    confirmEmail: (...args) => mergeChanged(emailTokens.confirmEmail(...args)),
  }
  const ofBulkUsers: UserFunctions<Storage['bulkUsers']> = {
    // Without their versions: they would fill the memory, and nobody compares a file with responses.
    exportUsers: (...args) =>
      mapMaybe(bulkUsers.exportUsers(...args), found => found.map(user => userCache.withLastRequest(user))),
  }
  return {
    ...storage,
    users: { ...users, ...ofUsers },
    accounts: { ...accounts, ...ofAccounts },
    emailTokens: { ...emailTokens, ...ofEmailTokens },
    bulkUsers: { ...bulkUsers, ...ofBulkUsers },
  }
}
