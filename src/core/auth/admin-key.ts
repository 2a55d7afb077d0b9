/** Admin keys of the store, and the admin key of a request (docs/design.md, "Machine callers"). */
import { type ApiKey, serializeApiKey } from './api-key.ts'

/** Keys of the store, expired ones included. */
export const MAX_ADMIN_KEYS = 1_000

export interface AdminKey extends ApiKey {
  readonly scopes: readonly string[]
  /** The id of the admin key that created it; `null`: the operator, on the command line. */
  readonly createdBy: string | null
}

/** An admin key in JSON, for HTTP and the command line. */
export const serializeAdminKey = ({ createdBy, ...key }: AdminKey) => ({ ...serializeApiKey(key), createdBy })

export interface PresentedAdminKey {
  /**
   * The id of a key of the store, or of the client of a token; for a root key a prefix of its digest, too short to reveal anything about the
   * key; for an administrator that of the user.
   */
  readonly id: string
  /** Of the key, or of the client; `null` for a root key; the e-mail of an administrator. */
  readonly name: string | null
  /** The session of a user to whom it is lent for a request of the console (`AdminAuthenticator.lend`), and the version of that user. */
  readonly administrator?: { readonly sessionId: string; readonly version: number }
  /** `null` for a root key, which may do everything. */
  readonly scopes: readonly string[] | null
  /** Milliseconds since the epoch; `null`: it does not expire. */
  readonly expiresAt: number | null
}

const ADMINISTRATOR = 'administrator:'

/** `impersonatedBy` of the sessions that a user has opened as an administrator. */
export const impersonatorOfAdministrator = (userId: string): string => ADMINISTRATOR + userId

/** What `impersonatedBy` of a session says: the id of a key, or of an administrator with a prefix that no key has. */
export const impersonatorOf = ({
  id,
  administrator,
}: Pick<PresentedAdminKey, 'id' | 'administrator'>): string =>
  administrator === undefined ? id : impersonatorOfAdministrator(id)

/** The administrator or key behind `impersonatedBy` of a session. */
export const actorOfImpersonator = (
  impersonator: string,
): { readonly type: 'adminKey' | 'administrator'; readonly id: string } =>
  impersonator.startsWith(ADMINISTRATOR)
    ? { type: 'administrator', id: impersonator.slice(ADMINISTRATOR.length) }
    : { type: 'adminKey', id: impersonator }

/** The scopes of `asked` that a key does not have. */
export const missingScopes = (
  { scopes }: Pick<PresentedAdminKey, 'scopes'>,
  asked: readonly string[],
): readonly string[] => (scopes === null ? [] : asked.filter(scope => !scopes.includes(scope)))
