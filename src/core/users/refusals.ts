/** Why a write is refused because of its user, from the user's state in the transaction of the write. */

/** Why an operation on a user did nothing. `passwordChanged`: the hash is not the verified one any more. */
export type UserRefusal = 'userNotFound' | 'accountDisabled' | 'passwordChanged'

/** Why a change that a user makes in a session did nothing. `sessionNotFound`: the session has ended. */
export type SessionRefusal = UserRefusal | 'sessionNotFound'

/** A user: whether disabled, and whether the given hash, if any, is the password's. 0 or 1. */
export interface UserState {
  readonly disabled: number
  readonly verified: number
}

interface Requirements {
  readonly onlyEnabled: boolean
}

/**
 * A hash that is not the password's any more is the first reason: only the password of an account may reveal that it is disabled.
 * @returns `null` if the write may proceed.
 */
export const refusalOf = (user: UserState | undefined, { onlyEnabled }: Requirements): UserRefusal | null => {
  if (user === undefined) return 'userNotFound'
  if (user.verified === 0) return 'passwordChanged'
  return onlyEnabled && user.disabled === 1 ? 'accountDisabled' : null
}
