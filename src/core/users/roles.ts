/** Roles of users: names that administrators assign and private routes require. */

export const ROLE_PATTERN = '^[a-z][a-z0-9:_-]{0,63}$'
export const MAX_ROLES = 32

export const INVALID_ROLE = 'must be a role: a to z first, then at most 63 of a to z, 0 to 9, :, _ and -'

const ROLE = new RegExp(ROLE_PATTERN)

export const isRole = (text: unknown): text is string => typeof text === 'string' && ROLE.test(text)

/** The roles of users without any. One constant, so that a cached user costs no array. */
export const NO_ROLES: readonly string[] = Object.freeze([])

export const sortedRoles = (roles: readonly string[]): readonly string[] =>
  roles.length === 0 ? NO_ROLES : roles.toSorted()
