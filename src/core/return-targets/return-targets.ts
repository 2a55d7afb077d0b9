/**
 * Where the hosted pages lead after a flow. Within a browser the URL travels as `return_to` in the URLs of pages. What leaves the browser,
 * a link of a mail or the way to a provider, has no such URL: the target is stored beside its secret, so that a mail shows nothing of what
 * a stranger may have written, and nobody who forwards or changes a link changes where it leads.
 */
import { createCipheriv, createDecipheriv, createHash } from 'node:crypto'
import { returnUrl } from './return-url.ts'
import type { ReturnTargetStore } from './stored-return-targets.ts'

const CIPHER = 'aes-256-gcm'
const TAG_BYTES = 16

/** Each secret encrypts one URL, so that no two share a key. */
const NONCE = Buffer.alloc(12)

const derived = (purpose: 'id' | 'key', secret: string): Buffer =>
  createHash('sha256').update(`return-target ${purpose} ${secret}`).digest()

const idOf = (secret: string): string => derived('id', secret).toString('base64url')

const encrypt = (secret: string, url: string): string => {
  const cipher = createCipheriv(CIPHER, derived('key', secret), NONCE)
  return Buffer.concat([cipher.update(url, 'utf8'), cipher.final(), cipher.getAuthTag()]).toString(
    'base64url',
  )
}

const decrypt = (secret: string, encrypted: string): string => {
  const bytes = Buffer.from(encrypted, 'base64url')
  const decipher = createDecipheriv(CIPHER, derived('key', secret), NONCE, { authTagLength: TAG_BYTES })
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
  return Buffer.concat([decipher.update(bytes.subarray(0, -TAG_BYTES)), decipher.final()]).toString('utf8')
}

interface Deps {
  readonly store: ReturnTargetStore
  /** `RETURN_ORIGINS`, and those of `WEB_URL` and of the service. */
  readonly origins: readonly string[]
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}

export class ReturnTargets {
  readonly #store: ReturnTargetStore
  readonly #origins: ReadonlySet<string>
  readonly #clock: () => number

  constructor({ store, origins, clock }: Deps) {
    this.#store = store
    this.#origins = new Set(origins)
    this.#clock = clock
  }

  /** @param text of a request; `undefined`: it names none. @returns the URL as browsers read it; `null` if it must not be returned to. */
  parse(text: string | undefined): string | null {
    return text === undefined ? null : returnUrl(text, this.#origins)
  }

  /**
   * Stores where a flow leads that continues with a secret, before anybody gets the secret.
   * @param secret of at least 128 random bits, such as the token of a mail. @param url of {@link parse}; `null`: nowhere.
   */
  async keep(secret: string, url: string | null | undefined, expiresAt: number): Promise<void> {
    if (url == null) return
    await this.#store.addReturnTarget({ id: idOf(secret), url: encrypt(secret, url), expiresAt })
  }

  /** @returns where the flow of a secret leads, also after the secret was used; `null` without a target, or once its origin is not allowed. */
  async find(secret: string): Promise<string | null> {
    const encrypted = await this.#store.findReturnTarget(idOf(secret), this.#clock())
    return encrypted === null ? null : this.parse(decrypt(secret, encrypted))
  }
}
