/** Challenges: what a passkey signs, once. The store has their digests. */
import { createHash, randomBytes } from 'node:crypto'
import { ServiceError } from '#base/errors'
import { actingSession, type SessionOwner } from '#core/auth/principal'
import { challengeIn, type NewCredential, type PresentedCredential } from './credentials.ts'
import { ERRORS } from './definitions.ts'
import type { RelyingParty } from './relying-party.ts'
import type { PasskeyStore } from './stored-passkeys.ts'
import type { Ceremony } from './web-authn.ts'

/** Milliseconds. */
const LIFETIME = 300_000
const BYTES = 32

export interface ChallengesDeps {
  readonly store: Pick<PasskeyStore, 'addChallenge' | 'takeChallenge'>
  /** `null` if the service has no host name. */
  readonly party: RelyingParty | null
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}

/** The id of a challenge in the store: its digest. */
export const challengeId = ({ challenge }: Pick<Ceremony, 'challenge'>): string =>
  createHash('sha256').update(challenge).digest('base64url')

export class Challenges {
  readonly #deps: ChallengesDeps

  constructor(deps: ChallengesDeps) {
    this.#deps = deps
  }

  /** @param owner who adds a passkey; `null` for a sign-in. @throws {ServiceError} `passkeysUnavailable`, `signInRequired` */
  async begin(owner: SessionOwner | null): Promise<Ceremony> {
    const ceremony = this.#ceremony(randomBytes(BYTES).toString('base64url'))
    const { store, clock } = this.#deps
    const holder = owner && { userId: owner.cachedUser.user.id, session: actingSession(owner) }
    const outcome = await store.addChallenge(challengeId(ceremony), holder, clock() + LIFETIME)
    if (outcome !== 'added') throw new ServiceError('signInRequired')
    return ceremony
  }

  /**
   * Uses up the challenge that a credential signs. Nothing has verified the signature so far.
   * @param owner who adds a passkey; `null` for a sign-in.
   * @returns `null` if there is no such challenge: it has expired, was used, or is of another session.
   * @throws {ServiceError} `passkeysUnavailable`
   */
  async take(
    credential: NewCredential | PresentedCredential,
    owner: SessionOwner | null,
  ): Promise<Ceremony | null> {
    const challenge = challengeIn(credential)
    if (challenge === null) return null
    const ceremony = this.#ceremony(challenge)
    const { store, clock } = this.#deps
    const session = owner?.credentialId ?? null
    return (await store.takeChallenge(challengeId(ceremony), session, clock())) ? ceremony : null
  }

  #ceremony(challenge: string): Ceremony {
    const { party } = this.#deps
    if (party === null) throw new ServiceError(ERRORS.passkeysUnavailable)
    return { party, challenge, timeout: LIFETIME }
  }
}
