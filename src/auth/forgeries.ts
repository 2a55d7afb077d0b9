import { ownText } from './identity-cache.ts'

/** How many are remembered, and how long (UTF-16 units) one of them may be: some 10 MB at most. */
const CAPACITY = 20_000
const MAX_LENGTH = 500

/**
 * Tokens that no key of this process has signed, and so never will have: clients come with theirs again and again, long
 * after the secret was changed. What is remembered costs no signature (6 µs) and no error of the library's.
 */
export class Forgeries {
  readonly #tokens = new Set<string>()

  has(token: string): boolean {
    return this.#tokens.has(token)
  }

  add(token: string): void {
    if (token.length > MAX_LENGTH) return
    if (this.#tokens.size >= CAPACITY) this.#tokens.clear()
    this.#tokens.add(ownText(token))
  }
}
