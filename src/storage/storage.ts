import type { AccountStore } from '../accounts/account-store.ts'
import type { ExpiredRowStore } from '../accounts/expired-rows.ts'
import type { MailedTokenStore } from '../accounts/mailed-token.ts'
import type { TransferStore } from '../accounts/transfer-store.ts'
import type { ChangeListener } from '../auth/change-listener.ts'
import type { LastRequestStore } from '../auth/last-request-store.ts'
import type { OpenRateLimit } from '../auth/rate-limits.ts'
import type { SessionStore } from '../auth/session-store.ts'
import type { EventStore } from '../users/events.ts'
import type { UserStore } from '../users/user-store.ts'

/** What every engine offers (DESIGN §7). One suite of tests, `test/storage`, holds all of them to it. */
export interface Storage {
  readonly users: UserStore
  readonly accounts: AccountStore
  readonly sessions: SessionStore
  readonly mailedTokens: MailedTokenStore
  readonly lastRequests: LastRequestStore
  readonly events: EventStore
  /** Counts in a table where instances share one, else in memory. */
  readonly rateLimit: OpenRateLimit
  readonly transfers: TransferStore
  readonly expiredRows: ExpiredRowStore
  /** One listener; a later one takes its place. It is told when changes are listened to, and when not. */
  onChange(listener: ChangeListener): void
  /** @throws when the store cannot be reached. */
  ping(): Promise<void>
  close(): Promise<void>
}
