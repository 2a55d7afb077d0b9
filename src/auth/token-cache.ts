/** How much the caches of tokens may hold, so that a small heap does not end the process. */
import { getHeapStatistics } from 'node:v8'
import type { CachedUser, Principal } from './principal.ts'
import type { UserCache } from './user-cache.ts'

const MIB = 2 ** 20

/** V8 counts its young generation in: three semi-spaces of 64 MiB. Whatever outlives two collections is not in it. */
const YOUNG_GENERATION = 192 * MIB

/** What the service needs without any cache, and while it collects garbage. */
const SERVICE = 48 * MIB

/** The part of the rest that remembered tokens may take; requests and last requests that are not written yet need the other. */
const SHARE = 1 / 2

/** Bytes of a remembered token with its session and its user (`npm run bench -- memory`). */
const TOKEN = 1_300

const MIN_TOKENS = 1_000
const MAX_TOKENS = 100_000

/**
 * The number of tokens to remember: 100,000, and less where the heap is limited to less than about 300 MiB
 * (`--max-old-space-size`, or a container's memory, from which Node takes its limit).
 * @param heapLimit bytes.
 */
export const tokenCapacity = (heapLimit = getHeapStatistics().heap_size_limit): number => {
  const room = (heapLimit - YOUNG_GENERATION - SERVICE) * SHARE
  return Math.min(MAX_TOKENS, Math.max(MIN_TOKENS, Math.floor(room / TOKEN)))
}

/** A token is cut out of a header field, and V8 keeps the whole field for as long as the piece: up to 16 KB of cookies. */
export const copyString = (token: string): string => Buffer.from(token).toString()

/** Tokens that are looked at to find one to forget. */
const MAX_CHANCES = 8

const KEY_LENGTH = 8

/** The last characters of a signature, 44 bits of chance, fill a key of 32. Two given tokens share one once in four billion. */
const keyOf = (token: string): number => {
  let key = 0
  for (let index = token.length - KEY_LENGTH; index < token.length; index += 1)
    key = (Math.imul(key, 31) + token.charCodeAt(index)) | 0
  return key
}

/**
 * Authenticator by the token that proved them: bounded, and each leading to the one record of its user, so that a change of
 * the user reaches all of them at once. Found by a number made of the signature, which is hashed at no cost; the whole text
 * is compared with every hit, and of two tokens with one number the later takes the place.
 */
export class TokenCache {
  readonly #capacity: number
  readonly #byKey = new Map<number, Principal>()
  readonly #users: UserCache

  constructor(capacity: number, users: UserCache) {
    this.#capacity = capacity
    this.#users = users
  }

  /** @returns what is remembered, which need not be current any more. */
  get(token: string): Principal | undefined {
    const principal = this.#byKey.get(keyOf(token))
    return principal?.token === token ? principal : undefined
  }

  add(principal: Principal): void {
    const key = keyOf(principal.token)
    const earlier = this.#byKey.get(key)
    if (earlier !== undefined) this.drop(earlier)
    else if (this.#byKey.size >= this.#capacity) this.#makeRoom()
    principal.cachedUser.tokens += 1
    this.#users.add(principal.cachedUser)
    this.#byKey.set(key, principal)
  }

  drop({ token, cachedUser }: Principal): void {
    this.#byKey.delete(keyOf(token))
    this.#release(cachedUser)
  }

  clear(): void {
    this.#byKey.clear()
  }

  /**
   * Forgets the oldest token that was not used since the last look. A map keeps the order of insertion, so this is a
   * clock (second chance): near LRU, without moving anything on a hit. Where everything is in use, the search is cut short:
   * one request never pays for a look at them all.
   */
  #makeRoom(): void {
    let chances = MAX_CHANCES
    for (const [key, principal] of this.#byKey) {
      this.#byKey.delete(key)
      chances -= 1
      if (!principal.used || !principal.cachedUser.current || chances === 0) {
        this.#release(principal.cachedUser)
        return
      }
      principal.used = false
      this.#byKey.set(key, principal)
    }
  }

  #release(cachedUser: CachedUser): void {
    cachedUser.tokens -= 1
    if (cachedUser.tokens === 0 && cachedUser.current) this.#users.remove(cachedUser)
  }
}

/** How long (UTF-16 units) one may be that is remembered: 20,000 of them are some 10 MB at most. */
const MAX_LENGTH = 500

/** How many are remembered for each token that may be: together they take a tenth of the tokens' memory. */
const REJECTED_SHARE = 1 / 5

/**
 * Tokens that no key of this process has signed, and so never will have: clients come with theirs again and again, long
 * after the secret was changed. What is remembered costs no signature (6 µs) and no error of the library's.
 */
export class RejectedTokens {
  readonly #capacity: number
  readonly #tokens = new Set<string>()

  /** @param tokens how many tokens may be remembered. */
  constructor(tokens: number) {
    this.#capacity = tokens * REJECTED_SHARE
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
