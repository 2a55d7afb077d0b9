/** Users by the thousand, past HTTP and hashing: what seeds for load tests, and the bench, fill a store with. */

import type { NewUser } from '../accounts/account-store.ts'
import type { Session } from '../auth/session.ts'

export interface SeedAccount {
  readonly user: NewUser
  /** The session that the user is to have, with the timestamp of now; `null` for none. */
  readonly session: Session | null
}

/** What a session's token is issued for. */
export type SeedSession = Pick<Session, 'id' | 'userId' | 'createdAt' | 'expiresAt'>

export interface Seeded {
  /** Users who were not there. */
  readonly added: number
  /**
   * For every enabled user for whom one was given: the newest in force that no request has opened, or else the one given.
   */
  readonly sessions: readonly SeedSession[]
}

export interface SeedStore {
  /**
   * Adds, as one transaction, the users whose e-mail nobody has. Whoever is there stays as they are.
   * @param idle milliseconds without a request after which a session is no longer in force.
   */
  add(accounts: readonly SeedAccount[], idle: number): Promise<Seeded>
  /** Does at once what the engine would do by itself a while later, when something is being measured. */
  finish(): Promise<void>
  close(): Promise<void>
}
