import type { Mails } from '../accounts/mails.ts'

const nothing = (): void => undefined

/** For `MAIL_URL=off`: nobody is mailed anything. */
export const NO_MAILS: Mails = {
  verification: nothing,
  newEmail: nothing,
  emailChangeRequested: nothing,
  emailChanged: nothing,
  passwordReset: nothing,
  passwordChanged: nothing,
  accountExists: nothing,
  accountDeleted: nothing,
}
