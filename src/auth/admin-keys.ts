/** Verifies the keys of administrators. */
import { createHash, timingSafeEqual } from 'node:crypto'

/** The request header that carries the key (§5.2.1). */
export const ADMIN_KEY_HEADER = 'x-admin-key'

const digestOf = (key: string): Buffer => createHash('sha256').update(key).digest()

/** Hexadecimal digits of a key's id. */
const ID_LENGTH = 8

/**
 * The keys that admin routes accept: the current one and, during a rotation, the previous one (§5.2). Digests have one length
 * and every key is compared, so response times reveal nothing about a key.
 */
export class AdminKeys {
  readonly #digests: readonly Buffer[]

  constructor(keys: readonly string[]) {
    this.#digests = keys.map(digestOf)
  }

  /** The key's id in the audit log: a prefix of its digest, too short to reveal anything about the key. */
  static idOf(presented: string): string {
    return digestOf(presented).toString('hex').slice(0, ID_LENGTH)
  }

  accepts(presented: string): boolean {
    const candidate = digestOf(presented)
    let accepted = false
    for (const digest of this.#digests) accepted = timingSafeEqual(candidate, digest) || accepted
    return accepted
  }
}
