/** Grants: issued for codes, refreshed, listed and ended. */

import type { MaybePromise } from '#base/maybe-promise'
import { type Actor, newId, ServiceError } from '#feature/declaration'
import { DecryptionError } from '#feature/encryption/keyring'
import { type Client, isPublic, isUnverified, type StoredClient } from './client.ts'
import type { Clients } from './clients.ts'
import { ERRORS, type OAuthDeps } from './definitions.ts'
import type { Grant, NewGrant } from './grant.ts'
import { organizationOfToken } from './granted-organizations.ts'
import { rotated } from './refresh-rule.ts'
import {
  isAuthentic,
  newGrantSecret,
  type PresentedRefreshToken,
  readRefreshToken,
  refreshTokenOf,
} from './refresh-tokens.ts'
import type { FoundGrant } from './stored-grants.ts'
import type { Decision } from './stored-requests.ts'

/** A grant with what its next tokens are made of. */
export interface GrantedAccess {
  readonly grant: Grant
  readonly userId: string
  /** `null`: the client is not registered for one. */
  readonly refreshToken: string | null
  /** The organization of the token; `null`: none. */
  readonly organization: string | null
}

/** A grant as its user sees it. */
export interface OwnGrant extends Grant {
  readonly client: Pick<Client, 'id' | 'name' | 'uri'>
}

/** A refresh token with its grant. */
interface AuthenticToken extends Omit<FoundGrant, 'grant'> {
  readonly grant: Grant
  readonly presented: PresentedRefreshToken
  /** Of the grant, decrypted. */
  readonly secret: string
}

const invalidGrant = (): ServiceError => new ServiceError(ERRORS.invalidGrant, { sampledAs: 'oauth-grant' })

/** @throws anything but `invalidGrant` */
const ignoreInvalid = (error: unknown): null => {
  if (error instanceof ServiceError && error.code === ERRORS.invalidGrant.code) return null
  throw error
}

export class Grants {
  readonly #deps: OAuthDeps
  readonly #clients: Clients

  constructor(deps: OAuthDeps, clients: Clients) {
    this.#deps = deps
    this.#clients = clients
  }

  /**
   * A new grant, with the secret of its refresh tokens.
   * @param decision of the user. @param jkt the key of the request; `null`: it had none. The refresh tokens of a client without a secret are
   * bound to it.
   */
  create(
    client: Client,
    resource: string | null,
    { scopes, organization, sessionId, authenticatedAt }: Decision,
    jkt: string | null,
  ) {
    const { clock, settings } = this.#deps
    const now = clock()
    const id = newId(now)
    const secret = client.grantTypes.includes('refresh_token') ? newGrantSecret() : null
    const grant: NewGrant = {
      ...{ id, clientId: client.id, scopes, resource, organization },
      ...{ authenticatedAt, createdAt: now, usedAt: now },
      sessionId: scopes.includes('offline_access') ? null : sessionId,
      jkt: isPublic(client) ? jkt : null,
      expiresAt: now + settings.OAUTH_GRANT,
      secret: secret === null ? null : this.#encrypted(id, secret),
    }
    return { grant, refreshToken: secret === null ? null : refreshTokenOf(id, 0, secret) }
  }

  /** Tells a user of a new grant, if it is the first one of a client that nobody has checked. */
  async announce({ id }: Pick<Grant, 'id'>, userId: string, client: StoredClient): Promise<void> {
    if (!isUnverified(client)) return
    const { store, findUser, mails, clock } = this.#deps
    const grants = await store.listGrants(userId, clock())
    if (grants.some(each => each.clientId === client.id && each.id !== id)) return
    const user = await findUser(userId)
    if (user !== undefined) mails.send('clientConnected', user, { client: client.name })
  }

