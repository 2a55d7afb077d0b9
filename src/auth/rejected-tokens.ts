/** The cache of tokens with an invalid signature or form. */
import { copyString } from './copy-string.ts'

/** Longest token that is cached (UTF-16 units): 20,000 of them take about 10 MB at most. */
const MAX_LENGTH = 500

/** Rejected tokens per cached token. Together they take a tenth of the token cache's memory. */
const REJECTED_SHARE = 1 / 5

/**
 * Tokens that no key of this process has signed. They stay invalid, and clients keep sending them long after the secret was
 * changed. A cached one saves the verification (6 µs) and the error that the library throws.
 */
export class RejectedTokens {
  readonly #capacity: number
  readonly #tokens = new Set<string>()

  /** @param tokenCapacity the capacity of the token cache. */
  constructor(tokenCapacity: number) {
    this.#capacity = tokenCapacity * REJECTED_SHARE
  }

  has(token: string): boolean {
    return this.#tokens.has(token)
  }

  add(token: string): void {
    if (token.length > MAX_LENGTH) return
    if (this.#tokens.size >= this.#capacity) this.#tokens.clear()
    this.#tokens.add(copyString(token))
  }
}
