/** Why a write is refused because of its user, from the user's state in the transaction of the write. */
import type { UpdateRefusal, UserRefusal } from '../../users/user-store.ts'

/** A user: whether disabled, and whether the given hash, if any, is the password's. 0 or 1. */
export interface UserState {
  readonly disabled: number
  readonly verified: number
}

/** A user: whether disabled (0 or 1), and whether the version is one of the given ones, if any. */
export interface VersionState {
  readonly disabled: number
  readonly current: boolean
}

interface Requirements {
  /** Whether the user must be enabled. */
  readonly onlyEnabled: boolean
}

/** @returns `null` if the user exists, and is enabled if that is required. */
const accessRefusalOf = (
  user: { readonly disabled: number } | undefined,
  { onlyEnabled }: Requirements,
): 'userNotFound' | 'accountDisabled' | null => {
  if (user === undefined) return 'userNotFound'
  return onlyEnabled && user.disabled === 1 ? 'accountDisabled' : null
}

/** @returns `null` if the write may proceed. */
export const refusalOf = (user: UserState | undefined, requirements: Requirements): UserRefusal | null =>
  accessRefusalOf(user, requirements) ?? (user?.verified === 1 ? null : 'passwordChanged')

/** @returns `null` if the change may proceed. */
export const updateRefusalOf = (
  user: VersionState | undefined,
  requirements: Requirements,
): UpdateRefusal | null => accessRefusalOf(user, requirements) ?? (user?.current ? null : 'versionChanged')
