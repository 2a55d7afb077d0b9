/** Listing, changing and deleting users. */

import { ServiceError } from '#base/errors'
import { canonicalId } from '#base/ids'
import { pageOf } from '#base/pagination'
import type { Mails } from '../accounts/mails.ts'
import {
  type ActingKey,
  EVERY_SCOPE,
  type ProtectedRole,
  requireScopesOf,
} from '../accounts/protected-role.ts'
import { type Actor, type EventType, newEvent } from '../audit-log/event.ts'
import { actingSession, type SessionOwner } from '../auth/principal.ts'
import type { RemovalRefused, Removed, UserStore } from '../store/store.ts'
import {
  decodeCursor,
  encodeCursor,
  type Page,
  parseSort,
  type SignInTables,
  type Sort,
  type UserFilter,
} from './listing.ts'
import { canonicalEmail, type OwnChanges, type User, type UserChanges } from './user.ts'

export interface PageRequest {
  readonly filter: UserFilter
  readonly sort: Sort
  readonly cursor?: string | undefined
  readonly limit: number
  /** Only what other users see: neither metadata nor sign-in methods. */
  readonly isPublic?: boolean
}

/** Notifies features of a stored removal. @throws {ServiceError} the error of the feature that has refused it. */
export type FinishRemoval = (outcome: Removed | RemovalRefused) => void

export interface UsersDeps {
  readonly store: UserStore
  readonly signInTables: SignInTables
  readonly mails: Mails
  readonly finishRemoval: FinishRemoval
  /** `null`: there is none. */
  readonly protectedRole: ProtectedRole | null
  readonly clock: () => number
}

/** The versions that a change applies to (`If-Match`); `null`: any. */
export type Versions = readonly number[] | null

const eventType = ({ disabled }: UserChanges): EventType => {
  if (disabled === undefined) return 'user.changed'
  return disabled ? 'user.disabled' : 'user.enabled'
}

export class Users {
  readonly #deps: UsersDeps

  constructor(deps: UsersDeps) {
    this.#deps = deps
  }

  /**
   * Changes a user. Disabling ends all sessions. A changed e-mail is unverified unless `changes` sets `emailVerified`, and both addresses are
   * mailed. Disabling and another e-mail end all e-mail tokens.
   * @throws {ServiceError} `userNotFound`, `emailTaken`, `versionChanged`, `scopeRequired`
   */
  async update(
    id: string,
    changes: UserChanges,
    actor: Actor,
    versions: Versions = null,
    key: ActingKey = EVERY_SCOPE,
  ): Promise<User> {
    const { store, mails, protectedRole, clock } = this.#deps
    const current = await this.get(id)
    if (changes.email !== undefined || changes.emailVerified !== undefined)
      requireScopesOf(protectedRole, current, key)
    requireScopesOf(
      protectedRole,
      { roles: changes.roles?.filter(role => !current.roles.includes(role)) },
      key,
    )
    const isEmailChanged = changes.email !== undefined && changes.email !== current.email
    const complete = isEmailChanged ? { emailVerified: false, ...changes } : changes
    const event = newEvent(eventType(changes), actor, id, clock(), { fields: Object.keys(changes) })
    const isExpected = versions === null || versions.includes(current.version)
    // What another e-mail changes is known of this version alone.
    const options = {
      revokeSessions: changes.disabled === true,
      invalidateTokens: changes.disabled === true || changes.email !== undefined,
      credentialId: null,
      versions: changes.email !== undefined && isExpected ? [current.version] : versions,
    }
    const updated = await store.update(id, complete, event, options)
    // Another change came first.
    if (updated === 'versionChanged' && options.versions !== versions)
      return this.update(id, changes, actor, versions, key)
    if (typeof updated === 'string') throw new ServiceError(updated)
    if (isEmailChanged) {
      mails.send('emailChanged', current, { newEmail: updated.email })
      mails.send('emailAssigned', updated)
    }
    // No change of a user adds or removes them.
    return { ...updated, ...(current.featureMethods && { featureMethods: current.featureMethods }) }
  }

  async get(id: string): Promise<User> {
    const { store, signInTables } = this.#deps
    const user = await store.find(id, signInTables)
    if (user === undefined) throw new ServiceError('userNotFound')
    return user
  }

  /** By id or e-mail, in any letter case. @throws {ServiceError} `userNotFound` */
  async find(idOrEmail: string): Promise<User> {
    if (!idOrEmail.includes('@')) return this.get(canonicalId(idOrEmail))
    const id = await this.#deps.store.findId(canonicalEmail(idOrEmail))
    if (id === undefined) throw new ServiceError('userNotFound')
    return this.get(id)
  }

  /**
   * Changes the user's own fields. @param credentialId the session or API key that makes the change.
   * @throws {ServiceError} `versionChanged`; `signInRequired` when the user was disabled or deleted, or the credential revoked meanwhile
   */
  async updateOwn(
    id: string,
    credentialId: string,
    changes: OwnChanges,
    actor: Actor,
    versions: Versions,
  ): Promise<User> {
    const { store, clock } = this.#deps
    const event = newEvent('user.changed', actor, id, clock(), { fields: Object.keys(changes) })
    const options = { revokeSessions: false, invalidateTokens: false, credentialId, versions }
    const updated = await store.update(id, changes, event, options)
    if (updated === 'userNotFound' || updated === 'accountDisabled' || updated === 'sessionNotFound')
      throw new ServiceError('signInRequired')
    if (typeof updated === 'string') throw new ServiceError(updated)
    return updated
  }

  /** Deletes a user with everything that belongs to them. @throws {ServiceError} `userNotFound`, and those of features that refuse it */
  async remove(id: string, actor: Actor): Promise<void> {
    const { store, finishRemoval, clock } = this.#deps
    const outcome = await store.remove(newEvent('user.deleted', actor, id, clock()), null)
    if (typeof outcome === 'string') throw new ServiceError('userNotFound')
    finishRemoval(outcome)
  }

  /**
   * Deletes the user's own account. The caller has required a proof of identity. @throws {ServiceError} `signInRequired` when the user was
   * disabled or deleted, or the session ended meanwhile; and those of features that refuse it
   */
  async removeOwn(owner: SessionOwner, actor: Actor): Promise<void> {
    const { store, mails, finishRemoval, clock } = this.#deps
    const { user } = owner.cachedUser
    const outcome = await store.remove(
      newEvent('user.deleted', actor, user.id, clock()),
      actingSession(owner),
    )
    if (typeof outcome === 'string') throw new ServiceError('signInRequired')
    finishRemoval(outcome)
    mails.send('accountDeleted', user)
  }

  async list({ filter, sort, cursor, limit, isPublic = false }: PageRequest): Promise<Page> {
    const after = cursor === undefined ? null : decodeCursor(sort, cursor)
    const { store, signInTables } = this.#deps
    const rows = await store.list({
      filter,
      sort: parseSort(sort),
      after,
      limit: limit + 1,
      ...(isPublic ? { omitMetadata: true } : { signInTables }),
    })
    const { results, nextCursor } = pageOf(rows, limit, last => encodeCursor(sort, last))
    return { users: results, nextCursor }
  }

  async count(filter: UserFilter): Promise<number> {
    return this.#deps.store.count(filter)
  }

  async estimate(filter: UserFilter): Promise<number> {
    return this.#deps.store.estimate(filter)
  }
}
