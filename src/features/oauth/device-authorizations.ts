/**
 * Device authorization (RFC 8628): a device without a browser shows a code, a person enters it in a browser and approves, and the device
 * polls for its tokens. A request is one row, which is redeemed in the transaction that creates the grant.
 */
import type { Principal } from '#core/auth/principal'
import { digestKey } from '#core/rate-limits/limits'
import { type Actor, ServiceError } from '#feature/declaration'
import type { RateLimit } from '#storage/rate-limit'
import { knownScopes, requestedScopes } from './authorization-request.ts'
import {
  type ConsentScopes,
  invalidGrant,
  type RedeemedCode,
  type Redemption,
  sessionOf,
} from './authorizations.ts'
import type { Client, StoredClient } from './client.ts'
import type { Clients } from './clients.ts'
import { ERRORS, type OAuthDeps } from './definitions.ts'
import { newUserCode, readUserCode, shownUserCode } from './device-codes.ts'
import { organizationOfToken } from './granted-organizations.ts'
import type { Grants } from './grants.ts'
import { digestOf, newToken } from './request-tokens.ts'
import type { Resource } from './resource.ts'
import type { Resources } from './resources.ts'
import type { DeviceRequest } from './stored-devices.ts'

/** Milliseconds. */
const REQUEST_LIFETIME = 600_000

/** Milliseconds between two polls. */
const INTERVAL = 5_000

/** Milliseconds by which a poll may be early: timers of clients are not exact. */
const TOLERANCE = 500

/** Guesses of user codes within a minute. Right ones count, too: a success must not make further guesses possible. */
const GUESSES_BY_NETWORK = 10
const GUESSES_BY_SESSION = 5

/** Further user codes that are tried if one is taken. */
const ATTEMPTS = 5

export interface Requester {
  readonly address: string | null
  /** The client address, or its network. */
  readonly network: string
}

/** The body of a response to a device (RFC 8628 §3.2). */
export interface DeviceResponse {
  readonly device_code: string
  readonly user_code: string
  readonly verification_uri: string
  readonly verification_uri_complete: string
  readonly expires_in: number
  readonly interval: number
}

/** A pending request, as the user sees it. */
export interface ShownDevice {
  /** Names the request. It is not the device code, which only the device knows. */
  readonly id: string
  readonly userCode: string
  readonly client: Client
  readonly request: DeviceRequest
  readonly scopes: ConsentScopes
}

export class DeviceAuthorizations {
  readonly #deps: OAuthDeps
  readonly #clients: Clients
  readonly #resources: Resources
  readonly #grants: Grants
  readonly #networkGuesses: RateLimit
  readonly #sessionGuesses: RateLimit

  constructor(deps: OAuthDeps, clients: Clients, resources: Resources, grants: Grants) {
    this.#deps = deps
    this.#clients = clients
    this.#resources = resources
    this.#grants = grants
    const limit = (name: string, points: number) =>
      deps.openRateLimit({ name, points, seconds: 60, final: true })
    this.#networkGuesses = limit('user-codes', GUESSES_BY_NETWORK)
    this.#sessionGuesses = limit('user-codes-of-session', GUESSES_BY_SESSION)
  }

