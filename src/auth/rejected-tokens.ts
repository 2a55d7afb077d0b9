import { copyString } from './token-cache.ts'

/** How long (UTF-16 units) one may be that is remembered: 20,000 of them are some 10 MB at most. */
const MAX_LENGTH = 500

/** How many are remembered for each token that may be: together they take a tenth of the tokens' memory. */
const SHARE = 1 / 5

/**
 * Tokens that no key of this process has signed, and so never will have: clients come with theirs again and again, long
 * after the secret was changed. What is remembered costs no signature (6 µs) and no error of the library's.
 */
export class RejectedTokens {
  readonly #capacity: number
  readonly #tokens = new Set<string>()

  /** @param tokens how many tokens may be remembered. */
  constructor(tokens: number) {
    this.#capacity = tokens * SHARE
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
