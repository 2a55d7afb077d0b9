import type { User, UserChanges } from './user.ts'
import type { UserFilter, UserQuery } from './user-list.ts'

/** An embedded engine answers reads at once, one across a network later; callers that can use the difference do. */
export type MaybePromise<T> = T | Promise<T>

export interface UpdateOptions {
  /** End all of the user's sessions in the same transaction. */
  readonly endSessions: boolean
  /** Change an enabled user alone: what users do themselves ends with their being disabled. */
  readonly onlyEnabled: boolean
}

/** What the use cases need of a store. Every write is on disk before its promise resolves. */
export interface UserStore {
  find(id: string): MaybePromise<User | undefined>
  findByEmail(email: string): MaybePromise<{ user: User; passwordHash: string } | undefined>
  /** @returns the user as changed, `undefined` when there is none, `'emailTaken'` when another has that e-mail. */
  update(
    id: string,
    changes: UserChanges,
    at: number,
    options: UpdateOptions,
  ): Promise<User | 'emailTaken' | undefined>
  list(query: UserQuery): MaybePromise<readonly User[]>
  /** Costs time in proportion to the number of users: asked for by `count=true` alone. */
  count(filter: UserFilter): MaybePromise<number>
}
