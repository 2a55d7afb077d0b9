/** Grants: what users let clients do. */

/** Times are milliseconds since the epoch. */
export interface Grant {
  readonly id: string
  readonly clientId: string
  readonly scopes: readonly string[]
  /** The identifier of a resource; `null`: Gatehouse. */
  readonly resource: string | null
  /** The id of the organization that the access is limited to; `null`: none. */
  readonly organization: string | null
  /** The session that it ends with; `null`: with none. */
  readonly sessionId: string | null
  /** When the user had signed in. */
  readonly authenticatedAt: number
  /** The thumbprint of the key that its refresh tokens are bound to (RFC 9449 §5); `null`: of none. */
  readonly jkt: string | null
  readonly createdAt: number
  readonly usedAt: number
  readonly expiresAt: number
}

/** A grant with the key of its refresh tokens. */
export interface NewGrant extends Grant {
  /** Encrypted; `null`: it has no refresh tokens. */
  readonly secret: string | null
}

/** Grants of one user. A further one ends the one that was unused for longest. */
export const MAX_GRANTS = 100
