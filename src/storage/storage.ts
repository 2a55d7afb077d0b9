import type { AccountStore } from '../accounts/account-store.ts'
import type { BulkUserStore } from '../accounts/bulk-users.ts'
import type { CleanUpStore } from '../accounts/clean-up.ts'
import type { EmailTokenStore } from '../accounts/email-token.ts'
import type { EventStore } from '../audit-log/audit-log.ts'
import type { InvalidationListener } from '../auth/invalidation.ts'
import type { LastRequestStore } from '../auth/last-requests.ts'
import type { SessionStore } from '../auth/session-store.ts'
import type { OpenRateLimit } from '../rate-limits/limits.ts'
import type { UserStore } from '../users/user-store.ts'

/** What every engine offers (DESIGN §7). One suite of tests, `test/storage`, holds all of them to it. */
export interface Storage {
  readonly users: UserStore
  readonly accounts: AccountStore
  readonly sessions: SessionStore
  readonly emailTokens: EmailTokenStore
  readonly lastRequests: LastRequestStore
  readonly events: EventStore
  /** Counts in a table where instances share one, else in memory. */
  readonly rateLimit: OpenRateLimit
  readonly bulkUsers: BulkUserStore
  readonly cleanUp: CleanUpStore
  /** One listener; a later one takes its place. It is told when changes are listened to, and when not. */
  onChange(listener: InvalidationListener): void
  /** @throws when the store cannot be reached. */
  ping(): Promise<void>
  close(): Promise<void>
}
