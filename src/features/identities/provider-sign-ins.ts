/** Sign-in with the account of a provider, and linking of one (docs/design.md, "Other providers"). */
import { createHash, randomBytes } from 'node:crypto'
import { ServiceError } from '#base/errors'
import type { AuthResult } from '#core/accounts/auth-result'
import type { NewAccountSignIn, VerifiedSignIn } from '#core/accounts/sign-ins'
import { type Actor, actingUser, newEvent } from '#core/audit-log/event'
import { actingSession, type SessionOwner } from '#core/auth/principal'
import type { SessionClient } from '#core/auth/session'
import type { User } from '#core/users/user'
import { newId, newUser } from '#feature/declaration'
import { DecryptionError, type Keyring } from '#feature/encryption/keyring'
import type { Claims } from './claims.ts'
import { ERRORS, type IdentitiesDeps } from './definitions.ts'
import type { FlowSecrets } from './openid-client.ts'
import { ProviderClient, wrongFlow } from './provider-client.ts'
import type { Provider } from './provider-settings.ts'
import { type Flow, type Identity, MAX_IDENTITIES } from './stored-identities.ts'

/** Milliseconds. */
export const FLOW_LIFETIME = 600_000

/** Connections to one host of a provider. */
const MAX_CONNECTIONS = 10

/** Where a browser goes, and the secret that it or a program keeps for the callback. */
export interface StartedFlow {
  readonly authorizationUrl: string
  readonly flow: string
}

export interface Callback {
  /** The secret of {@link StartedFlow}. */
  readonly flow: string
  /** The whole URL of the callback; absent once it was processed, when only the code is missing. */
  readonly url?: string | undefined
  /** For users with an authenticator app. */
  readonly code?: string | undefined
  /** The session of the request, which links an identity; `null` without one. */
  readonly owner: SessionOwner | null
  /** The locale of a new account, if the provider knows none. */
  readonly locale: string | null
  readonly client: SessionClient
}

export type Finished = { readonly signedIn: AuthResult } | { readonly linked: Identity }

/** What a flow waits for, after its callback. */
export interface PendingFlow {
  readonly provider: Provider
  /** The e-mail at the provider. */
  readonly email: string | null
  /** Whether the provider confirms it. Otherwise anybody may have entered it there. */
  readonly isEmailConfirmed: boolean
  /** Whether the e-mail has an account, to which the identity can be linked; else a code is missing. */
  readonly asksToLink: boolean
  /** Milliseconds since the epoch. */
  readonly begunAt: number
}

const BYTES = 32

const newSecret = (): string => randomBytes(BYTES).toString('base64url')

const digestOf = (secret: string): string => createHash('sha256').update(secret).digest('base64url')

/** The rejection of an identity that the provider has confirmed. */
const changed = (provider: string): ServiceError => {
  const logged = { provider, reason: 'the account, the identity or the flow has changed meanwhile' }
  return new ServiceError(ERRORS.providerRejected, { logged, sampledAs: 'provider' })
}

/** Errors after which the same flow goes on: with a code, or with a link to the account. */
export const CONTINUES: ReadonlySet<string> = new Set([
  'secondFactorRequired',
  'wrongSecondFactor',
  ERRORS.providerEmailTaken.code,
])

export class ProviderSignIns {
  readonly #deps: IdentitiesDeps
  readonly #clients: ReadonlyMap<string, { readonly provider: Provider; readonly client: ProviderClient }>

