/** The sign-in methods and factors of a user. */
import type { MaybePromise } from '#base/maybe-promise'
import type { SessionStore } from '../store/store.ts'
import type { User } from '../users/user.ts'
import type { SignIns } from './sign-ins.ts'

/** A way to sign in, or a second factor. Timestamps are milliseconds since the epoch. */
export interface AccountMethod {
  readonly method: string
  /** Identifies the method or factor if a user can have several; else `null`. */
  readonly id: string | null
  /** The name by which the user recognises it. */
  readonly label: string | null
  readonly addedAt: number | null
  /** `null` if it was not used, or if it is not known. */
  readonly lastUsedAt: number | null
  readonly isFactor: boolean
}

export interface AccountMethodsDeps {
  readonly sessions: Pick<SessionStore, 'listLastSignIns'>
  readonly signIns: Pick<SignIns, 'mailedMethods'>
  /** Lists the methods of a feature: one function for each feature that has any. */
  readonly lists: readonly ((user: User) => MaybePromise<readonly AccountMethod[]>)[]
}

export class AccountMethods {
  readonly #deps: AccountMethodsDeps

  constructor(deps: AccountMethodsDeps) {
    this.#deps = deps
  }

  /** The password first, then methods by mail, then those of features. */
  async list(user: User): Promise<readonly AccountMethod[]> {
    const { sessions, signIns, lists } = this.#deps
    const lastSignIns = new Map<string, number>()
    for (const { method, at } of await sessions.listLastSignIns(user.id)) lastSignIns.set(method, at)
    const ofCore = (method: string, label: string | null): AccountMethod => ({
      method,
      id: null,
      label,
      addedAt: null,
      lastUsedAt: lastSignIns.get(method) ?? null,
      isFactor: false,
    })
    const ofFeatures = await Promise.all(lists.map(list => list(user)))
    return [
      ...(user.hasPassword ? [ofCore('password', null)] : []),
      ...signIns.mailedMethods.map(name => ofCore(name, user.email)),
      ...ofFeatures.flat(),
    ]
  }
}
