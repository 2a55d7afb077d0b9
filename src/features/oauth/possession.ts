/**
 * Proofs of possession at the token endpoint (DPoP, RFC 9449 §5): tokens are bound to the key of the request. A proof is used once, on any
 * instance.
 */
import { NONCE_HEADER, PROOF_MEMORY, Proofs } from '#core/auth/dpop'
import { ServiceError } from '#feature/declaration'
import type { ClientTokens } from '#feature/deps'
import { ERRORS, type OAuthDeps } from './definitions.ts'

export interface PresentedProof {
  /** The header of the request; `undefined`: it has no proof. */
  readonly text: string | undefined
  /** Of the endpoint, below PUBLIC_URL. */
  readonly path: string
}

export class Possession {
  readonly #deps: OAuthDeps
  readonly #proofs: Proofs

  constructor(deps: OAuthDeps, { seal }: ClientTokens) {
    this.#deps = deps
    this.#proofs = new Proofs({ seal, clock: deps.clock })
  }

  /**
   * The thumbprint of the key whose possession a request proves; `null`: it has no proof.
   * @throws {ServiceError} `invalidProof`, `proofNonceRequired`
   */
  async keyOf({ text, path }: PresentedProof): Promise<string | null> {
    if (text === undefined) return null
    const { store, clock, config } = this.#deps
    const proof = this.#proofs.verify(text, {
      method: 'POST',
      urls: [config.publicUrl + path],
      token: null,
    })
    if (proof === 'nonce')
      throw new ServiceError(ERRORS.proofNonceRequired, {
        headers: { [NONCE_HEADER]: this.#proofs.newNonce() },
      })
    if (proof === 'invalid' || !(await store.useId(proof.id, clock() + PROOF_MEMORY)))
      throw new ServiceError(ERRORS.invalidProof, { sampledAs: 'oauth-proof' })
    return proof.jkt
  }
}
