/**
 * The networks from which a user has signed in: attempts there wait apart from those of strangers, who otherwise could keep the owner out.
 * The store notes the network of each session, see migration `0009_known_networks`.
 */
import { clientNetwork, digestKey } from './limits.ts'

/** Milliseconds after the last sign-in. */
export const KNOWN_FOR = 90 * 86_400_000

/** With the user's id, so that rows of two users do not show that they share a network. @param ip in canonical form. */
export const networkDigest = (userId: string, ip: string | null): string | null =>
  ip === null ? null : digestKey(`${userId} ${clientNetwork(ip)}`)

export interface KnownNetworksDeps {
  readonly users: { findId(email: string): Promise<string | undefined> | string | undefined }
  readonly sessions: { isKnownNetwork(digest: string, since: number): Promise<boolean> | boolean }
  readonly clock: () => number
}

export class KnownNetworks {
  readonly #deps: KnownNetworksDeps

  constructor(deps: KnownNetworksDeps) {
    this.#deps = deps
  }

  /** The digest of a network of the user; else `null`. Takes the same two look-ups whether or not there is such an account. */
  async find(
    user: { readonly userId: string } | { readonly email: string },
    ip: string | null,
  ): Promise<string | null> {
    const { users, sessions, clock } = this.#deps
    const userId = 'userId' in user ? user.userId : await users.findId(user.email)
    const digest = networkDigest(userId ?? '', ip)
    if (digest === null) return null
    return (await sessions.isKnownNetwork(digest, clock() - KNOWN_FOR)) ? digest : null
  }
}
