import { newId } from '../ids.ts'
import type { User } from '../users/user.ts'

export interface NewAccount {
  /** In canonical form. */
  readonly email: string
  readonly firstName?: string | null
  readonly lastName?: string | null
  readonly emailVerified?: boolean
}

/** @param now milliseconds since the epoch. */
export const newUser = (account: NewAccount, now: number): User => ({
  id: newId(),
  email: account.email,
  firstName: account.firstName ?? null,
  lastName: account.lastName ?? null,
  emailVerified: account.emailVerified ?? false,
  disabled: false,
  createdAt: now,
  updatedAt: now,
  lastRequestAt: null,
  version: 1,
})
