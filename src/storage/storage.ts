import type { ChangeListener } from '../auth/change-listener.ts'
import type { LastRequestStore } from '../auth/last-request-store.ts'
import type { SessionStore } from '../auth/session.ts'
import type { UserStore } from '../users/user-store.ts'

/** What every engine offers (DESIGN §7). One suite of tests, `test/storage`, holds all of them to it. */
export interface Storage {
  readonly users: UserStore
  readonly sessions: SessionStore
  readonly lastRequests: LastRequestStore
  /** One listener; a later one takes its place. It is told when changes are listened to, and when not. */
  onChange(listener: ChangeListener): void
  /** @throws when the store cannot be reached. */
  ping(): Promise<void>
  close(): Promise<void>
}
