/** Passkeys of users (DESIGN §22). `passkey-sign-ins.ts` signs in with them. */
import { assertDone, type FactorChange } from '../accounts/factor-changes.ts'
import type { Mails } from '../accounts/mails.ts'
import type { SignIns } from '../accounts/sign-ins.ts'
import { newEvent } from '../audit-log/event.ts'
import type { Principal, SessionOwner } from '../auth/principal.ts'
import { ServiceError } from '../errors.ts'
import { type DepsOf, defineFeature } from '../feature.ts'
import { newId } from '../ids.ts'
import { needsCode } from '../users/factors.ts'
import { toIso, toIsoOrNull } from '../users/serializers.ts'
import type { User } from '../users/user.ts'
import type { Challenges } from './challenges.ts'
import { MAX_PASSKEYS, type NewCredential } from './credentials.ts'
import { type Passkey, type PasskeyStore, storedPasskeys } from './stored-passkeys.ts'
import type { Ceremony, CreationOptions, VerifiedPasskey } from './web-authn.ts'

/** The user who adds a passkey, in a session. */
type PasskeyOwner = SessionOwner & Pick<Principal, 'authenticatedAt'>

export interface PasskeysDeps {
  readonly store: PasskeyStore
  readonly challenges: Challenges
  readonly signIns: Pick<SignIns, 'remove'>
  readonly mails: Mails
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}

const verified = async (ceremony: Ceremony, credential: NewCredential): Promise<VerifiedPasskey> => {
  const { verifyNewCredential } = await import('./web-authn.ts')
  try {
    return await verifyNewCredential(ceremony, credential)
  } catch {
    // Of many kinds, and caused by the client: not logged as failures.
    throw new ServiceError('wrongNewPasskey')
  }
}

/**
 * What a challenge for a new passkey belongs to: a session, its proof of identity, and whether a proof needs a code. The proof ends when an
 * administrator removes the user's factors, or an authenticator app is added, and a challenge from before must not add a passkey. A session
 * without a proof may have sent the password alone for the challenge.
 */
const holderOf = ({ cachedUser, credentialId, authenticatedAt }: PasskeyOwner): string =>
  [
    credentialId,
    ...(authenticatedAt === 0 ? ['without a proof'] : []),
    ...(needsCode(cachedUser.user) ? ['with an app'] : []),
  ].join(' ')

export class Passkeys {
  readonly #deps: PasskeysDeps

  constructor(deps: PasskeysDeps) {
    this.#deps = deps
  }

  /** The passkeys of a user, newest first. */
  async list(userId: string): Promise<readonly Passkey[]> {
    return this.#deps.store.listPasskeys(userId)
  }

  /**
   * Begins a registration.
   * @param owner who has proved their identity.
   * @returns options for the browser. The passkey has to be added within five minutes, in the same session.
   * @throws {ServiceError} `passkeysUnavailable`, `tooManyPasskeys`
   */
  async creationOptions(owner: PasskeyOwner): Promise<CreationOptions> {
    const { store, challenges } = this.#deps
    const { cachedUser } = owner
    const passkeys = await store.listPasskeys(cachedUser.user.id)
    if (passkeys.length >= MAX_PASSKEYS) throw new ServiceError('tooManyPasskeys')
    const ceremony = await challenges.begin(holderOf(owner))
    const { creationOptions } = await import('./web-authn.ts')
    return creationOptions(ceremony, cachedUser.user, passkeys)
  }

  /**
   * Adds the passkey that a browser has made with the options, and mails the user.
   * @throws {ServiceError} `wrongNewPasskey`, `passkeyExists`, `tooManyPasskeys`, `passkeysUnavailable`, `signInRequired`
   */
  async add(
    owner: PasskeyOwner,
    { credential, name }: { readonly credential: NewCredential; readonly name: string | null },
    { endsOthers, actor }: FactorChange,
  ): Promise<Passkey> {
    const { store, challenges, mails, clock } = this.#deps
    const { cachedUser, credentialId: sessionId } = owner
    const ceremony = await challenges.take(credential, holderOf(owner))
    if (ceremony === null) throw new ServiceError('wrongNewPasskey')
    const { credentialId, publicKey, counter, ...made } = await verified(ceremony, credential)
    const { id: userId, email } = cachedUser.user
    const now = clock()
    const passkey = { id: newId(now), credentialId, name, ...made, createdAt: now, lastUsedAt: null }
    const event = newEvent('passkey.added', actor, userId, now, { passkey: passkey.id })
    assertDone(await store.addPasskey({ ...passkey, publicKey, counter }, { sessionId, endsOthers }, event))
    mails.send('passkeyAdded', email)
    return passkey
  }

  /**
   * Removes a passkey, and mails the user.
   * @param owner who has proved their identity.
   * @throws {ServiceError} `passkeyNotFound`, `lastSignInMethod`, `signInRequired`
   */
  async remove(
    { cachedUser, credentialId: sessionId }: SessionOwner,
    id: string,
    { endsOthers, actor }: FactorChange,
  ): Promise<void> {
    const { signIns, mails, clock } = this.#deps
    const { id: userId, email } = cachedUser.user
    const event = newEvent('passkey.removed', actor, userId, clock(), { passkey: id })
    const row = { table: 'passkeys', id, amr: 'pop' }
    if ((await signIns.remove(row, { sessionId, endsOthers }, event)) === 'notFound')
      throw new ServiceError('passkeyNotFound')
    mails.send('passkeyRemoved', email)
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

const listMethods = async ({ store }: DepsOf<typeof storedPasskeys>, { id, factors }: User) => {
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

export const passkeys = defineFeature({
  ...storedPasskeys,
  listMethods,
  signInMethods: {
    /** The authenticator has verified the user, by a PIN or biometrics: the passkey counts as two factors. */
    passkey: { amr: ['pop', 'user', 'mfa'], rejection: 'wrongPasskey', needsSecondFactor: false },
  },
})
