/** Accounts of users at other providers (docs/design.md, "Other providers"). `provider-sign-ins.ts` signs in with them. */
import { Type } from '@sinclair/typebox'
import { ServiceError } from '#base/errors'
import type { Actor } from '#core/audit-log/event'
import { actingSession, type SessionOwner } from '#core/auth/principal'
import { toIso, toIsoOrNull } from '#core/users/serializers'
import type { User } from '#core/users/user'
import { defineFeature } from '#feature/declaration'
import { BulkIdentities } from './bulk-identities.ts'
import { definitions, ERRORS, type IdentitiesDeps } from './definitions.ts'
import type { Provider } from './provider-settings.ts'
import { ProviderSignIns } from './provider-sign-ins.ts'
import type { Identity } from './stored-identities.ts'

type Deps = Pick<IdentitiesDeps, 'store' | 'signIns' | 'newEvent' | 'mails' | 'findUser' | 'settings'>

export class Identities {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** The identities of a user, newest first. */
  async list(userId: string): Promise<readonly Identity[]> {
    return this.#deps.store.listIdentities(userId)
  }

  /** The identities of a user, newest first, for an administrator. @throws {ServiceError} `userNotFound` */
  async listOf(userId: string): Promise<readonly Identity[]> {
    await this.#requireUser(userId)
    return this.list(userId)
  }

  /**
   * Unlinks an identity, and mails the user.
   * @param owner who has proved their identity.
   * @throws {ServiceError} `identityNotFound`, `lastSignInMethod`, `signInRequired`
   */
  async remove(owner: SessionOwner, id: string, endsOthers: boolean, actor: Actor): Promise<void> {
    await this.#remove(owner.cachedUser.user, id, { session: actingSession(owner), endsOthers }, actor)
  }

  /** Unlinks an identity for an administrator, and mails the user. @throws {ServiceError} `userNotFound`, `identityNotFound`, `lastSignInMethod` */
  async removeOf(userId: string, id: string, actor: Actor): Promise<void> {
    await this.#remove(await this.#requireUser(userId), id, null, actor)
  }

  async #remove(
    user: User,
    id: string,
    change: Parameters<Deps['signIns']['remove']>[1],
    actor: Actor,
  ): Promise<void> {
    const { store, signIns, newEvent, mails, settings } = this.#deps
    const found = (await store.listIdentities(user.id)).find(identity => identity.id === id)
    const event = newEvent('identity.removed', actor, user.id, { identity: id })
    if ((await signIns.remove({ table: 'identities', id }, change, event)) === 'notFound')
      throw new ServiceError(ERRORS.identityNotFound)
    const provider = found?.provider ?? ''
    const name = settings.OIDC_PROVIDERS.find(each => each.id === provider)?.name ?? provider
    mails.send('identityRemoved', user, { provider: name })
  }

  async #requireUser(id: string): Promise<User> {
    const user = await this.#deps.findUser(id)
    if (user === undefined) throw new ServiceError('userNotFound')
    return user
  }
}

export const serializeIdentity = ({ linkedAt, lastUsedAt, ...identity }: Identity) => ({
  ...identity,
  linkedAt: toIso(linkedAt),
  lastUsedAt: toIsoOrNull(lastUsedAt),
})

const listMethods = async ({ store, settings }: Pick<IdentitiesDeps, 'store' | 'settings'>, { id }: User) => {
  const issuers = settings.OIDC_PROVIDERS.map(({ issuer }) => issuer)
  const found = (await store.listIdentities(id)).filter(({ issuer }) => issuers.includes(issuer))
  return found.map(identity => ({
    method: 'identity',
    id: identity.id,
    label: [identity.provider, identity.email].filter(Boolean).join(' '),
    addedAt: identity.linkedAt,
    lastUsedAt: identity.lastUsedAt,
    isFactor: false,
  }))
}

/** The URLs in the settings that the service itself requests. */
const requestedUrls = ({ issuer, endpoints }: Provider): readonly URL[] =>
  (endpoints === null ? [issuer] : [endpoints.token, endpoints.userInfo, endpoints.emails ?? []])
    .flat()
    .map(url => new URL(url))

export const identities = defineFeature({
  ...definitions,
  routes: new URL('routes/', import.meta.url),
  pages: () => import('./pages.ts'),
  console: () => import('./console-pages.ts'),
  listMethods,
  bulkFactor: {
    credentials: () => import('./credential-schemas.ts'),
    create: deps => new BulkIdentities(deps),
  },
  checkSettings: (
    { OIDC_PROVIDERS: providers = [], OIDC_ALLOWED_HOSTS: allowedHosts = [] },
    { encrypts },
  ) => [
    ...(providers.length > 0 && !encrypts
      ? ['ENCRYPTION_KEY is needed with PostgreSQL and OIDC_PROVIDERS: every instance has to read the flows']
      : []),
    ...providers.flatMap(provider => {
      const insecure = requestedUrls(provider).filter(({ protocol }) => protocol === 'http:')
      const hosts = new Set(insecure.map(({ hostname, port }) => `${hostname}:${port || 80}`))
      return [...hosts]
        .filter(host => !allowedHosts.includes(host))
        .map(host => `OIDC_ALLOWED_HOSTS must have ${host}: the provider ${provider.id} has plain http there`)
    }),
  ],
  signInMethods: {
    /** `fed` is no value of RFC 8176, which has none for this: how the provider authenticated the user is not known. */
    identity: {
      amr: ['fed'],
      rejection: ERRORS.providerRejected,
      needsSecondFactor: true,
      isEnabled: ({ OIDC_PROVIDERS: providers }) => providers.length > 0,
      rows: ({ OIDC_PROVIDERS: providers }) => ({
        column: 'issuer',
        values: providers.map(({ issuer }) => issuer),
      }),
      details: {
        identity: Type.Optional(Type.String({ description: 'The id of the identity, if one signed in' })),
      },
    },
  },
  services: {
    identities: deps => new Identities(deps),
    providerSignIns: deps => new ProviderSignIns(deps),
  },
})
