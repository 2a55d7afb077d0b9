/**
 * Admin keys of the store (docs/design.md, "Machine callers"): keys for programs of administrators, with scopes and an expiry. The root
 * keys of the configuration are not among them. `src/core/auth/admin-authenticator.ts` verifies both. The lookup is part of authentication and
 * written by hand for each engine.
 */
import { Type } from '@sinclair/typebox'
import { defineErrors, ServiceError } from '#base/errors'
import { type AdminKey, missingScopes, type PresentedAdminKey, serializeAdminKey } from '#core/auth/admin-key'
import type { NewKeyOptions } from '#core/auth/api-key'
import { ADMIN_KEY_PREFIX, newOpaqueKey } from '#core/auth/opaque-key'
import { type Actor, type DepsOf, newId } from '#feature/declaration'
import { storedAdminKeys } from './stored-admin-keys.ts'

const adminKey = Type.String({ description: 'The id of the admin key' })
const EVENTS = {
  'admin-key.created': Type.Object({
    adminKey,
    scopes: Type.Array(Type.String(), { description: 'What the admin key may do' }),
  }),
  'admin-key.revoked': Type.Object({ adminKey }),
}

export const ERRORS = defineErrors({
  expiresAfterCreator: {
    status: 400,
    field: 'expiresAt',
    message: 'must not be later than the expiry of the admin key that creates this one',
  },
  adminKeyNotFound: { status: 404, message: 'There is no such admin key' },
  tooManyAdminKeys: { status: 409, message: 'There are 1,000 admin keys: revoke one first' },
})

export const parts = {
  ...storedAdminKeys,
  events: EVENTS,
  errors: ERRORS,
  routes: new URL('routes/', import.meta.url),
  console: () => import('./console-pages.ts'),
}

type AdminKeysDeps = DepsOf<typeof parts>

export interface CreatedAdminKey {
  /** The key itself, shown once. */
  readonly token: string
  readonly adminKey: AdminKey
}

/** What a key needs to have, to create or revoke another one. `null` stands for everything, and for no expiry. */
type Rights = Pick<PresentedAdminKey, 'scopes' | 'expiresAt'>

/** The rights of the operator, on the command line. */
export const ALL_RIGHTS: Rights = { scopes: null, expiresAt: null }

export const serializeCreatedAdminKey = ({ token, adminKey }: CreatedAdminKey) => ({
  adminKey: token,
  key: serializeAdminKey(adminKey),
})

export class AdminKeys {
  readonly #deps: AdminKeysDeps

  constructor(deps: AdminKeysDeps) {
    this.#deps = deps
  }

  /**
   * Creates a key.
   * @param creator the rights of the actor: the new key has no scope that they lack, and no later expiry.
   * @throws {ServiceError} `expiresInPast`, `expiresAfterCreator`, `scopeRequired`, `tooManyAdminKeys`, `adminKeyRequired`
   */
  async create(
    { name, scopes, expiresAt }: NewKeyOptions,
    creator: Rights,
    actor: Actor,
  ): Promise<CreatedAdminKey> {
    const { store, newEvent, clock } = this.#deps
    const now = clock()
    if (expiresAt !== null && expiresAt <= now) throw new ServiceError('expiresInPast')
    const missing = missingScopes(creator, scopes)
    if (missing.length > 0) throw new ServiceError('scopeRequired', { missingAdminScopes: missing })
    if (creator.expiresAt !== null && (expiresAt === null || expiresAt > creator.expiresAt))
      throw new ServiceError(ERRORS.expiresAfterCreator)
    const { text, digest, shownPrefix } = newOpaqueKey(ADMIN_KEY_PREFIX)
    const id = newId(now)
    const described = { id, name, prefix: shownPrefix, scopes, createdAt: now, expiresAt }
    const adminKey = { ...described, lastUsedAt: null, createdBy: actor.id }
    const event = newEvent('admin-key.created', actor, null, { adminKey: id, scopes: [...scopes] })
    // A key of the store may be revoked meanwhile.
    const creatorId = creator.scopes === null || actor.type !== 'adminKey' ? null : actor.id
    const outcome = await store.addAdminKey({ ...adminKey, digest }, creatorId, event)
    if (outcome === 'creatorRevoked') throw new ServiceError('adminKeyRequired')
    if (outcome !== 'added') throw new ServiceError(ERRORS.tooManyAdminKeys)
    return { token: text, adminKey }
  }

  /** All keys, newest first. */
  async list(): Promise<readonly AdminKey[]> {
    return this.#deps.store.listAdminKeys()
  }

  /**
   * Revokes a key, and ends the impersonated sessions that it has opened.
   * @param revoker the rights of the actor, which must include the scopes of the key.
   * @throws {ServiceError} `adminKeyNotFound`, `scopeRequired`
   */
  async revoke(id: string, { scopes }: Pick<Rights, 'scopes'>, actor: Actor): Promise<void> {
    const { store, newEvent } = this.#deps
    const event = newEvent('admin-key.revoked', actor, null, { adminKey: id })
    const outcome = await store.revokeAdminKey(id, { scopes }, event)
    if (outcome === 'revoked') return
    if (outcome === 'adminKeyNotFound') throw new ServiceError(ERRORS.adminKeyNotFound)
    throw new ServiceError('scopeRequired', { missingAdminScopes: outcome.missing })
  }
}
