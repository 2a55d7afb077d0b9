/** What the use cases of accounts are created with: the composition root passes all of it to each of them. */
import type { DeferredWork } from '#base/concurrency/deferred-work'
import type { AccessTokens } from '../auth/access-tokens.ts'
import type { SessionLimits } from '../auth/session.ts'
import type { BreachedPasswords } from '../passwords/breached-passwords.ts'
import type { PasswordHasher } from '../passwords/hasher.ts'
import type { LoginThrottle } from '../rate-limits/login-throttle.ts'
import type { ReturnTargets } from '../return-targets/return-targets.ts'
import type {
  AccountStore,
  AdminKeyStore,
  EmailTokenStore,
  EventStore,
  SessionStore,
  UserStore,
} from '../store/store.ts'
import type { FinishRemoval } from '../users/users.ts'
import type { Mails } from './mails.ts'
import type { ProtectedRole } from './protected-role.ts'
import type { SecondFactor } from './second-factor.ts'

export interface AccountDeps {
  readonly users: UserStore
  readonly sessions: SessionStore
  readonly emailTokens: EmailTokenStore
  readonly events: EventStore
  readonly accountStore: AccountStore
  readonly adminKeys: AdminKeyStore
  readonly tokens: AccessTokens
  readonly hasher: PasswordHasher
  readonly breachedPasswords: BreachedPasswords
  readonly loginThrottle: LoginThrottle
  readonly secondFactor: SecondFactor
  readonly mails: Mails
  readonly deferred: DeferredWork
  readonly finishRemoval: FinishRemoval
  readonly returnTargets: ReturnTargets
  readonly limits: SessionLimits
  /** `null`: there is none. */
  readonly protectedRole: ProtectedRole | null
  /** Whether signing in requires a verified e-mail. Then no response reveals which addresses have accounts. */
  readonly requireEmailVerification: boolean
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}
