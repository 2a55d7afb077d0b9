/** Passkeys of users (docs/design.md, "Passkeys"). `passkey-sign-ins.ts` signs in with them. */
import { Type } from '@sinclair/typebox'
import { ServiceError } from '#base/errors'
import { assertDone, type FactorChange } from '#core/accounts/factor-changes'
import { actingSession, type SessionOwner } from '#core/auth/principal'
import { toIso, toIsoOrNull } from '#core/users/serializers'
import type { User } from '#core/users/user'
import { defineFeature, newId } from '#feature/declaration'
import { BulkPasskeys } from './bulk-passkeys.ts'
import { Challenges, challengeId } from './challenges.ts'
import type { NewCredential } from './credentials.ts'
import { definitions, ERRORS, type PasskeysDeps } from './definitions.ts'
import { PasskeySignIns } from './passkey-sign-ins.ts'
import { relyingPartyOf } from './relying-party.ts'
import { MAX_PASSKEYS, type Passkey } from './stored-passkeys.ts'
import type { Ceremony, CreationOptions, VerifiedPasskey } from './web-authn.ts'

const verified = async (ceremony: Ceremony, credential: NewCredential): Promise<VerifiedPasskey> => {
  const { verifyNewCredential } = await import('./web-authn.ts')
  try {
    return await verifyNewCredential(ceremony, credential)
  } catch {
    // Errors of many kinds, caused by the client: not logged as failures.
    throw new ServiceError(ERRORS.wrongNewPasskey)
  }
}

export class Passkeys {
  readonly #deps: PasskeysDeps
  readonly #challenges: Challenges

  constructor(deps: PasskeysDeps, challenges: Challenges) {
    this.#deps = deps
    this.#challenges = challenges
  }

  /** The passkeys of a user, newest first. */
  async list(userId: string): Promise<readonly Passkey[]> {
    return this.#deps.store.listPasskeys(userId)
  }

  /**
   * Begins a registration.
   * @param owner who has proved their identity.
   * @returns options for the browser. The passkey has to be added within five minutes, in the same session.
   * @throws {ServiceError} `passkeysUnavailable`, `tooManyPasskeys`, `signInRequired`
   */
  async creationOptions(owner: SessionOwner): Promise<CreationOptions> {
    const { cachedUser } = owner
    const passkeys = await this.#deps.store.listPasskeys(cachedUser.user.id)
    if (passkeys.length >= MAX_PASSKEYS) throw new ServiceError(ERRORS.tooManyPasskeys)
    const ceremony = await this.#challenges.begin(owner)
    const { creationOptions } = await import('./web-authn.ts')
    return creationOptions(ceremony, cachedUser.user, passkeys)
  }

  /**
   * Adds the passkey that a browser has made with the options, and mails the user.
   * @throws {ServiceError} `wrongNewPasskey`, `passkeyExists`, `tooManyPasskeys`, `passkeysUnavailable`, `signInRequired`
   */
  async add(
    owner: SessionOwner,
    { credential, name }: { readonly credential: NewCredential; readonly name: string | null },
    { endsOthers, actor }: FactorChange,
  ): Promise<Passkey> {
    const { store, newEvent, mails, clock } = this.#deps
    const { cachedUser } = owner
    const ceremony = await this.#challenges.take(credential, owner)
    if (ceremony === null) throw new ServiceError(ERRORS.wrongNewPasskey)
    const { webAuthnId, publicKey, counter, ...made } = await verified(ceremony, credential)
    const { user } = cachedUser
    const { id: userId } = user
    const now = clock()
    const passkey = { id: newId(now), webAuthnId, name, ...made, createdAt: now, lastUsedAt: null }
    const event = newEvent('passkey.added', actor, userId, { passkey: passkey.id })
    const outcome = await store.addPasskey(
      { ...passkey, publicKey, counter },
      challengeId(ceremony),
      { session: actingSession(owner), endsOthers },
      event,
    )
    assertDone(outcome, ERRORS)
    mails.send('passkeyAdded', user)
    return passkey
  }

  /**
   * Removes a passkey, and mails the user.
   * @param owner who has proved their identity.
   * @throws {ServiceError} `passkeyNotFound`, `lastSignInMethod`, `signInRequired`
   */
  async remove(owner: SessionOwner, id: string, { endsOthers, actor }: FactorChange): Promise<void> {
    const { signIns, newEvent, mails } = this.#deps
    const { user } = owner.cachedUser
    const { id: userId } = user
    const event = newEvent('passkey.removed', actor, userId, { passkey: id })
    const change = { session: actingSession(owner), endsOthers }
    if ((await signIns.remove({ table: 'passkeys', id }, change, event)) === 'notFound')
      throw new ServiceError(ERRORS.passkeyNotFound)
    mails.send('passkeyRemoved', user)
  }
}

export const serializePasskey = ({ id, name, transports, backedUp, createdAt, lastUsedAt }: Passkey) => ({
  id,
  name,
  transports,
  backedUp,
  createdAt: toIso(createdAt),
  lastUsedAt: toIsoOrNull(lastUsedAt),
})

const listMethods = async ({ store }: Pick<PasskeysDeps, 'store'>, { id, factors }: User) => {
  const found = factors.includes('passkey') ? await store.listPasskeys(id) : []
  return found.map(({ id, name, createdAt, lastUsedAt }) => ({
    method: 'passkey',
    id,
    label: name,
    addedAt: createdAt,
    lastUsedAt,
    isFactor: true,
  }))
}

const challengesOf = ({ store, config, allowedOrigins, nativeOrigins, clock }: PasskeysDeps) =>
  new Challenges({ store, party: relyingPartyOf({ ...config, allowedOrigins, nativeOrigins }), clock })

export const passkeys = defineFeature({
  ...definitions,
  routes: new URL('routes/', import.meta.url),
  pages: () => import('./pages.ts'),
  listMethods,
  bulkFactor: {
    credentials: () => import('./credential-schemas.ts'),
    create: deps => new BulkPasskeys(deps),
  },
  signInMethods: {
    /** The authenticator has verified the user, by a PIN or biometrics: the passkey counts as two factors. */
    passkey: {
      amr: ['pop', 'user', 'mfa'],
      rejection: ERRORS.wrongPasskey,
      needsSecondFactor: false,
      details: {
        passkey: Type.Optional(Type.String({ description: 'The id of the passkey, if one signed in' })),
      },
    },
  },
  services: {
    passkeys: deps => new Passkeys(deps, challengesOf(deps)),
    passkeySignIns: deps => new PasskeySignIns(deps, challengesOf(deps)),
  },
})
