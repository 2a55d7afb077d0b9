/**
 * Sessions of the console: a browser has a random secret, the store has its digest and, encrypted, what opened it: an admin key, or the id of a
 * session of a user (`administrators.ts`).
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Actor } from '#feature/declaration'
import { DecryptionError, type Keyring } from '#feature/encryption/keyring'
import type { ConsoleDeps } from './definitions.ts'
import type { ConsoleSession } from './stored-sessions.ts'

/** Milliseconds without a page after which a session ends. */
const IDLE = 1_800_000

/** Milliseconds from the sign-in after which it ends in any case. */
const LIFETIME = 43_200_000

/** Milliseconds by which the end has to move before it is written. */
const STEP = 60_000

const digestOf = (secret: string): string => createHash('sha256').update(secret).digest('base64url')

const contextOf = (digest: string) => ({ purpose: 'console session', owner: digest })

const endOf = (createdAt: number, now: number): number => Math.min(createdAt + LIFETIME, now + IDLE)

type ConsoleSessionsDeps = Omit<ConsoleDeps, 'keyring'> & { readonly keyring: Keyring }

export class ConsoleSessions {
  readonly #deps: ConsoleSessionsDeps

  constructor(deps: ConsoleSessionsDeps) {
    this.#deps = deps
  }

  /** @param opener what opens it, which is verified. @returns the secret for the browser: 256 bits in base64url. */
  async open(opener: string, actor: Actor): Promise<string> {
    const { store, keyring, newEvent, clock } = this.#deps
    const now = clock()
    const secret = randomBytes(32).toString('base64url')
    const digest = digestOf(secret)
    const encrypted = keyring.encrypt(opener, contextOf(digest))
    const session = { digest, adminKey: encrypted, createdAt: now, expiresAt: endOf(now, now) }
    await store.addConsoleSession(session, newEvent('console.signed-in', actor, null))
    return secret
  }

  /**
   * What has opened a session.
   * @param isUse whether somebody uses the page, so that the idle time begins again.
   * @returns `null` if the session has ended.
   */
  async openerOf(secret: string, isUse: boolean): Promise<string | null> {
    const { store, keyring, clock } = this.#deps
    const now = clock()
    const digest = digestOf(secret)
    const session = await store.findConsoleSession(digest, now)
    if (session === undefined) return null
    if (isUse) await this.#extend(session, now)
    try {
      return keyring.decrypt(session.adminKey, contextOf(digest)).text
    } catch (error) {
      // Of a key that is not configured any more.
      if (!(error instanceof DecryptionError)) throw error
      await this.close(secret)
      return null
    }
  }

  async close(secret: string): Promise<void> {
    await this.#deps.store.removeConsoleSession(digestOf(secret))
  }

  async #extend({ digest, createdAt, expiresAt }: ConsoleSession, now: number): Promise<void> {
    const end = endOf(createdAt, now)
    if (end - expiresAt >= STEP) await this.#deps.store.extendConsoleSession(digest, end)
  }
}

/** Whether an admin key was entered again. Takes the same time for every text. */
export const isSameKey = (entered: string, adminKey: string): boolean =>
  timingSafeEqual(Buffer.from(digestOf(entered)), Buffer.from(digestOf(adminKey)))
