/**
 * A store whose users have their exact last request. The database gets it up to a second later than the cache, so a user who is
 * read has the later one of both; and the cache learns of a newer version. Nothing else merges them: the functions of each store are listed one by one, so that a new one
 * that returns users does not compile before it is added here.
 */
import type { UserCache } from '../auth/user-cache.ts'
import type { MaybePromise } from '../maybe-promise.ts'
import type { User } from '../users/user.ts'
import type { Storage } from './storage.ts'

const mapMaybe = <Value, Result>(
  value: MaybePromise<Value>,
  use: (value: Value) => Result,
): MaybePromise<Result> => (value instanceof Promise ? value.then(use) : use(value))

export const withUserCache = (storage: Storage, userCache: UserCache): Storage => {
  const { users, accounts, emailTokens, bulkUsers } = storage
  const merge = <Found extends User>(user: Found): Found => {
    userCache.noteVersion(user)
    return userCache.withLastRequest(user)
  }
  /** Writes return the changed user, or why nothing was changed. */
  const mergeChanged = async <Rejection extends string | undefined>(
    written: Promise<User | Rejection>,
  ): Promise<User | Rejection> => {
    const result = await written
    return typeof result === 'object' ? merge(result) : result
  }

  return {
    ...storage,
    users: {
      find: id => mapMaybe(users.find(id), user => user && merge(user)),
      findByEmail: email =>
        mapMaybe(users.findByEmail(email), found => found && { ...found, user: merge(found.user) }),
      findId: users.findId,
      update: (...args) => mergeChanged(users.update(...args)),
      remove: users.remove,
      removeFactors: users.removeFactors,
      list: query => mapMaybe(users.list(query), found => found.map(merge)),
      count: users.count,
    },
    accounts: {
      addUser: accounts.addUser,
      rehash: accounts.rehash,
      changePassword: (...args) => mergeChanged(accounts.changePassword(...args)),
      signInByMailbox: async (...args) => {
        const signedIn = await accounts.signInByMailbox(...args)
        return typeof signedIn === 'object' ? { ...signedIn, user: merge(signedIn.user) } : signedIn
      },
    },
    emailTokens: {
      add: emailTokens.add,
      find: emailTokens.find,
      confirmEmail: (...args) => mergeChanged(emailTokens.confirmEmail(...args)),
      rejectEmail: emailTokens.rejectEmail,
    },
    bulkUsers: {
      importUsers: bulkUsers.importUsers,
      // Without their versions: they would fill the memory, and nobody compares a file with responses.
      exportUsers: after =>
        mapMaybe(bulkUsers.exportUsers(after), found => found.map(user => userCache.withLastRequest(user))),
    },
  }
}
