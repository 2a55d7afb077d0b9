import type { LastRequestStore } from '../auth/last-requests.ts'
import type { SessionStore } from '../auth/session.ts'
import type { UserStore } from '../users/user-store.ts'

/** What every engine offers (DESIGN §7). One suite of tests, `test/storage`, holds all of them to it. */
export interface Storage {
  readonly users: UserStore
  readonly sessions: SessionStore
  readonly lastRequests: LastRequestStore
  /**
   * Calls `listener` with the id of every user who was changed, or lost a session, before the change's own promise
   * resolves (a new user or session changes nothing that anybody remembers); with `null` when somebody else changed
   * something unknown. One listener; a later one takes its place.
   */
  onChange(listener: (userId: string | null) => void): void
  /** @throws when the store cannot be reached. */
  ping(): Promise<void>
  close(): Promise<void>
}
