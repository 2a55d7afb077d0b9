/**
 * API keys of users (docs/design.md, "Machine callers"): tokens for programs, with scopes and without a session. Their lookup is part of
 * authentication (`src/core/auth/api-key.ts`) and written by hand for each engine.
 */
import { Type } from '@sinclair/typebox'
import { defineErrors, ServiceError } from '#base/errors'
import type { ApiKey, NewKeyOptions } from '#core/auth/api-key'
import { API_KEY_PREFIX, newOpaqueKey } from '#core/auth/opaque-key'
import { actingSession, type Principal } from '#core/auth/principal'
import { type Actor, type DepsOf, defineFeature, newId } from '#feature/declaration'
import { changeMail } from '#feature/mails'
import { storedApiKeys } from './stored-api-keys.ts'

const Details = Type.Object({ apiKey: Type.String({ description: 'The id of the API key' }) })
const EVENTS = { 'api-key.created': Details, 'api-key.revoked': Details }

type Scopes = { readonly scopes: readonly string[] }

const MAILS = {
  apiKeyCreated: {
    ...changeMail(
      {
        subject: 'An API key has been created for your account',
        text: 'A new API key works for your account at {product}. Programs with it may do: {scopes}.',
        ifNotYou: 'revoke the key and choose a new password now',
      },
      {
        subject: 'Ihr Konto hat einen neuen API-Schlüssel',
        text: 'Für Ihr Konto bei {product} gilt ein neuer API-Schlüssel. Programme mit ihm dürfen: {scopes}.',
        ifNotYou: 'widerrufen Sie den Schlüssel und wählen Sie jetzt ein neues Passwort',
      },
    ),
    places: ({ scopes }: Scopes) => ({ scopes: scopes.join(', ') }),
    example: { scopes: ['account:read'] },
  },
}

export const ERRORS = defineErrors({
  apiKeyNotFound: { status: 404, message: 'There is no such API key' },
  tooManyApiKeys: { status: 409, message: 'You have 50 API keys: revoke one first' },
})

const parts = {
  ...storedApiKeys,
  events: EVENTS,
  mails: MAILS,
  errors: ERRORS,
  routes: new URL('routes/', import.meta.url),
  pages: () => import('./pages.ts'),
  console: () => import('./console-pages.ts'),
}

type ApiKeysDeps = DepsOf<typeof parts>

export interface CreatedApiKey {
  /** The key itself, shown once. */
  readonly token: string
  readonly apiKey: ApiKey
}

export class ApiKeys {
  readonly #deps: ApiKeysDeps

  constructor(deps: ApiKeysDeps) {
    this.#deps = deps
  }

  /**
   * Creates a key for the user of a session, and mails the user.
   * @param principal of a session whose user has proved their identity.
   * @throws {ServiceError} `expiresInPast`, `tooManyApiKeys`, `signInRequired`
   */
  async create(
    principal: Principal,
    { name, scopes, expiresAt }: NewKeyOptions,
    actor: Actor,
  ): Promise<CreatedApiKey> {
    const { store, newEvent, mails, clock } = this.#deps
    const now = clock()
    if (expiresAt !== null && expiresAt <= now) throw new ServiceError('expiresInPast')
    const { user } = principal.cachedUser
    const { text, digest, shownPrefix } = newOpaqueKey(API_KEY_PREFIX)
    const id = newId(now)
    const apiKey = { id, name, prefix: shownPrefix, scopes, createdAt: now, expiresAt, lastUsedAt: null }
    const event = newEvent('api-key.created', actor, user.id, { apiKey: id })
    const outcome = await store.addApiKey({ ...apiKey, digest }, actingSession(principal), event)
    if (outcome === 'tooManyApiKeys') throw new ServiceError(ERRORS.tooManyApiKeys)
    if (outcome !== 'added') throw new ServiceError('signInRequired')
    mails.send('apiKeyCreated', user, { scopes })
    return { token: text, apiKey }
  }

  /** The keys of the user's own, newest first. */
  async listOwn(userId: string): Promise<readonly ApiKey[]> {
    return this.#deps.store.listApiKeys(userId)
  }

  /** The keys of any user. @throws {ServiceError} `userNotFound` */
  async list(userId: string): Promise<readonly ApiKey[]> {
    // First the keys: a user who exists afterwards existed then.
    const apiKeys = await this.listOwn(userId)
    await this.#deps.users.get(userId)
    return apiKeys
  }

  /** Revokes a key of the user's own. @throws {ServiceError} `apiKeyNotFound`, `signInRequired` */
  async revokeOwn(userId: string, id: string, actor: Actor): Promise<void> {
    const outcome = await this.#revoke(userId, id, actor, true)
    if (outcome === 'revoked') return
    throw new ServiceError(outcome === 'apiKeyNotFound' ? ERRORS.apiKeyNotFound : 'signInRequired')
  }

  /** Revokes a key of any user. @throws {ServiceError} `apiKeyNotFound`, `userNotFound` */
  async revoke(userId: string, id: string, actor: Actor): Promise<void> {
    const outcome = await this.#revoke(userId, id, actor, false)
    if (outcome === 'revoked') return
    throw new ServiceError(outcome === 'apiKeyNotFound' ? ERRORS.apiKeyNotFound : 'userNotFound')
  }

  #revoke(userId: string, id: string, actor: Actor, onlyEnabled: boolean) {
    const event = this.#deps.newEvent('api-key.revoked', actor, userId, { apiKey: id })
    return this.#deps.store.revokeApiKey(id, event, onlyEnabled)
  }
}

export const apiKeys = defineFeature({
  ...parts,
  services: { apiKeys: deps => new ApiKeys(deps) },
})
