/** The cache of tokens with an invalid signature or form. */
import { MAX_TOKEN_LENGTH } from './access-tokens.ts'
import { copyString } from './token-record.ts'

const REJECTED_SHARE = 1 / 5

/**
 * Characters (UTF-16 units) of rejected tokens per cached token. Together they take a tenth of the token cache's memory.
 */
const CHARACTERS = 100

/**
 * Tokens that no key of this process has signed. They stay invalid, and clients keep sending them long after the key was changed. A
 * cached one saves the verification and the error that the library throws.
 */
export class RejectedTokens {
  readonly #capacity: number
  readonly #characterCapacity: number
  readonly #tokens = new Set<string>()
  #characters = 0

  constructor(tokenCapacity: number) {
    this.#capacity = tokenCapacity * REJECTED_SHARE
    this.#characterCapacity = tokenCapacity * CHARACTERS
  }

  has(token: string): boolean {
    return this.#tokens.has(token)
  }

  add(token: string): void {
    // Longer ones are rejected without verification.
    if (token.length > MAX_TOKEN_LENGTH) return
    if (this.#tokens.size >= this.#capacity || this.#characters >= this.#characterCapacity) {
      this.#tokens.clear()
      this.#characters = 0
    }
    this.#tokens.add(copyString(token))
    this.#characters += token.length
  }
}
