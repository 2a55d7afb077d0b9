import type { CachedUser, Principal } from './principal.ts'
import type { UserCache } from './user-cache.ts'

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
