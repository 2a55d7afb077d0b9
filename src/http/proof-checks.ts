/** Proofs of possession at the service's own routes (RFC 9449 §7): each request with a bound token has one, which is used once. */
import type { FastifyRequest } from 'fastify'
import { ServiceError } from '#base/errors'
import { BOUND_PREFIX, boundKeyIn } from '#core/auth/access-tokens'
import { NONCE_HEADER, PROOF_ALGORITHMS, PROOF_HEADER, type Proofs, UsedProofs } from '#core/auth/dpop'

/** The error of a request with a bound token. @param error of RFC 9449 §7.1. */
export const boundTokenError = (
  error: string,
  headers: Readonly<Record<string, string>> = {},
): ServiceError =>
  new ServiceError('signInRequired', {
    headers: {
      'www-authenticate': `DPoP error="${error}", algs="${PROOF_ALGORITHMS.join(' ')}"`,
      ...headers,
    },
    sampledAs: 'access-token',
  })

export class ProofChecks {
  readonly #proofs: Proofs
  readonly #used: UsedProofs
  readonly #publicUrl: string
  /** Requests that are authenticated again, because their user has changed meanwhile, have one proof. */
  readonly #checked = new WeakSet<FastifyRequest>()

  constructor({
    proofs,
    clock,
    publicUrl,
  }: {
    readonly proofs: Proofs
    readonly clock: () => number
    readonly publicUrl: string
  }) {
    this.#proofs = proofs
    this.#used = new UsedProofs(clock)
    this.#publicUrl = publicUrl
  }

  /** @param accessToken a valid one, with its prefix. @throws {ServiceError} `signInRequired` */
  check(request: FastifyRequest, accessToken: string): void {
    if (this.#checked.has(request)) return
    const { method, headers } = request
    const text = headers[PROOF_HEADER]
    const token = accessToken.slice(BOUND_PREFIX.length)
    const target = { method, urls: this.#urlsOf(request), token }
    const proof = typeof text === 'string' ? this.#proofs.verify(text, target) : 'invalid'
    if (proof === 'nonce')
      throw boundTokenError('use_dpop_nonce', { [NONCE_HEADER]: this.#proofs.newNonce() })
    if (proof === 'invalid' || proof.jkt !== boundKeyIn(accessToken) || !this.#used.use(proof.id))
      throw boundTokenError('invalid_dpop_proof')
    this.#checked.add(request)
  }

  /** With the path of PUBLIC_URL, which a proxy may have removed, and without. */
  #urlsOf({ url }: FastifyRequest): readonly string[] {
    return [this.#publicUrl + url, new URL(this.#publicUrl).origin + url]
  }
}
