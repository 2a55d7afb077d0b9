import { type Actor, type EventType, newEvent } from '../audit-log/event.ts'
import { ServiceError } from '../errors.ts'
import { decodeCursor, encodeCursor, type Page, parseSort, type Sort, type UserFilter } from './listing.ts'
import type { OwnChanges, User, UserChanges } from './user.ts'
import type { UserStore } from './user-store.ts'

export interface PageRequest {
  readonly filter: UserFilter
  readonly sort: Sort
  readonly cursor?: string | undefined
  readonly limit: number
}

export interface UsersDeps {
  readonly store: UserStore
  readonly clock: () => number
}

/** The versions of a user that a change is meant for (`If-Match`); `null` for whatever version there is. */
export type Versions = readonly number[] | null

const eventType = ({ disabled }: UserChanges): EventType => {
  if (disabled === undefined) return 'user.changed'
  return disabled ? 'user.disabled' : 'user.enabled'
}

/** The use cases that change and list users. */
export class Users {
  readonly #store: UserStore
  readonly #clock: () => number

  constructor({ store, clock }: UsersDeps) {
    this.#store = store
    this.#clock = clock
  }

  /**
   * Changes a user. Disabling ends every session, so that enabling again does not bring old tokens back; a new e-mail
   * counts as unverified unless the change says otherwise.
   * @throws {ServiceError} `userNotFound`, `emailTaken`, `versionChanged`
   */
  async update(id: string, changes: UserChanges, actor: Actor, versions: Versions = null): Promise<User> {
    const current = await this.get(id)
    const emailChanges = changes.email !== undefined && changes.email !== current.email
    const complete = emailChanges ? { emailVerified: false, ...changes } : changes
    const event = newEvent(eventType(changes), actor, id, this.#clock(), { fields: Object.keys(changes) })
    const options = { endSessions: changes.disabled === true, onlyEnabled: false, versions }
    const updated = await this.#store.update(id, complete, event, options)
    if (typeof updated === 'string') throw new ServiceError(updated)
    return updated
  }

  /** @throws {ServiceError} `userNotFound` */
  async get(id: string): Promise<User> {
    const user = await this.#store.find(id)
    if (user === undefined) throw new ServiceError('userNotFound')
    return user
  }

  /** @param email in canonical form. @throws {ServiceError} `userNotFound` */
  async getByEmail(email: string): Promise<User> {
    const found = await this.#store.findByEmail(email)
    if (found === undefined) throw new ServiceError('userNotFound')
    return found.user
  }

  /**
   * Changes a user's own names.
   * @throws {ServiceError} `versionChanged`; `signInRequired` when the user was disabled or removed in the meantime
   */
  async updateOwn(id: string, changes: OwnChanges, actor: Actor, versions: Versions): Promise<User> {
    const event = newEvent('user.changed', actor, id, this.#clock(), { fields: Object.keys(changes) })
    const options = { endSessions: false, onlyEnabled: true, versions }
    const updated = await this.#store.update(id, changes, event, options)
    if (updated === 'userNotFound' || updated === 'accountDisabled') throw new ServiceError('signInRequired')
    if (typeof updated === 'string') throw new ServiceError(updated)
    return updated
  }

  /** Removes a user with all that belongs to them. @throws {ServiceError} `userNotFound` */
  async remove(id: string, actor: Actor): Promise<void> {
    const event = newEvent('user.deleted', actor, id, this.#clock())
    if ((await this.#store.remove(event, null)) !== 'removed') throw new ServiceError('userNotFound')
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
