/** The use cases around accounts, put together. */
import { AccountRemoval } from './accounts/account-removal.ts'
import { Accounts, type AccountsParts } from './accounts/accounts.ts'
import { EmailAddresses } from './accounts/email-addresses.ts'
import { Exports } from './accounts/exports.ts'
import { Impersonation } from './accounts/impersonation.ts'
import { Imports } from './accounts/imports.ts'
import { NewAccounts } from './accounts/new-accounts.ts'
import { PasswordChanges } from './accounts/password-changes.ts'
import { PasswordConfirmation } from './accounts/password-confirmation.ts'
import { PasswordResets } from './accounts/password-resets.ts'
import { TakenEmails } from './accounts/taken-emails.ts'
import { VerifiedSignUps } from './accounts/verified-sign-ups.ts'
import { Sessions } from './auth/sessions.ts'
import type { DeferredWork } from './concurrency/deferred-work.ts'
import type { Storage } from './storage/storage.ts'
import { Events } from './users/events.ts'
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

export interface AccountServicesParts extends Omit<AccountsParts, 'users' | 'accountStore' | 'sessions'> {
  readonly storage: Storage
  readonly later: DeferredWork
}

export const createAccountServices = (given: AccountServicesParts): AccountServices => {
  const { users, accounts: accountStore, sessions, mailedTokens, events } = given.storage
  const confirmation = new PasswordConfirmation({ ...given, users })
  const parts = {
    ...given,
    users,
    accountStore,
    sessions,
    mailedTokens,
    events,
    confirmation,
    takenEmails: new TakenEmails({ ...given, users, mailedTokens, events }),
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
    imports: new Imports({ ...parts, store: given.storage.transfers }),
    exports: new Exports({ ...parts, store: given.storage.transfers }),
  }
}
