/** The use cases around accounts, put together. */
import { AccountRemoval } from './accounts/account-removal.ts'
import { Accounts, type AccountsDeps } from './accounts/accounts.ts'
import { EmailAddresses } from './accounts/email-addresses.ts'
import { ExistingAccountNotice } from './accounts/existing-account-notice.ts'
import { Exports } from './accounts/exports.ts'
import { Impersonation } from './accounts/impersonation.ts'
import { Imports } from './accounts/imports.ts'
import { NewAccounts } from './accounts/new-accounts.ts'
import { PasswordChanges } from './accounts/password-changes.ts'
import { PasswordResets } from './accounts/password-resets.ts'
import { Reauthentication } from './accounts/reauthentication.ts'
import { VerifiedSignUps } from './accounts/verified-sign-ups.ts'
import { Events } from './audit-log/audit-log.ts'
import { Sessions } from './auth/sessions.ts'
import type { DeferredWork } from './concurrency/deferred-work.ts'
import type { Storage } from './storage/storage.ts'
import { Users } from './users/users.ts'

export interface AccountServices {
  readonly accounts: Accounts
  readonly newAccounts: NewAccounts
  readonly verifiedSignUps: VerifiedSignUps
  readonly accountRemoval: AccountRemoval
  readonly emailAddresses: EmailAddresses
  readonly passwordChanges: PasswordChanges
  readonly passwordResets: PasswordResets
  readonly impersonation: Impersonation
  readonly sessions: Sessions
  readonly users: Users
  readonly events: Events
  readonly imports: Imports
  readonly exports: Exports
}

export interface AccountServicesDeps extends Omit<AccountsDeps, 'users' | 'accountStore' | 'sessions'> {
  readonly storage: Storage
  readonly later: DeferredWork
}

export const createAccountServices = (given: AccountServicesDeps): AccountServices => {
  const { users, accounts: accountStore, sessions, emailTokens, events } = given.storage
  const reauthentication = new Reauthentication({ ...given, users })
  const parts = {
    ...given,
    users,
    accountStore,
    sessions,
    emailTokens,
    events,
    reauthentication,
    existingAccountNotice: new ExistingAccountNotice({ ...given, users, emailTokens, events }),
  }
  return {
    accounts: new Accounts(parts),
    newAccounts: new NewAccounts(parts),
    verifiedSignUps: new VerifiedSignUps(parts),
    accountRemoval: new AccountRemoval(parts),
    emailAddresses: new EmailAddresses(parts),
    passwordChanges: new PasswordChanges(parts),
    passwordResets: new PasswordResets(parts),
    impersonation: new Impersonation(parts),
    sessions: new Sessions({ ...parts, store: sessions }),
    users: new Users({ ...parts, store: users }),
    events: new Events(events),
    imports: new Imports({ ...parts, store: given.storage.bulkUsers }),
    exports: new Exports({ ...parts, store: given.storage.bulkUsers }),
  }
}
