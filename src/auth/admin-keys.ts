import { createHash, timingSafeEqual } from 'node:crypto'

/** The request header that carries the key (§5.2.1). */
export const ADMIN_KEY_HEADER = 'x-admin-key'

const digest = (key: string): Buffer => createHash('sha256').update(key).digest()

/** Hexadecimal digits. */
const ID_LENGTH = 8

/**
 * The keys that open admin routes: the current one and, while keys are rotated, the one before (§5.2).
 * Digests have one length and every key is compared, so the time of an answer tells nothing about a key.
 */
export class AdminKeys {
  readonly #digests: readonly Buffer[]

  constructor(keys: readonly string[]) {
    this.#digests = keys.map(digest)
  }

  /** What the audit log calls a key: too little of its digest to tell anything about it. */
  static idOf(presented: string): string {
    return digest(presented).toString('hex').slice(0, ID_LENGTH)
  }

  accepts(presented: string): boolean {
    const candidate = digest(presented)
    let accepted = false
    for (const cachedUser of this.#digests) accepted = timingSafeEqual(candidate, cachedUser) || accepted
    return accepted
  }
}