  constructor(deps: IdentitiesDeps) {
    this.#deps = deps
    const { settings, openHttpClient, clock } = deps
    const { OIDC_PROVIDERS: providers, OIDC_ALLOWED_HOSTS: allowedHosts } = settings
    const http = openHttpClient({ allowedHosts, maxConnections: MAX_CONNECTIONS })
    this.#clients = new Map(
      providers.map(provider => {
        return [provider.id, { provider, client: new ProviderClient({ provider, http, clock }) }]
      }),
    )
  }

  /** In the order of the settings. */
  get providers(): readonly Provider[] {
    return this.#deps.settings.OIDC_PROVIDERS
  }

  /** @throws {ServiceError} `providerNotFound` */
  find(id: string): Provider {
    return this.#find(id).provider
  }

  /** The URL to which a provider sends browsers back. */
  redirectUriOf({ id, responseMode }: Pick<Provider, 'id' | 'responseMode'>): string {
    const path = responseMode === 'form_post' ? '/form' : ''
    return `${this.#deps.config.publicUrl}/account/sign-in/providers/${id}/callback${path}`
  }

  /**
   * Begins a sign-in, or a link.
   * @param owner who links an identity, and has proved who they are; `null` for a sign-in. @param returnTo where the callback leads.
   * @throws {ServiceError} `providerNotFound`, `providerUnavailable`, `signInRequired`, `storeUnavailable`
   */
  async start(id: string, owner: SessionOwner | null, returnTo?: string | null): Promise<StartedFlow> {
    const { store, returnTargets, clock } = this.#deps
    const { provider, client } = this.#find(id)
    const [flow, state] = [newSecret(), newSecret()]
    const secrets: FlowSecrets = { verifier: newSecret(), nonce: newSecret() }
    const redirectUri = this.redirectUriOf(provider)
    const authorizationUrl = await client.authorizationUrl({ ...secrets, redirectUri, state })
    const flowId = digestOf(flow)
    const begun = {
      id: flowId,
      state: digestOf(state),
      provider: id,
      issuer: provider.issuer,
      data: this.#encrypt('identity-flow', flowId, secrets),
      isVerified: false,
      expiresAt: clock() + FLOW_LIFETIME,
    }
    const holder = owner && { userId: owner.cachedUser.user.id, session: actingSession(owner) }
    if ((await store.addFlow(begun, holder)) !== 'added') throw new ServiceError('signInRequired')
    await returnTargets.keep(flow, returnTo, begun.expiresAt)
    return { authorizationUrl, flow }
  }

  /**
   * Processes the callback of a provider: signs in, opens an account, or links an identity.
   * @throws {ServiceError} `providerNotFound`, `wrongProviderFlow`, `providerRejected`, `providerUnavailable`, `providerEmailUnusable`,
   * `providerSignUpOff`, `providerEmailTaken`, `identityTaken`, `tooManyIdentities`, and those of `signIns.complete`
   */
  async finish(id: string, callback: Callback): Promise<Finished> {
    const { store, clock } = this.#deps
    const { provider, client } = this.#find(id)
    const flowId = digestOf(callback.flow)
    const parameters = callback.url === undefined ? null : this.#parametersOf(provider, callback.url)
    const state = parameters?.get('state') ?? null
    const taken = state === null ? undefined : await store.takeFlow(flowId, digestOf(state), id, clock())
    if (taken === undefined || parameters === null || state === null) {
      const flow = await this.#findVerified(provider, flowId, state)
      const claims = this.#decrypt<Claims>('identity-claims', flow)
      return { signedIn: await this.#signIn(provider, flow, async () => claims, callback) }
    }
    if (taken.issuer !== provider.issuer) throw wrongFlow(id, 'the provider has another issuer now')
    const secrets = this.#decrypt<FlowSecrets>('identity-flow', taken)
    const redirectUri = this.redirectUriOf(provider)
    const redeem = () => client.redeem({ ...secrets, redirectUri, state, parameters })
    if (taken.session === null) return { signedIn: await this.#signIn(provider, taken, redeem, callback) }
    const { owner } = callback
    // Another session, or none: the browser of somebody else (CASES L13).
    if (owner === null || owner.credentialId !== taken.session)
      throw wrongFlow(id, 'the session is not the one that has begun the link')
    const actor = actingUser(owner.cachedUser.user.id, callback.client.ip)
    return { linked: await this.#link(provider, await redeem(), owner, { id: flowId, was: 'begun' }, actor) }
  }

  /** What a flow waits for after its callback. @throws {ServiceError} `providerNotFound`, `wrongProviderFlow` */
  async pending(id: string, flow: string): Promise<PendingFlow> {
    const { provider } = this.#find(id)
    const found = await this.#findVerified(provider, digestOf(flow), null)
    const claims = this.#decrypt<Claims>('identity-claims', found)
    const known = await this.#deps.store.findIdentity(claims.issuer, claims.subject)
    return {
      provider,
      email: claims.email,
      isEmailConfirmed: claims.isEmailConfirmed,
      asksToLink: known === undefined && !this.#linksByEmail(provider, claims),
      begunAt: found.expiresAt - FLOW_LIFETIME,
    }
  }

  /**
   * Links the identity of a flow that has found an account with its e-mail, once the user has signed in to that account.
   * @param owner who has proved who they are.
   * @throws {ServiceError} `providerNotFound`, `wrongProviderFlow`, also if the account has another e-mail; `identityTaken`,
   * `tooManyIdentities`, `signInRequired`
   */
  async link(id: string, flow: string, owner: SessionOwner, actor: Actor): Promise<Identity> {
    const { provider } = this.#find(id)
    const found = await this.#findVerified(provider, digestOf(flow), null)
    const claims = this.#decrypt<Claims>('identity-claims', found)
    if (claims.email !== owner.cachedUser.user.email)
      throw wrongFlow(id, 'the account has another e-mail than the identity')
    return this.#link(provider, claims, owner, { id: found.id, was: 'verified' }, actor)
  }

  #find(id: string) {
    const found = this.#clients.get(id)
    if (found === undefined) throw new ServiceError(ERRORS.providerNotFound)
    return found
  }

  /** @returns the parameters of a callback. @throws {ServiceError} `wrongProviderFlow` for another URL: a provider has its own. */
  #parametersOf(provider: Provider, text: string): URLSearchParams {
    const url = URL.canParse(text) ? new URL(text) : null
    if (url === null || url.origin + url.pathname !== this.redirectUriOf(provider))
      throw wrongFlow(provider.id, 'the URL is not that of the callback')
    return url.searchParams
  }

  /** @param state of the callback, if it came again. @throws {ServiceError} `wrongProviderFlow` */
  async #findVerified(provider: Provider, flowId: string, state: string | null): Promise<Flow> {
    const { store, clock } = this.#deps
    const flow = await store.findVerifiedFlow(flowId, provider.id, clock())
    const isSame = flow?.issuer === provider.issuer && (state === null || flow.state === digestOf(state))
    if (flow === undefined || !isSame)
      throw wrongFlow(provider.id, 'no flow has this state, or it was used or has expired')
    return flow
  }

  /** @param obtain asks the provider, or returns what it has said. */
  async #signIn(
    provider: Provider,
    flow: Flow,
    obtain: () => Promise<Claims>,
    callback: Callback,
  ): Promise<AuthResult> {
    const { code, client } = callback
    const { signIns, store, mails } = this.#deps
    const usedFlow = flow.isVerified ? flow.id : null
    let claims: Claims | undefined
    let isLinked = false
    const verify = async (): Promise<VerifiedSignIn | NewAccountSignIn> => {
      claims ??= await obtain()
      const decided = await this.#decide(provider, claims, usedFlow, callback)
      isLinked = 'addition' in decided
      return decided
    }
    try {
      const result = await signIns.complete('identity', { client, code, verify })
      if (isLinked) mails.send('identityLinked', result.user, { provider: provider.name })
      return result
    } catch (error) {
      const continues = error instanceof ServiceError && CONTINUES.has(error.code)
      if (continues && claims !== undefined && !flow.isVerified)
        await store.addFlow(
          { ...flow, data: this.#encrypt('identity-claims', flow.id, claims), isVerified: true },
          null,
        )
      // The store's, which knows no reason.
      const isRejection = error instanceof ServiceError && error.code === ERRORS.providerRejected.code
      throw isRejection && error.logged === undefined ? changed(provider.id) : error
    }
  }

  #linksByEmail({ link }: Provider, { isEmailConfirmed }: Claims): boolean {
    return link === 'verified-email' && isEmailConfirmed
  }

  /** Who signs in. The store compares it again in its transaction. @param usedFlow a flow whose callback was processed before. */
  async #decide(
    provider: Provider,
    claims: Claims,
    usedFlow: string | null,
    { locale, client }: Pick<Callback, 'locale' | 'client'>,
  ): Promise<VerifiedSignIn | NewAccountSignIn> {
    const { findUserByEmail, config } = this.#deps
    const { email, isEmailConfirmed } = claims
    const known = await this.#decideOnKnown(provider, claims, usedFlow)
    if (known !== undefined) return known
    // Before the address is looked up: with REQUIRE_EMAIL_VERIFICATION nobody learns whether a stranger's address has an account.
    if (email === null || (config.requireEmailVerification && !isEmailConfirmed))
      throw new ServiceError(ERRORS.providerEmailUnusable)
    const user = await findUserByEmail(email)
    if (user !== undefined) {
      // Again: another callback of the identity may have opened the account between the look-ups.
      const opened = await this.#decideOnKnown(provider, claims, usedFlow)
      return opened ?? this.#decideOnTaken(provider, claims, user, usedFlow)
    }
    if (!provider.signUp) throw new ServiceError(ERRORS.providerSignUpOff)
    // The account that a code or a link was missing for is gone.
    if (usedFlow !== null) throw wrongFlow(provider.id, 'the account is gone')
    return this.#newAccount(provider, { ...claims, email, locale: claims.locale ?? locale }, client)
  }

  /** @returns `undefined` for an identity that no account has. */
  async #decideOnKnown(
    { id: provider }: Provider,
    { issuer, subject, email, isMultiFactor }: Claims,
    usedFlow: string | null,
  ): Promise<VerifiedSignIn | undefined> {
    const { store, findUser } = this.#deps
    const known = await store.findIdentity(issuer, subject)
    if (known === undefined) return undefined
    const user = await findUser(known.userId)
    if (user === undefined) throw changed(provider)
    const use = { id: known.id, provider, email }
    return { user, proof: ['useIdentity', use, usedFlow], details: { identity: known.id }, isMultiFactor }
  }

  /** Decides about an identity whose address has an account, which is never linked silently. @throws {ServiceError} `providerEmailTaken`, `tooManyIdentities` */
  async #decideOnTaken(
    provider: Provider,
    claims: Claims,
    user: User,
    usedFlow: string | null,
  ): Promise<VerifiedSignIn> {
    if (!this.#linksByEmail(provider, claims)) throw new ServiceError(ERRORS.providerEmailTaken)
    // Those of an account that was never confirmed are removed.
    if (user.emailVerified && (await this.#deps.store.listIdentities(user.id)).length === MAX_IDENTITIES)
      throw new ServiceError(ERRORS.tooManyIdentities)
    const identity = this.#newIdentity(provider, claims, true)
    return {
      user,
      proof: ['useFlow', usedFlow],
      addition: ['addIdentity', identity],
      // An account that was never confirmed is emptied: a stranger may have opened it.
      provesMailbox: true,
      details: { identity: identity.id },
      isMultiFactor: claims.isMultiFactor,
    }
  }

  #newAccount(
    provider: Provider,
    { email, firstName, lastName, locale, isEmailConfirmed, ...claims }: Claims & { readonly email: string },
    client: SessionClient,
  ): NewAccountSignIn {
    const { store, clock, deferred, emailAddresses } = this.#deps
    const given = { email, emailVerified: isEmailConfirmed, firstName, lastName, locale }
    const user = newUser(given, null, clock())
    const identity = this.#newIdentity(provider, { ...claims, email }, true)
    return {
      newUser: user,
      isMultiFactor: claims.isMultiFactor,
      async open(session) {
        const actor = actingUser(user.id, client.ip)
        const event = newEvent('user.signed-up', actor, user.id, user.createdAt)
        if ((await store.openAccount(user, identity, session, event)) === 'taken') return false
        deferred.run(() => emailAddresses.sendVerification(user, session.id, actor, null))
        return true
      },
    }
  }

  #newIdentity(
    { id: provider }: Provider,
    { issuer, subject, email }: Pick<Claims, 'issuer' | 'subject' | 'email'>,
    isUsed: boolean,
  ): Identity {
    const now = this.#deps.clock()
    return {
      id: newId(now),
      provider,
      issuer,
      subject,
      email,
      linkedAt: now,
      lastUsedAt: isUsed ? now : null,
    }
  }

  async #link(
    provider: Provider,
    claims: Claims,
    owner: SessionOwner,
    flow: { readonly id: string; readonly was: 'begun' | 'verified' },
    actor: Actor,
  ): Promise<Identity> {
    const { store, newEvent: newOwnEvent, mails } = this.#deps
    const { user } = owner.cachedUser
    const identity = this.#newIdentity(provider, claims, false)
    const details = { identity: identity.id, provider: provider.id }
    const event = newOwnEvent('identity.linked', actor, user.id, details)
    switch (await store.linkIdentity(identity, flow, actingSession(owner), event)) {
      case 'done':
        mails.send('identityLinked', user, { provider: provider.name })
        return identity
      case 'taken':
        throw new ServiceError(ERRORS.identityTaken)
      case 'tooMany':
        throw new ServiceError(ERRORS.tooManyIdentities)
      case 'flowUsed':
        throw wrongFlow(provider.id, 'the flow was used')
      default:
        throw new ServiceError('signInRequired')
    }
  }

  #keyring(): Keyring {
    const keyring = this.#deps.keyring()
    if (keyring === null) throw new Error('OIDC_PROVIDERS needs ENCRYPTION_KEY')
    return keyring
  }

  #encrypt(purpose: string, flowId: string, data: object): string {
    return this.#keyring().encrypt(JSON.stringify(data), { purpose, owner: flowId })
  }

  /** @throws {ServiceError} `wrongProviderFlow` if the key was replaced meanwhile */
  #decrypt<Data>(purpose: string, { id: owner, provider, data }: Flow): Data {
    try {
      return JSON.parse(this.#keyring().decrypt(data, { purpose, owner }).text)
    } catch (error) {
      if (error instanceof DecryptionError) throw wrongFlow(provider, 'ENCRYPTION_KEY is another one')
      throw error
    }
  }
}