  /**
   * Uses a refresh token.
   * @param jkt the key of the request; `null`: it had none. @param asked the organization that the access token is to be limited to.
   * @throws {ServiceError} `invalidGrant`, `invalidOrganization`
   */
  async refresh(
    text: string,
    client: StoredClient,
    jkt: string | null,
    asked: string | undefined,
  ): Promise<GrantedAccess> {
    const { store, settings, config, newEvent, findUser, mails } = this.#deps
    const { presented, grant, userId, secret } = await this.#authentic(text, client)
    if (grant.jkt !== null && grant.jkt !== jkt) throw invalidGrant()
    // Before the token is used.
    const organization = await organizationOfToken(this.#deps, userId, grant.organization, asked)
    const actor: Actor = { type: 'client', id: client.id, ip: null }
    const limits = {
      // A bound token is useless to a thief, so it need not be replaced.
      window: isPublic(client) && grant.jkt === null ? settings.OAUTH_REFRESH_WINDOW : null,
      idle: settings.OAUTH_GRANT_IDLE,
      sessionIdle: config.sessionIdle,
    }
    const event = newEvent('grant.reused', actor, userId, { grant: grant.id, client: client.id })
    const outcome = await store.refreshGrant(grant.id, presented.generation, limits, event)
    if (outcome === 'reused') {
      const user = await findUser(userId)
      if (user !== undefined) mails.send('grantReused', user, { client: client.name })
    }
    if (typeof outcome === 'string') throw invalidGrant()
    return { grant, userId, organization, refreshToken: refreshTokenOf(grant.id, outcome, secret) }
  }

  /** The grant of a refresh token that the client, which keeps a secret, could use now; `null` for any other text. It changes nothing. */
  async inspect(text: string, client: StoredClient): Promise<{ grant: Grant; userId: string } | null> {
    const { store, clock, settings, config } = this.#deps
    const found = await this.#authentic(text, client).catch(ignoreInvalid)
    if (found === null) return null
    const { grant, userId, generations, presented } = found
    const now = clock()
    // Tokens of clients that may ask are never replaced.
    if (rotated(generations, presented.generation, true) === null) return null
    const isLive = await store.isGrantToken(grant.id, '', userId, now, now - config.sessionIdle)
    return isLive && now < grant.usedAt + settings.OAUTH_GRANT_IDLE ? { grant, userId } : null
  }

  /** Ends the grant of a refresh token that was issued to the client; any other text changes nothing. */
  async revokeByToken(text: string, client: StoredClient): Promise<void> {
    const found = await this.#authentic(text, client).catch(ignoreInvalid)
    if (found === null) return
    await this.end(found.grant.id, found.userId, { type: 'client', id: client.id, ip: null }, false)
  }

  /** @param onlyEnabled whether the user must be enabled. @returns whether there was the grant. */
  async end(id: string, userId: string, actor: Actor, onlyEnabled: boolean): Promise<boolean> {
    const { store, newEvent } = this.#deps
    return store.endGrant(id, newEvent('grant.revoked', actor, userId, { grant: id }), onlyEnabled)
  }

  /** Ends a grant of the user's own. @throws {ServiceError} `grantNotFound` */
  async revokeOwn(userId: string, id: string, actor: Actor): Promise<void> {
    if (!(await this.end(id, userId, actor, true))) throw new ServiceError(ERRORS.grantNotFound)
  }

  /** The grants of a user, the last used first. */
  async list(userId: string): Promise<readonly OwnGrant[]> {
    const { store, clock } = this.#deps
    const grants = await store.listGrants(userId, clock())
    const own = await Promise.all(
      grants.map(async grant => ({
        grant,
        client: await (this.#clients.find(grant.clientId) as MaybePromise<StoredClient | undefined>),
      })),
    )
    return own.flatMap(({ grant, client }) =>
      client === undefined
        ? []
        : [{ ...grant, client: { id: client.id, name: client.name, uri: client.uri } }],
    )
  }

  /** @throws {ServiceError} `invalidGrant` */
  async #authentic(text: string, client: StoredClient): Promise<AuthenticToken> {
    const presented = readRefreshToken(text)
    const found = presented === null ? undefined : await this.#deps.store.findGrant(presented.grantId)
    if (presented === null || found === undefined || found.grant.clientId !== client.id) throw invalidGrant()
    const { secret: encrypted, ...grant } = found.grant
    const secret = encrypted === null ? null : this.#decrypted(grant.id, encrypted)
    if (secret === null || !isAuthentic(presented, secret)) throw invalidGrant()
    return { ...found, presented, grant, secret }
  }

  #encrypted(id: string, secret: string): string {
    const keyring = this.#deps.keyring()
    // The start requires one.
    if (keyring === null) throw new Error('OAUTH needs ENCRYPTION_KEY')
    return keyring.encrypt(secret, contextOf(id))
  }

  #decrypted(id: string, encrypted: string): string | null {
    try {
      return this.#deps.keyring()?.decrypt(encrypted, contextOf(id)).text ?? null
    } catch (error) {
      if (error instanceof DecryptionError) return null
      throw error
    }
  }
}

const contextOf = (owner: string) => ({ purpose: 'oauth-grant', owner })

const timestamp = (milliseconds: number): string => new Date(milliseconds).toISOString()

export const serializeGrant = (grant: OwnGrant) => {
  const { id, client, scopes, resource, organization, sessionId, ...times } = grant
  return {
    ...{ id, client, scopes, resource, organization },
    endsWithSession: sessionId !== null,
    createdAt: timestamp(times.createdAt),
    lastUsedAt: timestamp(times.usedAt),
    expiresAt: timestamp(times.expiresAt),
  }
}
