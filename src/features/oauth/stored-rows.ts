/** The rows of the authorization server. Times are milliseconds since the epoch. */

export interface ClientsTable {
  id: string
  /** A `ClientMetadata` in JSON, without the admin scopes. */
  metadata: string
  /** JSON: authentication reads them. */
  admin_scopes: string
  secret_digest: string | null
  /** The secret before it, which is valid until `former_expires_at`. */
  former_digest: string | null
  former_expires_at: number | null
  created_at: number
  updated_at: number
  /** 0: it is not deleted. The row stays until the grants are removed. */
  deleted_at: number
  /** A `ClientOrigin`. */
  origin: string
  /** When it was registered, or got a grant, whichever is later, exact to a day; 0 for clients of administrators. */
  used_at: number
  /** Where its metadata document is. */
  document_url: string | null
  /** 0 or 1. */
  is_blocked: number
}

export interface ResourcesTable {
  id: string
  identifier: string
  name: string
  /** JSON: descriptions by scope. */
  scopes: string
  /** JSON: the clients that may introspect tokens for it. */
  client_ids: string
  created_at: number
  updated_at: number
}

/** What must not be used again: assertions of clients, and tokens that were revoked. */
export interface UsedIdsTable {
  id: string
  expires_at: number
}

/** An authorization request: `pushed` until the browser brings it, if the client has pushed it, `pending` until the user decides, then a `code`, and `used` once it is redeemed. */
export interface RequestsTable {
  /** The digest of what names it in URLs of pages. */
  id: string
  client_id: string
  /** An `AuthorizationRequest` in JSON. */
  parameters: string
  state: string
  /** `''`: there is no code yet. */
  code_digest: string
  /** The user who has decided. */
  user_id: string | null
  /** A `Decision` in JSON. */
  decision: string | null
  /** The grant that the code was redeemed for. */
  grant_id: string | null
  expires_at: number
}

/** A request of a device: `pending` until the user decides, then `approved` or `denied`. */
export interface DeviceRequestsTable {
  /** The digest of the device code. */
  id: string
  user_code_digest: string
  /** A digest of the client and the network: both together have few pending requests. */
  requester: string
  /** A `DeviceRequest` in JSON. */
  parameters: string
  state: string
  /** The user who has approved it. */
  user_id: string | null
  /** A `Decision` in JSON. */
  decision: string | null
  /** When the device last asked for the decision; 0: never. */
  polled_at: number
  expires_at: number
}

/** A client that has an ID token of a session, and must learn of its end. */
export interface SignInsTable {
  id: string
  session_id: string
  client_id: string
  user_id: string
  attempts: number
  /** When the client is told next; 0: the session had not ended yet. */
  retry_at: number
  /** When the session ends at the latest. */
  expires_at: number
}

/** What a user has granted to a client. */
export interface GrantsTable {
  id: string
  user_key: number
  client_id: string
  /** JSON. */
  scopes: string
  /** The identifier of a resource; `null`: Gatehouse. */
  resource: string | null
  /** The id of the organization that the access is limited to; `null`: none. */
  organization: string | null
  /** The session that it ends with; `null`: with none. Not a reference: it says later what the user had agreed to. */
  session_id: string | null
  authenticated_at: number
  /** The thumbprint of a key. */
  jkt: string | null
  /** The key of the refresh tokens, encrypted; `null`: it has none. */
  secret: string | null
  /** The number of the current refresh token, and of the one before it. */
  generation: number
  predecessor: number
  /** The numbers that were issued so far: none is issued twice. */
  issued: number
  /** When the current one was issued, and whether it was presented: 0 or 1. */
  issued_at: number
  is_presented: number
  created_at: number
  /** When a token was last issued. */
  used_at: number
  expires_at: number
}
