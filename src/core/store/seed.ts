/** Fills a store with many users for load tests and benchmarks, without HTTP and hashing. */

import type { Session } from '../auth/session.ts'
import type { NewUser } from '../users/user.ts'

export interface SeedAccount {
  readonly user: NewUser
  /** A session for the user, created now; `null` for none. */
  readonly session: Session | null
}

/** The part of a session that its token is issued for. */
export type SeedSession = Pick<Session, 'id' | 'userId' | 'createdAt' | 'expiresAt'>

/** The stored user with the e-mail of an account: a new one, or one that existed already. */
export interface SeededUser {
  readonly id: string
  readonly passwordHash: string | null
  /** The newest active session that was not opened by a request, else the given one; `null` if the user is disabled. */
  readonly session: SeedSession | null
}

export interface Seeded {
  /** The number of new users. */
  readonly added: number
  /** The users of the accounts with a session, in their order; `null` if another process has just removed the user. */
  readonly users: readonly (SeededUser | null)[]
}

/** The e-mails of accounts for load tests: `user1@seed.example` and so on. */
export const seedEmail = (number: number): string => `user${number}@seed.example`

/** @returns `null` for every e-mail that {@link seedEmail} does not return. */
export const seedNumber = (email: string): number | null => {
  const number = Number(/^user([1-9]\d{0,8})@seed\.example$/.exec(email)?.[1] ?? Number.NaN)
  return Number.isNaN(number) ? null : number
}

/** Every e-mail of {@link seedEmail} is between these, as bytes. A colon follows the digits. */
export const SEED_EMAILS = { after: 'user', before: 'user:' }

export interface SeedStore {
  /**
   * Adds users in one transaction. Users with an existing e-mail are skipped and stay unchanged.
   * @param idle milliseconds without a request after which a session is no longer active.
   */
  add(accounts: readonly SeedAccount[], idle: number): Promise<Seeded>
  /**
   * Users whose e-mails are between those of {@link SEED_EMAILS}, in the order of the e-mails.
   * @param after the last e-mail before them.
   */
  list(after: string, limit: number): Promise<readonly { readonly id: string; readonly email: string }[]>
  /** Runs the engine's background maintenance now, so that it does not distort measurements later. */
  finish(): Promise<void>
  close(): Promise<void>
}