  /**
   * Begins a request.
   * @param resource that the token is for; `null`: Gatehouse.
   * @throws {ServiceError} `invalidScope`, `tooManyRequests`
   */
  async begin(
    client: StoredClient,
    scope: string | undefined,
    resource: Resource | null,
    { address, network }: Requester,
  ): Promise<DeviceResponse> {
    const { store, clock, config, userScopes } = this.#deps
    const scopes = requestedScopes({ scope }, client, knownScopes(resource, userScopes))
    if (scopes.length === 0) throw new ServiceError(ERRORS.invalidScope)
    const now = clock()
    const request = {
      ...{ clientId: client.id, scopes, resource: resource?.identifier ?? null },
      ...{ address, requestedAt: now },
    }
    const requester = digestKey(JSON.stringify([client.id, network]))
    const deviceCode = newToken()
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const userCode = newUserCode()
      const outcome = await store.addDeviceRequest(
        ...([digestOf(deviceCode), digestOf(userCode), requester, request, now + REQUEST_LIFETIME] as const),
      )
      if (outcome === 'tooMany') throw tooManyRequests(INTERVAL / 1_000)
      if (outcome === 'taken') continue
      const uri = `${config.publicUrl}/device`
      return {
        device_code: deviceCode,
        user_code: shownUserCode(userCode),
        verification_uri: uri,
        verification_uri_complete: `${uri}?user_code=${shownUserCode(userCode)}`,
        expires_in: REQUEST_LIFETIME / 1_000,
        interval: INTERVAL / 1_000,
      }
    }
    throw new Error('No user code is free')
  }

  /**
   * The pending request of a user code. Each call is a guess, and reading changes nothing else.
   * @throws {ServiceError} `signInRequired`, `unknownUserCode`, `tooManyRequests`
   */
  async find(text: string, principal: Principal | null, network: string): Promise<ShownDevice> {
    const session = this.#session(principal)
    const userCode = readUserCode(text)
    if (userCode === null) throw new ServiceError(ERRORS.unknownUserCode)
    await this.#countGuess(session, network)
    const found = await this.#deps.store.findDeviceByUserCode(digestOf(userCode))
    const client = found && (await this.#clients.find(found.request.clientId))
    if (found?.state !== 'pending' || client === undefined || found.expiresAt <= this.#deps.clock())
      throw new ServiceError(ERRORS.unknownUserCode, { sampledAs: 'oauth-user-code' })
    const { id, request } = found
    const resource = request.resource === null ? null : await this.#resources.find(request.resource)
    const known = knownScopes(resource ?? null, this.#deps.userScopes)
    const scopes = request.scopes.map((scope): [string, string] => [scope, known[scope] ?? scope])
    return { id, userCode: shownUserCode(userCode), client, request, scopes }
  }

  /** The user approves a request. @returns the client. @throws {ServiceError} `signInRequired`, `requestNotFound` */
  async approve(id: string, principal: Principal | null, actor: Actor): Promise<Client> {
    const { store, config, newEvent } = this.#deps
    const session = this.#session(principal)
    const found = await store.findDevice(id)
    const client = found && (await this.#clients.find(found.request.clientId))
    if (found === undefined || client === undefined) throw new ServiceError(ERRORS.requestNotFound)
    const { scopes } = found.request
    const { authenticatedAt, amr, credentialId: sessionId } = session
    const decision = { scopes, organization: null, sessionId, authenticatedAt, amr }
    const event = newEvent('device.approved', actor, session.cachedUser.user.id, { client: client.id })
    if (!(await store.approveDevice(id, decision, config.sessionIdle, event)))
      throw new ServiceError(ERRORS.requestNotFound)
    return client
  }

  /** The user denies a request. @throws {ServiceError} `signInRequired`, `requestNotFound` */
  async deny(id: string, principal: Principal | null): Promise<void> {
    this.#session(principal)
    if (!(await this.#deps.store.denyDevice(id, this.#deps.clock())))
      throw new ServiceError(ERRORS.requestNotFound)
  }

  /**
   * The device asks for the decision.
   * @throws {ServiceError} `authorizationPending`, `slowDown`, `accessDenied`, `expiredToken`, `invalidGrant`, `invalidOrganization`
   */
  async redeem(
    deviceCode: string,
    { jkt, organization: asked }: Pick<Redemption, 'jkt' | 'organization'>,
    client: StoredClient,
  ): Promise<RedeemedCode> {
    const { store, clock, config, newEvent } = this.#deps
    const found = await store.findDevice(digestOf(deviceCode))
    if (found === undefined || found.request.clientId !== client.id) throw invalidGrant()
    const { id, state, request, decision, userId } = found
    if (found.expiresAt <= clock()) throw new ServiceError(ERRORS.expiredToken)
    if (state === 'denied') throw new ServiceError(ERRORS.accessDenied)
    if (decision === null || userId === null) return this.#pending(id, found.polledAt)
    const organization = await organizationOfToken(this.#deps, userId, decision.organization, asked)
    const { grant, refreshToken } = this.#grants.create(client, request.resource, decision, jkt)
    const actor: Actor = { type: 'client', id: client.id, ip: null }
    const event = newEvent('grant.created', actor, userId, { grant: grant.id, client: client.id })
    if ((await store.redeemDevice(id, grant, decision, config.sessionIdle, event)) !== 'redeemed')
      throw invalidGrant()
    await this.#grants.announce(grant, userId, client)
    const { sessionId, amr } = decision
    return { grant, userId, organization, refreshToken, sessionId, amr, nonce: null }
  }

  /** An early poll is not noted, so a device that waits once is not refused again. */
  async #pending(id: string, polledAt: number): Promise<never> {
    const now = this.#deps.clock()
    const isEarly = now - polledAt < INTERVAL - TOLERANCE
    if (isEarly || !(await this.#deps.store.notePoll(id, polledAt, now)))
      throw new ServiceError(ERRORS.slowDown)
    throw new ServiceError(ERRORS.authorizationPending)
  }

  #session(principal: Principal | null): Principal {
    const session = sessionOf(principal)
    if (session === null) throw new ServiceError('signInRequired')
    return session
  }

  async #countGuess({ credentialId }: Principal, network: string): Promise<void> {
    const counts = await Promise.all([
      this.#sessionGuesses.consume(credentialId),
      this.#networkGuesses.consume(digestKey(network)),
    ])
    const refused = counts.filter(({ allowed }) => !allowed)
    if (refused.length > 0) throw tooManyRequests(Math.max(...refused.map(({ seconds }) => seconds)))
  }
}

const tooManyRequests = (seconds: number): ServiceError =>
  new ServiceError('tooManyRequests', {
    headers: { 'retry-after': String(seconds) },
    sampledAs: 'oauth-device',
  })
