/** The mails that an account's life sends: after the change is kept, and without anybody waiting for them. */
export interface Mails {
  /** To a new account: the link that shows that the address is the user's. */
  verification(to: string, token: string): void
  /** To an address that is to become an account's: the link that makes it so. */
  newEmail(to: string, token: string): void
  /** To the address that an account still has: another one is to take its place. */
  emailChangeRequested(to: string, newEmail: string): void
  /** To the address that an account had. */
  emailChanged(to: string, newEmail: string): void
  /** The link to choose another password. */
  passwordReset(to: string, token: string): void
  passwordChanged(to: string): void
  /** To an address that somebody wants for another account: the link to choose another password for the one that it has. */
  accountExists(to: string, token: string): void
  accountDeleted(to: string): void
}
