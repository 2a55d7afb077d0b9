/** Fills a store with many users for load tests and benchmarks, without HTTP and hashing. */
import type { NewUser } from '../accounts/account-store.ts'
import type { Session } from '../auth/session.ts'

export interface SeedAccount {
  readonly user: NewUser
  /** A session for the user, created now; `null` for none. */
  readonly session: Session | null
}

/** The part of a session that its token is issued for. */
export type SeedSession = Pick<Session, 'id' | 'userId' | 'createdAt' | 'expiresAt'>

export interface Seeded {
  /** The number of new users. */
  readonly added: number
  /**
   * For every enabled user with a given session: the newest active one that was not opened by a request, else the given one.
   */
  readonly sessions: readonly SeedSession[]
}

export interface SeedStore {
  /**
   * Adds users in one transaction. Users with an existing e-mail are skipped and stay unchanged.
   * @param idle milliseconds without a request after which a session is no longer active.
   */
  add(accounts: readonly SeedAccount[], idle: number): Promise<Seeded>
  /** Runs the engine's background maintenance now, so that it does not distort measurements later. */
  finish(): Promise<void>
  close(): Promise<void>
}
