import { ServiceError } from '../errors.ts'
import type { OwnChanges, User, UserChanges } from './user.ts'
import { decodeCursor, encodeCursor, type Page, parseSort, type Sort, type UserFilter } from './user-list.ts'
import type { UserStore } from './user-store.ts'

export interface PageRequest {
  readonly filter: UserFilter
  readonly sort: Sort
  readonly cursor?: string | undefined
  readonly limit: number
}

export interface UsersParts {
  readonly store: UserStore
  readonly clock: () => number
}

/** The use cases that change and list users. */
export class Users {
  readonly #store: UserStore
  readonly #clock: () => number

  constructor({ store, clock }: UsersParts) {
    this.#store = store
    this.#clock = clock
  }

  /**
   * Changes a user. Disabling ends every session, so that enabling again does not bring old tokens back; a new e-mail
   * counts as unverified unless the change says otherwise.
   * @throws {ServiceError} `userNotFound`, `emailTaken`
   */
  async update(id: string, changes: UserChanges): Promise<User> {
    const current = await this.get(id)
    const emailChanges = changes.email !== undefined && changes.email !== current.email
    const complete = emailChanges ? { emailVerified: false, ...changes } : changes
    const options = { endSessions: changes.disabled === true, onlyEnabled: false }
    const updated = await this.#store.update(id, complete, this.#clock(), options)
    if (updated === undefined) throw new ServiceError('userNotFound')
    if (updated === 'emailTaken') throw new ServiceError('emailTaken')
    return updated
  }

  /** @throws {ServiceError} `userNotFound` */
  async get(id: string): Promise<User> {
    const user = await this.#store.find(id)
    if (user === undefined) throw new ServiceError('userNotFound')
    return user
  }

  /**
   * Changes a user's own names.
   * @throws {ServiceError} `signInRequired` when the user was disabled in the meantime
   */
  async updateOwn(id: string, { firstName, lastName }: OwnChanges): Promise<User> {
    const changes = {
      ...(firstName !== undefined && { firstName }),
      ...(lastName !== undefined && { lastName }),
    }
    const options = { endSessions: false, onlyEnabled: true }
    const updated = await this.#store.update(id, changes, this.#clock(), options)
    if (updated === undefined || updated === 'emailTaken') throw new ServiceError('signInRequired')
    return updated
  }

  /** @throws {ServiceError} `badCursor` */
  async list({ filter, sort, cursor, limit }: PageRequest): Promise<Page> {
    const after = cursor === undefined ? null : decodeCursor(sort, cursor)
    // One row more than asked for tells whether a next page exists, without counting.
    const rows = await this.#store.list({ filter, sort: parseSort(sort), after, limit: limit + 1 })
    const users = rows.slice(0, limit)
    const last = users.at(-1)
    return { users, nextCursor: rows.length > limit && last !== undefined ? encodeCursor(sort, last) : null }
  }

  async count(filter: UserFilter): Promise<number> {
    return this.#store.count(filter)
  }
}
