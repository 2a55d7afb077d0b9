// Generated from the OpenAPI document of the service: `npm run client` in its project, or gatehouse-client. Do not edit.
// Without POST /oauth/device, POST /oauth/introspect, POST /oauth/par, POST /oauth/revoke, POST /oauth/token.
import {
  adminTransport,
  segment,
  userTransport,
  type AdminClientOptions,
  type Call,
  type CallOptions,
  type ClientOptions,
  type ConditionalCallOptions,
  type Pages,
  type StreamedEvent,
  type StreamOptions,
} from './runtime.ts'

export { isServiceError, memoryTokens, NetworkError, ServiceError } from './runtime.ts'
export type {
  AdminClientOptions,
  Call,
  CallOptions,
  ClientOptions,
  ConditionalCallOptions,
  Pages,
  StreamedEvent,
  StreamOptions,
  TokenStorage,
} from './runtime.ts'

export interface Service { name: 'gatehouse'; version: string; docs?: string; openapi?: string }

export interface Errors { errors: { [name: string]: string[] } }

export interface SignUpRequest {
  email: string
  password: string
  firstName?: string | null
  lastName?: string | null
  /** The language of mails and pages: a tag of BCP 47 */
  locale?: string | null
  /** Where the pages of the service lead back to: a URL whose origin is in `RETURN_ORIGINS` */
  returnTo?: string
}

export type UserMetadata = { [name: string]: unknown }

export type AppMetadata = { [name: string]: unknown }

export interface Account extends Profile {
  email: string
  emailVerified: boolean
  /** The language of mails and pages: a tag of BCP 47 */
  locale: string | null
  roles: string[]
  userMetadata: UserMetadata
  appMetadata: AppMetadata
  /** ISO 8601 in UTC, with milliseconds */
  updatedAt: string
  lastRequestAt: string | null
}

export interface SignedIn {
  accessToken: string
  /** ISO 8601 in UTC, with milliseconds */
  expiresAt: string
  user: Account
}

export interface Accepted { status: 'accepted' }

export interface SignInRequest {
  email: string
  password: string
  /** Six digits of an authenticator app, or a recovery code */
  code?: string
}

export interface ForgotPasswordRequest {
  email: string
  /** Where the pages of the service lead back to: a URL whose origin is in `RETURN_ORIGINS` */
  returnTo?: string
}

export interface ResetPasswordRequest {
  token: string
  password: string
  /** Six digits of an authenticator app, or a recovery code */
  code?: string
}

export interface VerifyEmailRequest {
  token: string
  password?: string
  /** Six digits of an authenticator app, or a recovery code */
  code?: string
}

export interface RejectEmailRequest { token: string }

export interface RejectedEmail { rejected: 'account' | 'emailChange' | 'signUp' }

export interface Health { status: 'ok' }

export interface Readiness { status: 'ready' }

export interface JsonWebKey {
  kty: string
  crv?: string
  x?: string
  y?: string
  n?: string
  e?: string
  kid: string
  alg: string
  use: 'sig'
}

export interface JsonWebKeySet { keys: JsonWebKey[] }

export interface UpdateAccountRequest {
  firstName?: string | null
  lastName?: string | null
  /** The language of mails and pages: a tag of BCP 47 */
  locale?: string | null
  userMetadata?: UserMetadata
}

export interface DeleteAccountRequest {
  /** Needed, or with an app a code, unless you signed in or re-authenticated within the last ten minutes */
  password?: string
  /** Six digits of an authenticator app, or a recovery code */
  code?: string
}

export interface ChangeEmailRequest {
  email: string
  /** Where the pages of the service lead back to: a URL whose origin is in `RETURN_ORIGINS` */
  returnTo?: string
  /** Needed, or with an app a code, unless you signed in or re-authenticated within the last ten minutes */
  password?: string
  /** Six digits of an authenticator app, or a recovery code */
  code?: string
}

export interface AccountEvent {
  id: string
  /** ISO 8601 in UTC, with milliseconds */
  at: string
  type: 
    | 'user.created' | 'user.sign-up-requested' | 'user.signed-up' | 'user.sign-up-repeated'
    | 'user.signed-in' | 'user.impersonated' | 'user.changed' | 'user.disabled'
    | 'user.enabled' | 'user.deleted' | 'session.sign-in-throttled'
    | 'session.reauthenticated' | 'session.ended' | 'sessions.ended' | 'password.changed'
    | 'password.reset-requested' | 'password.reset' | 'password.removed'
    | 'email.verification-requested' | 'email.verified' | 'email.change-requested'
    | 'email.changed' | 'email.change-rejected' | 'factors.removed' | 'api-key.created'
    | 'api-key.revoked' | 'admin-key.created' | 'admin-key.revoked' | 'totp.added'
    | 'totp.removed' | 'recovery-codes.replaced' | 'recovery-code.used' | 'passkey.added'
    | 'passkey.removed' | 'passkey.counter-regressed' | 'email-code.requested'
    | 'magic-link.requested' | 'identity.linked' | 'identity.removed' | 'webhook.created'
    | 'webhook.changed' | 'webhook.deleted' | 'webhook.secret-rotated' | 'webhook.paused'
    | 'webhook.resumed' | 'webhook.replayed' | 'webhook.disabled' | 'organization.created'
    | 'organization.changed' | 'organization.deleted' | 'organization.member-added'
    | 'organization.member-changed' | 'organization.member-removed'
    | 'organization.invitation-created' | 'organization.invitation-revoked'
    | 'organization.invitation-accepted' | 'client.created' | 'client.changed'
    | 'client.secret-rotated' | 'client.deleted' | 'resource.created' | 'resource.changed'
    | 'resource.deleted' | 'grant.created' | 'grant.revoked' | 'grant.reused'
    | 'device.approved' | 'console.signed-in'
  actor: {
    type: 'user' | 'apiKey' | 'client' | 'adminKey' | 'administrator' | 'anonymous' | 'system'
    id: string | null
  }
  ip: string | null
  details: 
    | {
      /** The id of the session */
      session?: string
      /** The sign-in method */
      method?: string
      /** The id of the passkey */
      passkey?: string
      /** The id of the identity */
      identity?: string
      /** The changed fields */
      fields?: string[]
      /** The id of the session that was kept */
      except?: string
      /** Whether it was a sign-in by the mailbox alone, which emptied the account */
      emptied?: boolean
      /** The id of the API key */
      apiKey?: string
      /** The id of the admin key */
      adminKey?: string
      /** What the admin key may do */
      scopes?: string[]
      /** The id of the provider */
      provider?: string
      /** The id of the webhook */
      webhook?: string
      /** The id of the event that was left out */
      skipped?: string
      /** Where the deliveries begin: a timestamp, or the id of an event */
      from?: string
      /** `gone`: the receiver responded with 410; `failing` */
      reason?: string
      /** The id of the organization */
      organization?: string
      /** The roles in the organization */
      roles?: string[]
      /** The id of the invitation */
      invitation?: string
      /** The id of the client */
      client?: string
      /** The id of the resource */
      resource?: string
      /** The id of the grant */
      grant?: string
    }
    | null
}

export interface AccountEventPage {
  results: AccountEvent[]
  /** `null` on the last page; with `sort=at` always a cursor: repeat the request later with it */
  nextCursor: string | null
}

export interface Method {
  method: string
  /** If a user can have several */
  id: string | null
  label: string | null
  addedAt: string | null
  lastUsedAt: string | null
  /** Whether it counts as a second factor */
  isFactor: boolean
}

export interface MethodList { results: Method[] }

export interface ChangePasswordRequest {
  currentPassword?: string
  /** Six digits of an authenticator app, or a recovery code */
  code?: string
  newPassword: string
}

export type RemovePasswordRequest = DeleteAccountRequest

export interface ReauthenticateRequest {
  password?: string
  /** Six digits of an authenticator app, or a recovery code */
  code?: string
}

export interface Session {
  id: string
  /** ISO 8601 in UTC, with milliseconds */
  createdAt: string
  /** The last request of this session; up to a minute old, except for the current session */
  lastRequestAt: string
  /** ISO 8601 in UTC, with milliseconds */
  expiresAt: string
  ip: string | null
  userAgent: string | null
  /** The sign-in method that opened it; `null` if an earlier release did */
  method: string | null
  /** How the user was authenticated (RFC 8176); `mfa` for two factors, until the user removes what gave the second one */
  amr: string[]
  /** Whether an administrator impersonates the user in it */
  impersonated: boolean
  /** Whether it is the session of this request */
  current: boolean
}

export interface SessionList { results: Session[] }

export interface ResendVerificationRequest {
  /** Where the pages of the service lead back to: a URL whose origin is in `RETURN_ORIGINS` */
  returnTo?: string
}

export interface Profile {
  id: string
  firstName: string | null
  lastName: string | null
  /** ISO 8601 in UTC, with milliseconds */
  createdAt: string
}

export interface ProfilePage {
  results: Profile[]
  /** `null` on the last page */
  nextCursor: string | null
}

export interface AuditEvent extends AccountEvent {
  /** `null` if the event concerns no user */
  userId: string | null
}

export interface AuditEventPage {
  results: AuditEvent[]
  /** `null` on the last page; with `sort=at` always a cursor: repeat the request later with it */
  nextCursor: string | null
}

export interface IntrospectTokenRequest {
  /** An access token or an API key */
  token?: string
  /** In place of `token`: several at once, whose states are `results` */
  tokens?: string[]
  /** Ignored (RFC 7662 §2.1) */
  token_type_hint?: string
}

export interface Introspection {
  active: boolean
  token_type?: 'Bearer'
  /** The id of the user */
  sub?: string
  /** What the token allows, separated by spaces; a session allows everything */
  scope?: string
  /** Seconds since the epoch; absent if an API key does not expire */
  exp?: number
  /** When the user signed in; absent for API keys and impersonated sessions */
  iat?: number
  /** When the user last proved their identity (RFC 9470 §6.2); absent where `iat` is, and while no proof counts any more */
  auth_time?: number
  /** How the user was authenticated (RFC 8176); `mfa` for two factors, until the user removes what gave the second one */
  amr?: string[]
  /** The id of the session */
  sid?: string
  /** The id of the API key, or of the grant */
  jti?: string
  /** The client that got the token; absent for other tokens */
  client_id?: string
  roles?: string[]
  /** The id of the organization that a token of a client is limited to */
  org?: string
  /** The id of the admin key that impersonates the user (RFC 8693 §4.1) */
  act?: { sub: string }
}

export interface Introspections {
  /** In the order of the tokens */
  results: Introspection[]
}

export interface Invalidations {
  cursor: string
  /** Users, admin keys, clients and organizations, each once */
  ids: string[]
  /** Whether the cursor is not known any more: forget everything that is kept */
  reset: boolean
}

export interface SendTestMailRequest {
  email: string
  /** What the mail is about */
  kind: 
    | 'verification' | 'signUp' | 'emailChange' | 'emailChangeRequested' | 'emailChanged'
    | 'emailAssigned' | 'passwordRemoved' | 'passwordReset' | 'passwordChanged'
    | 'accessRemoved' | 'accountExists' | 'factorsRemoved' | 'accountDeleted'
    | 'apiKeyCreated' | 'totpAdded' | 'totpRemoved' | 'recoveryCodesReplaced'
    | 'recoveryCodeUsed' | 'wrongCodes' | 'passkeyAdded' | 'passkeyRemoved' | 'emailCode'
    | 'magicLink' | 'identityLinked' | 'identityRemoved' | 'webhookDisabled'
    | 'organizationInvitation' | 'organizationInvitationAccepted' | 'organizationMemberAdded'
    | 'organizationRolesChanged' | 'organizationMemberRemoved' | 'organizationMemberLeft'
    | 'organizationOwnershipPassed' | 'organizationDeleted' | 'clientConnected'
    | 'grantReused'
  /** The language of mails and pages: a tag of BCP 47 */
  locale?: string | null
}

export interface TestMail { subject: string }

export interface Setting {
  name: string
  /** The feature that declares it; `null` for the core */
  feature: string | null
  /** What applies; of URLs with credentials the harmless part; `null` for what may be a secret */
  value: string | null
  default: string | null
  /** Whether the environment has it, also for secrets */
  set: boolean
  description: string
}

export interface SettingList { results: Setting[] }

export interface Status {
  service: 'gatehouse'
  version: string
  engine: 'sqlite' | 'postgres'
  /** Processes that share the port (`WORKERS`) */
  workers: number
  environment: 'development' | 'production' | 'test'
  /** When the responding process started */
  startedAt: string
  /** How new passwords are hashed */
  passwordHash: { algorithm: 'argon2id'; memoryKiB: number; iterations: number; parallelism: number }
  /** Whether rate limits are on */
  rateLimits: boolean
  /** Whether each request is logged */
  requestLog: boolean
  mail: 'smtp' | 'files' | 'off'
  /** The exact number of users; `null` for a key without the scope `users:read`, and with `count` other than `true` */
  users: number | null
  /** About the number of users; only with `count=approximate` */
  approximateUsers?: number
  /** The cached tokens of the responding process */
  cache: {
    entries: number
    /** How many tokens fit, if their users have no metadata */
    capacity: number
  }
  /** The replica for lists (`DATABASE_READ_URL`), as the responding process sees it */
  replica: 
    | {
      /** Whether lists are read from it */
      inUse: boolean
      /** Seconds by which it is at most behind acknowledged writes; `null` if not known */
      lag: number | null
      /** Why it is not used; `null` if it is */
      problem: string | null
    }
    | null
}

export interface AdminUser extends Account {
  disabled: boolean
  /** Ways to prove the identity besides the password */
  factors: Array<'passkey' | 'totp'>
  /** The sign-in methods and factors that the user has, each once; those by mail are not listed */
  methods: string[]
}

export interface AdminUserPage {
  results: AdminUser[]
  /** `null` on the last page */
  nextCursor: string | null
  /** The number of all matches; only with `count=true` */
  total?: number
  /** About the number of all matches, exact up to a few thousand in most cases; only with `count=approximate` */
  approximateTotal?: number
}

export interface CreateUserRequest extends UpdateAccountRequest {
  email: string
  password?: string
  /** argon2 or scrypt in PHC form, or bcrypt */
  passwordHash?: string
  emailVerified?: boolean
  roles?: string[]
  appMetadata?: AppMetadata
}

export interface UpdateUserRequest extends UpdateAccountRequest {
  email?: string
  disabled?: boolean
  emailVerified?: boolean
  roles?: string[]
  appMetadata?: AppMetadata
}

export interface FactorCredentials {
  /** The secret of the authenticator app: base32, for codes with SHA-1, six digits and steps of 30 seconds */
  totpSecret?: string
  /** SHA-256 of each recovery code that is left, in base64url */
  recoveryCodes?: string[]
  /** They work at a service with the same RP id, for a user with the same id */
  passkeys?: Array<{
    /** The id of the credential, in base64url */
    id: string
    /** For EdDSA, ES256 or RS256: COSE, in base64url */
    publicKey: string
    /** Counts signatures; 0 for passkeys that do not count */
    counter: number
    transports?: string[]
    /** Whether it is synchronised among devices */
    backedUp?: boolean
    name?: string | null
    createdAt?: string
    lastUsedAt?: string | null
  }>
  /** They sign in where a provider with the issuer is configured */
  identities?: Array<{
    issuer: string
    subject: string
    provider: string
    email?: string | null
    linkedAt?: string
    lastUsedAt?: string | null
  }>
}

export interface ImportedMembership {
  id: string
  name: string
  /** Unique: 3 to 63 of a to z and 0 to 9, with single hyphens between them */
  slug: string
  /** Seats; `null` for any number */
  maxMembers?: number | null
  roles: string[]
  joinedAt?: string
}

export interface ExportedUser extends AdminUser {
  passwordHash?: string
  credentials?: FactorCredentials
  /** Those that do not exist are created */
  organizations?: ImportedMembership[]
}

export interface ImportedUser extends UpdateAccountRequest {
  email: string
  /** argon2 or scrypt in PHC form, or bcrypt */
  passwordHash?: string
  emailVerified?: boolean
  disabled?: boolean
  roles?: string[]
  appMetadata?: AppMetadata
  /** Those that do not exist are created */
  organizations?: ImportedMembership[]
  id?: string
  createdAt?: string
  updatedAt?: string
  lastRequestAt?: string | null
  credentials?: FactorCredentials
  /** As exported; the factors of the user follow from `credentials` */
  factors?: Array<'passkey' | 'totp'>
  /** As exported; the methods of the user follow from `passwordHash` and `credentials` */
  methods?: string[]
}

export interface ImportedLine {
  /** From 1, counting blank lines; absent in the last result */
  line?: number
  status: 'created' | 'exists' | 'failed' | 'finished' | 'stopped'
  id?: string
  errors?: { [name: string]: string[] }
  created?: number
  exists?: number
  failed?: number
}

export interface ApiKey {
  id: string
  name: string
  /** The beginning of the key */
  prefix: string
  scopes: string[]
  /** ISO 8601 in UTC, with milliseconds */
  createdAt: string
  expiresAt: string | null
  /** Up to a minute old */
  lastUsedAt: string | null
}

export interface ApiKeyList { results: ApiKey[] }

export interface CreateApiKeyRequest {
  name: string
  /** By default all */
  scopes?: Array<
    | 'account:read' | 'account:write' | 'users:read' | 'organizations:read'
    | 'organizations:write'>
  /** In the future; by default the key does not expire */
  expiresAt?: string | null
  /** Needed, or with an app a code, unless you signed in or re-authenticated within the last ten minutes */
  password?: string
  /** Six digits of an authenticator app, or a recovery code */
  code?: string
}

export interface CreatedApiKey {
  /** The key; shown only here */
  token: string
  apiKey: ApiKey
}

export interface CreateAdminKeyRequest {
  name: string
  /** The scopes of the key, among those that your key has */
  scopes: Array<
    | 'users:read' | 'users:write' | 'users:identity' | 'users:delete' | 'users:impersonate'
    | 'users:import' | 'users:export' | 'events:read' | 'keys:write' | 'tokens:introspect'
    | 'metrics:read' | 'status:read' | 'mails:test' | 'settings:read' | 'webhooks:write'
    | 'organizations:read' | 'organizations:write' | 'clients:read' | 'clients:write'
    | 'clients:register' | 'clients:trust'>
  /** In the future; by default the key does not expire */
  expiresAt?: string | null
}

export interface AdminKey extends ApiKey {
  /** The id of the admin key that created it; `null` if the command line did */
  createdBy: string | null
}

export interface CreatedAdminKey {
  /** The key; shown only here */
  adminKey: string
  key: AdminKey
}

export interface AdminKeyList { results: AdminKey[] }

export interface Totp {
  confirmedAt: string | null
  /** Codes that are not used */
  recoveryCodes: number
}

export type CreateTotpRequest = DeleteAccountRequest

export interface NewTotp {
  /** Base32, to type in */
  secret: string
  /** For a link on the device with the app */
  uri: string
  /** The URI as a QR code: SVG */
  qr: string
}

export type DeleteTotpRequest = DeleteAccountRequest

export interface ConfirmTotpRequest {
  /** Six digits, as the authenticator app shows them */
  code: string
}

export interface RecoveryCodes {
  /** Each signs in once in place of a code of the app; shown only here */
  recoveryCodes: string[]
}

export type CreateRecoveryCodesRequest = DeleteAccountRequest

export type CreatePasskeyOptionsRequest = DeleteAccountRequest

export interface PasskeyCreationOptions {
  /** Works once, for five minutes */
  challenge: string
  rp: { id: string; name: string }
  user: { id: string; name: string; displayName: string }
  pubKeyCredParams: Array<{ type: 'public-key'; alg: number }>
  /** Milliseconds */
  timeout: number
  excludeCredentials: Array<{ id: string; type: 'public-key'; transports?: string[] }>
  authenticatorSelection: { residentKey: 'required'; requireResidentKey: boolean; userVerification: 'required' }
  attestation: 'none'
  extensions: { credProps: boolean }
}

export interface NewPasskeyCredential {
  /** The id of the credential, in base64url */
  id: string
  /** The id of the credential, in base64url */
  rawId: string
  type: 'public-key'
  response: {
    /** What the browser has signed: the challenge and the origin, in base64url */
    clientDataJSON: string
    /** The public key, in base64url */
    attestationObject: string
    transports?: string[]
    [name: string]: unknown
  }
  [name: string]: unknown
}

export interface CreatePasskeyRequest { credential: NewPasskeyCredential; name?: string }

export interface Passkey {
  id: string
  name: string | null
  transports: string[]
  /** Whether it is synchronised among devices, as of its last use */
  backedUp: boolean
  /** ISO 8601 in UTC, with milliseconds */
  createdAt: string
  lastUsedAt: string | null
}

export interface PasskeyList { results: Passkey[] }

export type DeletePasskeyRequest = DeleteAccountRequest

export interface PasskeyRequestOptions {
  /** Works once, for five minutes */
  challenge: string
  rpId: string
  /** Milliseconds */
  timeout: number
  userVerification: 'required'
}

export interface PasskeyCredential {
  /** The id of the credential, in base64url */
  id: string
  /** The id of the credential, in base64url */
  rawId: string
  type: 'public-key'
  response: {
    /** What the browser has signed: the challenge and the origin, in base64url */
    clientDataJSON: string
    /** What the authenticator has signed, in base64url */
    authenticatorData: string
    /** The signature, in base64url */
    signature: string
    /** The id of the user, in base64url */
    userHandle?: string | null
    [name: string]: unknown
  }
  [name: string]: unknown
}

export interface SignInWithPasskeyRequest { credential: PasskeyCredential }

export interface RequestEmailCodeRequest { email: string }

export interface SignInByEmailCodeRequest {
  email: string
  /** The eight digits of the newest mail */
  emailCode: string
  /** Six digits of an authenticator app, or a recovery code */
  code?: string
}

export type RequestMagicLinkRequest = ForgotPasswordRequest

export interface CheckMagicLinkRequest { token: string }

export interface MagicLink {
  email: string
  emailVerified: boolean
  /** ISO 8601 in UTC, with milliseconds */
  requestedAt: string
  network: string | null
  userAgent: string | null
}

export interface SignInByMagicLinkRequest {
  token: string
  /** Six digits of an authenticator app, or a recovery code */
  code?: string
}

export interface AdminProvider {
  id: string
  name: string
  type: 'oidc' | 'oauth2'
  issuer: string
  scopes: string[]
  /** Whether it may open accounts */
  signUp: boolean
  /** Where the provider sends browsers back, to be entered there */
  redirectUri: string
}

export interface AdminProviderList { results: AdminProvider[] }

export interface Identity {
  id: string
  /** The id of the provider */
  provider: string
  issuer: string
  /** The user at the provider */
  subject: string
  email: string | null
  /** ISO 8601 in UTC, with milliseconds */
  linkedAt: string
  lastUsedAt: string | null
}

export interface IdentityList { results: Identity[] }

export interface StartIdentityLinkRequest {
  provider: string
  /** Needed, or with an app a code, unless you signed in or re-authenticated within the last ten minutes */
  password?: string
  /** Six digits of an authenticator app, or a recovery code */
  code?: string
}

export interface StartedFlow {
  authorizationUrl: string
  /** Works for ten minutes */
  flow: string
}

export interface LinkIdentityRequest {
  provider: string
  /** Works for ten minutes */
  flow: string
  /** Needed, or with an app a code, unless you signed in or re-authenticated within the last ten minutes */
  password?: string
  /** Six digits of an authenticator app, or a recovery code */
  code?: string
}

export type DeleteIdentityRequest = DeleteAccountRequest

export interface Provider { id: string; name: string }

export interface ProviderList { results: Provider[] }

export type StartProviderSignInRequest = ResendVerificationRequest

export interface FinishProviderSignInRequest {
  /** The whole URL to which the provider has sent the browser; absent once only the code is missing */
  url?: string
  /** Works for ten minutes */
  flow: string
  /** Six digits of an authenticator app, or a recovery code */
  code?: string
}

export interface CreateWebhookRequest {
  /** HTTPS; a query may contain a secret */
  url: string
  /** Types of events; `null`: all */
  types?: Array<AccountEvent['type']> | null
  /** By which you recognise it */
  description?: string | null
}

export interface CreatedWebhook extends Webhook {
  /** Verifies `v1` signatures; shown only here */
  secret: string
}

export interface Webhook {
  id: string
  /** Without the query, which may be secret */
  url: string
  description: string | null
  /** Types of events; `null`: all */
  types: string[] | null
  state: 'enabled' | 'paused' | 'disabled'
  /** `gone`: the receiver responded with 410; `failing`: it accepted an event at none of ten attempts */
  disabledReason: 'gone' | 'failing' | null
  /** Attempts for the next event that failed */
  failures: number
  /** The event that fails */
  failedEventId: string | null
  retryAt: string | null
  /** Verifies `v1a` signatures: `whpk_` and base64 of an Ed25519 key; `null` unless the service signs tokens with EdDSA */
  publicKey: string | null
  /** ISO 8601 in UTC, with milliseconds */
  createdAt: string
}

export interface WebhookList { results: Webhook[] }

export interface UpdateWebhookRequest {
  /** HTTPS; a query may contain a secret */
  url?: string
  /** Types of events; `null`: all */
  types?: Array<AccountEvent['type']> | null
  /** By which you recognise it */
  description?: string | null
}

export interface WebhookAttempt {
  id: string
  /** `webhook-id`: of the event, or of a ping */
  eventId: string
  type: string
  /** 1 for the first one at the event */
  attempt: number
  /** ISO 8601 in UTC, with milliseconds */
  at: string
  durationMs: number
  /** `null` without a response */
  status: number | null
  outcome: 'delivered' | 'rejected' | 'timeout' | 'connection' | 'tls' | 'blocked' | 'unresolved'
}

export interface WebhookAttemptList { results: WebhookAttempt[] }

export interface RotatedSecret {
  /** Verifies `v1` signatures; shown only here */
  secret: string
  /** ISO 8601 in UTC, with milliseconds */
  formerSecretExpiresAt: string
}

export interface RequestedPing {
  /** `webhook-id` of the message */
  id: string
}

export interface ResumeWebhookRequest {
  /** Leaves out the event that fails */
  skip?: boolean
}

export interface ReplayWebhookRequest {
  /** A timestamp, or the id of an event: the first that is delivered */
  from: string
}

export interface ReplayedWebhook extends Webhook {
  /** Events before this time may have been removed (`EVENTS_KEPT`); `null`: all are delivered */
  removedBefore: string | null
}

export interface Organization {
  id: string
  name: string
  slug: string
  /** Seats; `null` for any number */
  maxMembers: number | null
  /** ISO 8601 in UTC, with milliseconds */
  createdAt: string
  /** ISO 8601 in UTC, with milliseconds */
  updatedAt: string
}

export interface OrganizationPage {
  results: Organization[]
  /** `null` on the last page */
  nextCursor: string | null
}

export interface UpdateOrganizationRequest {
  name?: string
  /** Unique: 3 to 63 of a to z and 0 to 9, with single hyphens between them */
  slug?: string
  /** Seats; `null` for any number */
  maxMembers?: number | null
}

export interface Member {
  userId: string
  firstName: string | null
  lastName: string | null
  /** For owners, admins and administrators; `null` for other members */
  email: string | null
  roles: string[]
  /** ISO 8601 in UTC, with milliseconds */
  joinedAt: string
}

export interface MemberPage {
  results: Member[]
  /** `null` on the last page */
  nextCursor: string | null
}

export interface PutMemberOfOrganizationRequest { roles: Array<'owner' | 'admin' | 'member'> }

export interface OwnOrganization extends Organization {
  roles: string[]
  /** ISO 8601 in UTC, with milliseconds */
  joinedAt: string
}

export interface OwnOrganizationPage {
  results: OwnOrganization[]
  /** `null` on the last page */
  nextCursor: string | null
}

export interface OwnInvitation {
  id: string
  organization: { id: string; name: string }
  roles: string[]
  /** ISO 8601 in UTC, with milliseconds */
  createdAt: string
  /** ISO 8601 in UTC, with milliseconds */
  expiresAt: string
}

export interface OwnInvitationList { results: OwnInvitation[] }

export interface AcceptInvitationRequest { token: string }

export interface CreateOrganizationRequest {
  name: string
  /** Unique: 3 to 63 of a to z and 0 to 9, with single hyphens between them */
  slug?: string
}

export interface UpdateOwnOrganizationRequest {
  name?: string
  /** Unique: 3 to 63 of a to z and 0 to 9, with single hyphens between them */
  slug?: string
}

export type DeleteOwnOrganizationRequest = DeleteAccountRequest

export interface UpdateMemberRequest { roles: Array<'owner' | 'admin' | 'member'> }

export interface CreateInvitationRequest {
  email: string
  roles: Array<'owner' | 'admin' | 'member'>
  /** Where the pages of the service lead back to: a URL whose origin is in `RETURN_ORIGINS` */
  returnTo?: string
}

export interface Invitation {
  id: string
  email: string
  roles: string[]
  /** The id of the user who has sent it */
  invitedBy: string
  /** ISO 8601 in UTC, with milliseconds */
  createdAt: string
  /** ISO 8601 in UTC, with milliseconds */
  expiresAt: string
}

export interface InvitationPage {
  results: Invitation[]
  /** `null` on the last page */
  nextCursor: string | null
}

export interface CreateOAuthClientRequest {
  name: string
  /** Where users return: compared as text, except for the port of a loopback address */
  redirectUris?: string[]
  /** How the client gets tokens */
  grantTypes?: Array<
    | 'authorization_code' | 'refresh_token' | 'client_credentials'
    | 'urn:ietf:params:oauth:grant-type:device_code'>
  /** How the client authenticates; `none`: it keeps no secret */
  authMethod?: 'none' | 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt'
  /** The public keys (RFC 7517) with which the client signs assertions, for `private_key_jwt` */
  jwks?: 
    | {
      keys: Array<{
        kty: 'RSA' | 'EC' | 'OKP'
        kid?: string
        alg?: string
        use?: string
        crv?: string
        x?: string
        y?: string
        n?: string
        e?: string
      }>
    }
    | null
  /** Where these keys are instead, over HTTPS */
  jwksUri?: string | null
  /** What the client may ask users for: of OpenID Connect, of API keys, and of resources */
  scopes?: string[]
  /** Scopes of admin keys that tokens of the client’s own may have, among those of your key */
  adminScopes?: Array<
    | 'users:read' | 'users:write' | 'users:identity' | 'users:delete' | 'users:import'
    | 'users:export' | 'events:read' | 'tokens:introspect' | 'metrics:read' | 'status:read'
    | 'mails:test' | 'settings:read' | 'webhooks:write' | 'organizations:read'
    | 'organizations:write' | 'clients:read' | 'clients:write' | 'clients:register'
    | 'clients:trust'>
  /** Whether users are not asked for their consent; needs the scope `clients:trust` */
  firstParty?: boolean
  /** Whether the code flow needs PKCE; needs the scope `clients:trust` */
  requirePkce?: boolean
  /** Where users return after a logout that the client began: compared as text */
  postLogoutRedirectUris?: string[]
  /** Is sent a logout token when a session ends that the client has an ID token of */
  backchannelLogoutUri?: string | null
  /** Whether the client must push its authorization requests (RFC 9126) */
  requirePushedRequests?: boolean
  /** What signs ID tokens for the client: RS256, or the algorithm of a key of access tokens */
  idTokenAlgorithm?: 'RS256' | 'ES256' | 'EdDSA'
  /** A page about the client */
  uri?: string | null
  /** Its privacy policy */
  policyUri?: string | null
  /** Its terms of service */
  termsUri?: string | null
}

export interface CreatedOAuthClient extends OAuthClient {
  /** Shown only here; `null` for a client without a secret */
  secret: string | null
}

export interface OAuthClient {
  id: string
  /** `administrator`, `registered` for a client that has registered itself, or `document` for one with a metadata document */
  origin: string
  /** Where its metadata are, which is its `client_id`; `null`: that is its id */
  documentUrl: string | null
  name: string
  redirectUris: string[]
  grantTypes: string[]
  authMethod: string
  /** Its public keys, for `private_key_jwt` */
  jwks: { [name: string]: unknown } | null
  /** Where these keys are instead */
  jwksUri: string | null
  scopes: string[]
  adminScopes: string[]
  firstParty: boolean
  requirePkce: boolean
  postLogoutRedirectUris: string[]
  /** Learns of the end of sessions */
  backchannelLogoutUri: string | null
  requirePushedRequests: boolean
  idTokenAlgorithm: string
  /** A page about the client */
  uri: string | null
  /** Its privacy policy */
  policyUri: string | null
  /** Its terms of service */
  termsUri: string | null
  blocked: boolean
  formerSecretExpiresAt: string | null
  /** ISO 8601 in UTC, with milliseconds */
  createdAt: string
  /** ISO 8601 in UTC, with milliseconds */
  updatedAt: string
}

export interface OAuthClientPage {
  results: OAuthClient[]
  /** `null` on the last page */
  nextCursor: string | null
}

export interface UpdateOAuthClientRequest {
  name?: string
  /** Where users return: compared as text, except for the port of a loopback address */
  redirectUris?: string[]
  /** How the client gets tokens */
  grantTypes?: Array<
    | 'authorization_code' | 'refresh_token' | 'client_credentials'
    | 'urn:ietf:params:oauth:grant-type:device_code'>
  /** How the client authenticates; `none`: it keeps no secret */
  authMethod?: 'none' | 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt'
  /** The public keys (RFC 7517) with which the client signs assertions, for `private_key_jwt` */
  jwks?: 
    | {
      keys: Array<{
        kty: 'RSA' | 'EC' | 'OKP'
        kid?: string
        alg?: string
        use?: string
        crv?: string
        x?: string
        y?: string
        n?: string
        e?: string
      }>
    }
    | null
  /** Where these keys are instead, over HTTPS */
  jwksUri?: string | null
  /** What the client may ask users for: of OpenID Connect, of API keys, and of resources */
  scopes?: string[]
  /** Scopes of admin keys that tokens of the client’s own may have, among those of your key */
  adminScopes?: Array<
    | 'users:read' | 'users:write' | 'users:identity' | 'users:delete' | 'users:import'
    | 'users:export' | 'events:read' | 'tokens:introspect' | 'metrics:read' | 'status:read'
    | 'mails:test' | 'settings:read' | 'webhooks:write' | 'organizations:read'
    | 'organizations:write' | 'clients:read' | 'clients:write' | 'clients:register'
    | 'clients:trust'>
  /** Whether users are not asked for their consent; needs the scope `clients:trust` */
  firstParty?: boolean
  /** Whether the code flow needs PKCE; needs the scope `clients:trust` */
  requirePkce?: boolean
  /** Where users return after a logout that the client began: compared as text */
  postLogoutRedirectUris?: string[]
  /** Is sent a logout token when a session ends that the client has an ID token of */
  backchannelLogoutUri?: string | null
  /** Whether the client must push its authorization requests (RFC 9126) */
  requirePushedRequests?: boolean
  /** What signs ID tokens for the client: RS256, or the algorithm of a key of access tokens */
  idTokenAlgorithm?: 'RS256' | 'ES256' | 'EdDSA'
  /** A page about the client */
  uri?: string | null
  /** Its privacy policy */
  policyUri?: string | null
  /** Its terms of service */
  termsUri?: string | null
  /** Whether the client gets nothing, and its tokens are refused */
  blocked?: boolean
}

export interface RotatedClientSecret {
  /** Shown only here */
  secret: string
  /** ISO 8601 in UTC, with milliseconds */
  formerSecretExpiresAt: string
}

export interface CreateResourceRequest {
  /** An absolute URI: `resource` of requests, and `aud` of tokens */
  identifier: string
  name: string
  /** What each scope of the resource allows, in words for users */
  scopes?: { [name: string]: string }
  /** The clients that may introspect tokens for the resource */
  clientIds?: string[]
}

export interface Resource {
  id: string
  identifier: string
  name: string
  /** What each scope allows */
  scopes: { [name: string]: string }
  /** The clients that may introspect tokens for the resource */
  clientIds: string[]
  /** ISO 8601 in UTC, with milliseconds */
  createdAt: string
  /** ISO 8601 in UTC, with milliseconds */
  updatedAt: string
}

export interface ResourceList { results: Resource[] }

export interface UpdateResourceRequest {
  /** An absolute URI: `resource` of requests, and `aud` of tokens */
  identifier?: string
  name?: string
  /** What each scope of the resource allows, in words for users */
  scopes?: { [name: string]: string }
  /** The clients that may introspect tokens for the resource */
  clientIds?: string[]
}

export interface Grant {
  id: string
  client: {
    id: string
    name: string
    /** A page about the client */
    uri: string | null
  }
  scopes: string[]
  /** The resource that the access is for; `null`: your account */
  resource: string | null
  /** The id of the organization that the access is limited to; `null`: none */
  organization: string | null
  /** Whether the access ends when you sign out */
  endsWithSession: boolean
  /** ISO 8601 in UTC, with milliseconds */
  createdAt: string
  /** ISO 8601 in UTC, with milliseconds */
  lastUsedAt: string
  /** ISO 8601 in UTC, with milliseconds */
  expiresAt: string
}

export interface GrantList { results: Grant[] }

export interface DeviceRequest {
  /** Separated by spaces; by default all that the client may have */
  scope?: string
  /** The identifier of a resource (RFC 8707); by default the token is for this service */
  resource?: string[]
  /** The id of the client, unless it authenticates otherwise */
  client_id?: string
  /** For `client_secret_post` */
  client_secret?: string
  /** For `private_key_jwt` */
  client_assertion?: string
  /** For `private_key_jwt` */
  client_assertion_type?: string
  [name: string]: unknown
}

export interface DeviceCode {
  device_code: string
  /** What the device shows */
  user_code: string
  verification_uri: string
  /** With the code, for a QR code */
  verification_uri_complete: string
  /** Seconds */
  expires_in: number
  /** Seconds between two polls */
  interval: number
}

export interface PresentedToken {
  token: string
  /** Ignored */
  token_type_hint?: string
  /** The id of the client, unless it authenticates otherwise */
  client_id?: string
  /** For `client_secret_post` */
  client_secret?: string
  /** For `private_key_jwt` */
  client_assertion?: string
  /** For `private_key_jwt` */
  client_assertion_type?: string
  [name: string]: unknown
}

/** With the claims of an active token */
export interface IntrospectedClientToken { active: boolean; [name: string]: unknown }

export interface PushedRequest extends DeviceRequest {
  /** One that is registered */
  redirect_uri?: string
  /** `code` */
  response_type?: string
  /** Comes back to the client */
  state?: string
  /** `none`, `login`, `consent`, `select_account` */
  prompt?: string
  /** Seconds since the sign-in */
  max_age?: string
  /** Of the ID token */
  nonce?: string
  /** How the user must have signed in */
  acr_values?: string
  /** The e-mail of the user */
  login_hint?: string
  /** Of RFC 7636 */
  code_challenge?: string
  /** `S256` */
  code_challenge_method?: string
  /** Languages of the pages, the preferred one first */
  ui_locales?: string
  /** The id of an organization of the user that the access is to be limited to */
  organization?: string
  /** The thumbprint of the key that the code is bound to (RFC 9449) */
  dpop_jkt?: string
  /** Not supported */
  request?: string
  /** Not supported */
  request_uri?: string
}

export interface PushedAuthorizationRequest {
  request_uri: string
  /** Seconds */
  expires_in: number
}

export interface ClientDocument {
  /** Where users return: compared as text, except for the port of a loopback address */
  redirect_uris: string[]
  client_name?: string
  /** How the client authenticates; `none`: it keeps no secret */
  token_endpoint_auth_method?: 'none' | 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt'
  /** `authorization_code` and `refresh_token`; other ones are dropped */
  grant_types?: string[]
  /** `code`; other ones are dropped */
  response_types?: string[]
  /** What it may ask users for, separated by spaces */
  scope?: string
  /** The public keys (RFC 7517) with which the client signs assertions, for `private_key_jwt` */
  jwks?: 
    | {
      keys: Array<{
        kty: 'RSA' | 'EC' | 'OKP'
        kid?: string
        alg?: string
        use?: string
        crv?: string
        x?: string
        y?: string
        n?: string
        e?: string
      }>
    }
    | null
  /** Where these keys are instead, over HTTPS */
  jwks_uri?: string | null
  id_token_signed_response_alg?: 'RS256' | 'ES256' | 'EdDSA'
  /** A page about the client */
  client_uri?: string | null
  /** Its privacy policy */
  policy_uri?: string | null
  /** Its terms of service */
  tos_uri?: string | null
  [name: string]: unknown
}

/** With all metadata of the client, and `client_secret` if it has one, which is shown only here */
export interface RegisteredClient { client_id: string; [name: string]: unknown }

export type RevokedToken = Record<string, unknown>

export interface TokenRequest extends DeviceRequest {
  grant_type: string
  /** For `authorization_code` */
  code?: string
  /** For `authorization_code`: as in the authorization request */
  redirect_uri?: string
  /** For `authorization_code` (RFC 7636) */
  code_verifier?: string
  /** For `refresh_token` */
  refresh_token?: string
  /** The id of an organization of the user that the token is to be limited to */
  organization?: string
  /** For the type of device codes (RFC 8628) */
  device_code?: string
}

export interface ClientToken {
  access_token: string
  /** `DPoP`: bound to the key of the request (RFC 9449) */
  token_type: 'Bearer' | 'DPoP'
  /** Seconds */
  expires_in: number
  scope: string
  /** If the client is registered for one */
  refresh_token?: string
  /** For a code with the scope `openid` */
  id_token?: string
}

/** With the claims of the scopes `profile` and `email` */
export interface UserInfo { sub: string; [name: string]: unknown }

export interface ServerMetadata { issuer: string; jwks_uri: string; [name: string]: unknown }

export interface ResourceMetadata { resource: string; authorization_servers: string[]; [name: string]: unknown }

export interface ListOwnEventsQuery {
  limit?: number
  /** The `nextCursor` of the previous page */
  cursor?: string
  /** Newest first, or with `at` in the order in which events became visible, for consumers: then `nextCursor` is never `null`, and no event is skipped */
  sort?: '-at' | 'at'
  type?: AccountEvent['type']
  /** Strictly later */
  after?: string
  /** Strictly earlier */
  before?: string
}

export interface RemovePasswordQuery {
  /** Whether your other sessions end */
  endOthers?: boolean
}

export interface DeleteSessionsQuery { scope?: 'others' | 'all' }

export interface ListProfilesQuery {
  limit?: number
  /** The `nextCursor` of the previous page */
  cursor?: string
  sort?: 'createdAt' | '-createdAt' | 'firstName' | '-firstName' | 'lastName' | '-lastName'
  /** The start of a name */
  search?: string
}

export interface ListEventsQuery extends ListOwnEventsQuery {
  userId?: string
  /** The id of the actor: of an admin key, an API key, or a user */
  actorId?: string
  /** The address of the client. No index has it, nor `actorId`: a page compares up to 10,000 events, and may have fewer results than `limit`, or none, before the last one */
  ip?: string
}

export interface ListInvalidationsQuery {
  /** The last `cursor` of each process that has responded, separated by commas; at most 64 */
  after?: string
}

export interface GetStatusQuery {
  /** Count the users (the default, which takes longer the more there are), estimate how many there are, or neither */
  count?: true | false | 'approximate'
}

export interface ListUsersQuery {
  /** 20 by default; 100 with `ids`, so that one page holds all of them */
  limit?: number
  /** The `nextCursor` of the previous page */
  cursor?: string
  sort?: 'createdAt' | '-createdAt' | 'firstName' | '-firstName' | 'lastName' | '-lastName'
  /** The start of a name */
  search?: string
  email?: string
  disabled?: boolean
  role?: string
  /** Up to 100 ids with commas between them, in any letter case; unknown ids are ignored */
  ids?: string
  /** Strictly later. ISO 8601 with a time zone; in a URL its `+` is written `%2B` */
  createdAfter?: string
  /** Strictly earlier */
  createdBefore?: string
  /** Strictly later; excludes users without a request. Compares the stored time, which is up to a second old */
  lastRequestAfter?: string
  /** Users who signed up before this time and have made no request since, or never made one. Compares the stored time, which is up to a second old */
  lastRequestBefore?: string
  /** Count all matches too, which takes longer the more there are; or estimate how many there are */
  count?: true | false | 'approximate'
}

export interface ExportUsersQuery {
  /** Includes `passwordHash` and the `credentials` of factors, to import the users elsewhere */
  passwordHashes?: boolean
}

export type DeleteTotpQuery = RemovePasswordQuery

export type ConfirmTotpQuery = RemovePasswordQuery

export type CreateRecoveryCodesQuery = RemovePasswordQuery

export type CreatePasskeyQuery = RemovePasswordQuery

export type DeletePasskeyQuery = RemovePasswordQuery

export type DeleteIdentityQuery = RemovePasswordQuery

export interface ListOrganizationsQuery {
  limit?: number
  /** The `nextCursor` of the previous page */
  cursor?: string
  /** The start of the name */
  name?: string
  /** The start of the slug */
  slug?: string
}

export interface ListMembersOfOrganizationQuery {
  limit?: number
  /** The `nextCursor` of the previous page */
  cursor?: string
}

export type ListOrganizationsOfUserQuery = ListMembersOfOrganizationQuery

export type ListOwnOrganizationsQuery = ListMembersOfOrganizationQuery

export type ListMembersQuery = ListMembersOfOrganizationQuery

export type ListInvitationsQuery = ListMembersOfOrganizationQuery

export type ListOAuthClientsQuery = ListMembersOfOrganizationQuery

export const createClient = (options: ClientOptions) => {
  const transport = userTransport(options)
  return {
    /** Name, version and documentation of the service; redirects browsers to its pages, or to the documentation. Needs no credentials. `GET /` */
    getService: (options?: CallOptions): Call<Service> =>
      transport.json('GET', '/', { options }),
    /** Sign up. Needs no credentials. `POST /account/sign-up` */
    signUp: (body: SignUpRequest, options?: CallOptions): Call<SignedIn | Accepted> =>
      transport.signIn('POST', '/account/sign-up', { body, options }),
    /** Sign in. Needs no credentials. `POST /account/sign-in` */
    signIn: (body: SignInRequest, options?: CallOptions): Call<SignedIn> =>
      transport.signIn('POST', '/account/sign-in', { body, options }),
    /** Mail a link to reset the password, if the account exists. Needs no credentials. `POST /account/forgot-password` */
    forgotPassword: (body: ForgotPasswordRequest, options?: CallOptions): Call<Accepted> =>
      transport.json('POST', '/account/forgot-password', { body, options }),
    /** Reset the password with a mailed token; ends all earlier sessions. Needs no credentials. `POST /account/reset-password` */
    resetPassword: (body: ResetPasswordRequest, options?: CallOptions): Call<SignedIn> =>
      transport.signIn('POST', '/account/reset-password', { body, options }),
    /** Confirm an e-mail with a mailed token, in a session of the account or with its password. Needs no credentials. `POST /account/verify-email` */
    verifyEmail: (body: VerifyEmailRequest, options?: CallOptions): Call<SignedIn | Account> =>
      transport.signIn('POST', '/account/verify-email', { body, options }),
    /** Reject a mailed token: ends the change of the e-mail, or removes the account or sign-up that was never confirmed. Needs no credentials. `POST /account/verify-email/reject` */
    rejectEmail: (body: RejectEmailRequest, options?: CallOptions): Call<RejectedEmail> =>
      transport.json('POST', '/account/verify-email/reject', { body, options }),
    /** Whether the process responds; does not use the database. Needs no credentials. `GET /health` */
    getHealth: (options?: CallOptions): Call<Health> =>
      transport.json('GET', '/health', { options }),
    /** Whether this instance accepts requests. Needs no credentials. `GET /ready` */
    getReadiness: (options?: CallOptions): Call<Readiness> =>
      transport.json('GET', '/ready', { options }),
    /** Public keys of access tokens (RFC 7517); no keys if JWT_ALGORITHM is HS256. Needs no credentials. `GET /.well-known/jwks.json` */
    getJsonWebKeySet: (options?: CallOptions): Call<JsonWebKeySet> =>
      transport.json('GET', '/.well-known/jwks.json', { options }),
    /** Get your account. API keys need the scope `account:read`. `GET /account` */
    getAccount: (options?: CallOptions): Call<Account> =>
      transport.json('GET', '/account', { options }),
    /** Change your names, your language and your metadata, which is replaced as a whole; If-Match makes the change conditional. API keys need the scope `account:write`. `PUT /account` */
    updateAccount: (body: UpdateAccountRequest, options?: ConditionalCallOptions): Call<Account> =>
      transport.json('PUT', '/account', { body, options }),
    /** Remove your account and all personal data. API keys are not accepted. `DELETE /account` */
    deleteAccount: (body?: DeleteAccountRequest, options?: CallOptions): Call<void> =>
      transport.signOut('DELETE', '/account', { body, options }),
    /** Change your e-mail; takes effect when the link mailed to the new address is used. API keys are not accepted. `PUT /account/email` */
    changeEmail: (body: ChangeEmailRequest, options?: CallOptions): Call<Accepted> =>
      transport.json('PUT', '/account/email', { body, options }),
    /** List the events of your account, newest first, or follow them. API keys need the scope `account:read`. `GET /account/events` */
    listOwnEvents: (query?: ListOwnEventsQuery, options?: CallOptions): Pages<AccountEventPage> =>
      transport.pages('/account/events', query, options),
    /** Follow what `listOwnEvents` lists, as it happens, until you stop reading. API keys need the scope `account:read`. `GET /account/events` */
    streamOwnEvents: (query?: Omit<ListOwnEventsQuery, 'limit' | 'sort'>, options?: StreamOptions): AsyncGenerator<StreamedEvent<AccountEvent>, void, undefined> =>
      transport.events('/account/events', query, options),
    /** List your ways to sign in and your factors. API keys are not accepted. `GET /account/methods` */
    listMethods: (options?: CallOptions): Call<MethodList> =>
      transport.json('GET', '/account/methods', { options }),
    /** Change your password, or set the first one; ends all earlier sessions. API keys are not accepted. `PUT /account/password` */
    changePassword: (body: ChangePasswordRequest, options?: CallOptions): Call<SignedIn> =>
      transport.signIn('PUT', '/account/password', { body, options }),
    /** Remove your password, if you have another way to sign in. API keys are not accepted. `DELETE /account/password` */
    removePassword: (body?: RemovePasswordRequest, query?: RemovePasswordQuery, options?: CallOptions): Call<void> =>
      transport.json('DELETE', '/account/password', { query, body, options }),
    /** Prove your identity: for ten minutes, this session can use the routes that need it. API keys are not accepted. `POST /account/reauthenticate` */
    reauthenticate: (body: ReauthenticateRequest, options?: CallOptions): Call<void> =>
      transport.json('POST', '/account/reauthenticate', { body, options }),
    /** List your sessions, newest first, at most 1,000. API keys are not accepted. `GET /account/sessions` */
    listSessions: (options?: CallOptions): Call<SessionList> =>
      transport.json('GET', '/account/sessions', { options }),
    /** End your other sessions, or all of them. API keys are not accepted. `DELETE /account/sessions` */
    deleteSessions: (query?: DeleteSessionsQuery, options?: CallOptions): Call<void> =>
      transport.json('DELETE', '/account/sessions', { query, options }),
    /** End one of your sessions. API keys are not accepted. `DELETE /account/sessions/{id}` */
    deleteSession: (id: string, options?: CallOptions): Call<void> =>
      transport.json('DELETE', `/account/sessions/${segment(id)}`, { options }),
    /** Sign out: end this session, and those of further cookies ACCESS_TOKEN. API keys are not accepted. `POST /account/sign-out` */
    signOut: (options?: CallOptions): Call<void> =>
      transport.signOut('POST', '/account/sign-out', { options }),
    /** Mail the verification link again, unless the e-mail is verified. API keys are not accepted. `POST /account/verify-email/resend` */
    resendVerification: (body?: ResendVerificationRequest, options?: CallOptions): Call<Accepted> =>
      transport.json('POST', '/account/verify-email/resend', { body, options }),
    /** List profiles of users, page by page. API keys need the scope `users:read`. `GET /users` */
    listProfiles: (query?: ListProfilesQuery, options?: CallOptions): Pages<ProfilePage> =>
      transport.pages('/users', query, options),
    /** List your API keys, newest first. API keys are not accepted. `GET /account/api-keys` */
    listApiKeys: (options?: CallOptions): Call<ApiKeyList> =>
      transport.json('GET', '/account/api-keys', { options }),
    /** Create an API key: a token for your programs. The response shows it for the only time. API keys are not accepted. `POST /account/api-keys` */
    createApiKey: (body: CreateApiKeyRequest, options?: CallOptions): Call<CreatedApiKey> =>
      transport.json('POST', '/account/api-keys', { body, options }),
    /** Revoke an API key. API keys are not accepted. `DELETE /account/api-keys/{id}` */
    deleteApiKey: (id: string, options?: CallOptions): Call<void> =>
      transport.json('DELETE', `/account/api-keys/${segment(id)}`, { options }),
    /** Whether you have an authenticator app, and how many recovery codes are left. API keys are not accepted. `GET /account/totp` */
    getTotp: (options?: CallOptions): Call<Totp> =>
      transport.json('GET', '/account/totp', { options }),
    /** Get a secret for an authenticator app. Confirm it within an hour. API keys are not accepted. `POST /account/totp` */
    createTotp: (body?: CreateTotpRequest, options?: CallOptions): Call<NewTotp> =>
      transport.json('POST', '/account/totp', { body, options }),
    /** Remove the authenticator app and the recovery codes. API keys are not accepted. `DELETE /account/totp` */
    deleteTotp: (body?: DeleteTotpRequest, query?: DeleteTotpQuery, options?: CallOptions): Call<void> =>
      transport.json('DELETE', '/account/totp', { query, body, options }),
    /** Confirm the secret with a code of the app. From now on, your password needs a code too. API keys are not accepted. `POST /account/totp/confirm` */
    confirmTotp: (body: ConfirmTotpRequest, query?: ConfirmTotpQuery, options?: CallOptions): Call<RecoveryCodes> =>
      transport.json('POST', '/account/totp/confirm', { query, body, options }),
    /** Get new recovery codes. The former ones do not work any more. API keys are not accepted. `POST /account/recovery-codes` */
    createRecoveryCodes: (body?: CreateRecoveryCodesRequest, query?: CreateRecoveryCodesQuery, options?: CallOptions): Call<RecoveryCodes> =>
      transport.json('POST', '/account/recovery-codes', { query, body, options }),
    /** Begin to add a passkey: get options for navigator.credentials.create. API keys are not accepted. `POST /account/passkeys/options` */
    createPasskeyOptions: (body?: CreatePasskeyOptionsRequest, options?: CallOptions): Call<PasskeyCreationOptions> =>
      transport.json('POST', '/account/passkeys/options', { body, options }),
    /** List your passkeys, newest first. API keys are not accepted. `GET /account/passkeys` */
    listPasskeys: (options?: CallOptions): Call<PasskeyList> =>
      transport.json('GET', '/account/passkeys', { options }),
    /** Add the passkey that the browser has made: it signs in without e-mail and password. API keys are not accepted. `POST /account/passkeys` */
    createPasskey: (body: CreatePasskeyRequest, query?: CreatePasskeyQuery, options?: CallOptions): Call<Passkey> =>
      transport.json('POST', '/account/passkeys', { query, body, options }),
    /** Remove a passkey. API keys are not accepted. `DELETE /account/passkeys/{id}` */
    deletePasskey: (id: string, body?: DeletePasskeyRequest, query?: DeletePasskeyQuery, options?: CallOptions): Call<void> =>
      transport.json('DELETE', `/account/passkeys/${segment(id)}`, { query, body, options }),
    /** Begin to sign in with a passkey: get options for navigator.credentials.get. Needs no credentials. `POST /account/sign-in/passkey/options` */
    createPasskeySignInOptions: (options?: CallOptions): Call<PasskeyRequestOptions> =>
      transport.json('POST', '/account/sign-in/passkey/options', { options }),
    /** Sign in with a passkey. Needs no credentials. `POST /account/sign-in/passkey` */
    signInWithPasskey: (body: SignInWithPasskeyRequest, options?: CallOptions): Call<SignedIn> =>
      transport.signIn('POST', '/account/sign-in/passkey', { body, options }),
    /** Mail a code to sign in with, if the account exists. Needs no credentials. `POST /account/email-code` */
    requestEmailCode: (body: RequestEmailCodeRequest, options?: CallOptions): Call<Accepted> =>
      transport.json('POST', '/account/email-code', { body, options }),
    /** Sign in with a mailed code. Needs no credentials. `POST /account/sign-in/email-code` */
    signInByEmailCode: (body: SignInByEmailCodeRequest, options?: CallOptions): Call<SignedIn> =>
      transport.signIn('POST', '/account/sign-in/email-code', { body, options }),
    /** Mail a link to sign in with, if the account exists. Needs no credentials. `POST /account/magic-link` */
    requestMagicLink: (body: RequestMagicLinkRequest, options?: CallOptions): Call<Accepted> =>
      transport.json('POST', '/account/magic-link', { body, options }),
    /** The account of a mailed link, and from where it was asked for. The link stays valid. Needs no credentials. `POST /account/magic-link/check` */
    checkMagicLink: (body: CheckMagicLinkRequest, options?: CallOptions): Call<MagicLink> =>
      transport.json('POST', '/account/magic-link/check', { body, options }),
    /** Sign in with the token of a mailed link. Needs no credentials. `POST /account/sign-in/magic-link` */
    signInByMagicLink: (body: SignInByMagicLinkRequest, options?: CallOptions): Call<SignedIn> =>
      transport.signIn('POST', '/account/sign-in/magic-link', { body, options }),
    /** List your accounts of other providers, newest first. API keys are not accepted. `GET /account/identities` */
    listIdentities: (options?: CallOptions): Call<IdentityList> =>
      transport.json('GET', '/account/identities', { options }),
    /** Begin to link an account of a provider: get the URL to open. API keys are not accepted. `POST /account/identities` */
    startIdentityLink: (body: StartIdentityLinkRequest, options?: CallOptions): Call<StartedFlow> =>
      transport.json('POST', '/account/identities', { body, options }),
    /** Link the identity of a sign-in that found an account with its e-mail: this one. API keys are not accepted. `POST /account/identities/link` */
    linkIdentity: (body: LinkIdentityRequest, options?: CallOptions): Call<Identity> =>
      transport.json('POST', '/account/identities/link', { body, options }),
    /** Unlink an account of a provider. API keys are not accepted. `DELETE /account/identities/{id}` */
    deleteIdentity: (id: string, body?: DeleteIdentityRequest, query?: DeleteIdentityQuery, options?: CallOptions): Call<void> =>
      transport.json('DELETE', `/account/identities/${segment(id)}`, { query, body, options }),
    /** List the providers with whose accounts users sign in. Needs no credentials. `GET /account/sign-in/providers` */
    listProviders: (options?: CallOptions): Call<ProviderList> =>
      transport.json('GET', '/account/sign-in/providers', { options }),
    /** Begin to sign in with a provider: get the URL to open. Needs no credentials. `POST /account/sign-in/providers/{id}` */
    startProviderSignIn: (id: string, body: StartProviderSignInRequest, options?: CallOptions): Call<StartedFlow> =>
      transport.json('POST', `/account/sign-in/providers/${segment(id)}`, { body, options }),
    /** Sign in with the callback of a provider, or link the identity. Needs no credentials. `POST /account/sign-in/providers/{id}/callback` */
    finishProviderSignIn: (id: string, body: FinishProviderSignInRequest, options?: CallOptions): Call<SignedIn | Identity> =>
      transport.signIn('POST', `/account/sign-in/providers/${segment(id)}/callback`, { body, options }),
    /** List the invitations that wait for your confirmed e-mail; the mail has the link to accept. API keys need the scope `organizations:read`. `GET /account/invitations` */
    listOwnInvitations: (options?: CallOptions): Call<OwnInvitationList> =>
      transport.json('GET', '/account/invitations', { options }),
    /** Accept an invitation to your e-mail with the token of its mail, which confirms the e-mail too. API keys need the scope `organizations:write`. `POST /account/invitations/accept` */
    acceptInvitation: (body: AcceptInvitationRequest, options?: CallOptions): Call<Organization> =>
      transport.json('POST', '/account/invitations/accept', { body, options }),
    /** List your organizations, with your roles there, in the order in which you joined them. API keys need the scope `organizations:read`. `GET /organizations` */
    listOwnOrganizations: (query?: ListOwnOrganizationsQuery, options?: CallOptions): Pages<OwnOrganizationPage> =>
      transport.pages('/organizations', query, options),
    /** Create an organization, of which you are the owner; without a slug it gets one from its name. API keys need the scope `organizations:write`. `POST /organizations` */
    createOrganization: (body: CreateOrganizationRequest, options?: CallOptions): Call<Organization> =>
      transport.json('POST', '/organizations', { body, options }),
    /** Get one of your organizations, with your roles there. API keys need the scope `organizations:read`. `GET /organizations/{organizationId}` */
    getOwnOrganization: (organizationId: string, options?: CallOptions): Call<OwnOrganization> =>
      transport.json('GET', `/organizations/${segment(organizationId)}`, { options }),
    /** Change the name or the slug of an organization that you own. API keys need the scope `organizations:write`. `PUT /organizations/{organizationId}` */
    updateOwnOrganization: (organizationId: string, body: UpdateOwnOrganizationRequest, options?: CallOptions): Call<Organization> =>
      transport.json('PUT', `/organizations/${segment(organizationId)}`, { body, options }),
    /** Delete an organization that you own, with its memberships and invitations. API keys are not accepted. `DELETE /organizations/{organizationId}` */
    deleteOwnOrganization: (organizationId: string, body?: DeleteOwnOrganizationRequest, options?: CallOptions): Call<void> =>
      transport.json('DELETE', `/organizations/${segment(organizationId)}`, { body, options }),
    /** List the members of an organization in the order in which they joined; e-mails for owners and admins only. API keys need the scope `organizations:read`. `GET /organizations/{organizationId}/members` */
    listMembers: (organizationId: string, query?: ListMembersQuery, options?: CallOptions): Pages<MemberPage> =>
      transport.pages(`/organizations/${segment(organizationId)}/members`, query, options),
    /** Change the roles of a member; admins cannot give or take the roles owner and admin. API keys need the scope `organizations:write`. `PUT /organizations/{organizationId}/members/{userId}` */
    updateMember: (organizationId: string, userId: string, body: UpdateMemberRequest, options?: CallOptions): Call<Member> =>
      transport.json('PUT', `/organizations/${segment(organizationId)}/members/${segment(userId)}`, { body, options }),
    /** Remove a member as owner or admin, or leave: with your own id. API keys need the scope `organizations:write`. `DELETE /organizations/{organizationId}/members/{userId}` */
    removeMember: (organizationId: string, userId: string, options?: CallOptions): Call<void> =>
      transport.json('DELETE', `/organizations/${segment(organizationId)}/members/${segment(userId)}`, { options }),
    /** List the invitations of an organization that wait, newest first. API keys need the scope `organizations:read`. `GET /organizations/{organizationId}/invitations` */
    listInvitations: (organizationId: string, query?: ListInvitationsQuery, options?: CallOptions): Pages<InvitationPage> =>
      transport.pages(`/organizations/${segment(organizationId)}/invitations`, query, options),
    /** Mail an invitation, which works for seven days; it replaces another one of the same e-mail. API keys need the scope `organizations:write`. `POST /organizations/{organizationId}/invitations` */
    createInvitation: (organizationId: string, body: CreateInvitationRequest, options?: CallOptions): Call<Invitation> =>
      transport.json('POST', `/organizations/${segment(organizationId)}/invitations`, { body, options }),
    /** Revoke an invitation. API keys need the scope `organizations:write`. `DELETE /organizations/{organizationId}/invitations/{invitationId}` */
    revokeInvitation: (organizationId: string, invitationId: string, options?: CallOptions): Call<void> =>
      transport.json('DELETE', `/organizations/${segment(organizationId)}/invitations/${segment(invitationId)}`, { options }),
    /** List the applications that have access to your account, the last used first. API keys are not accepted. `GET /account/grants` */
    listGrants: (options?: CallOptions): Call<GrantList> =>
      transport.json('GET', '/account/grants', { options }),
    /** End the access of an application. Its tokens end at once. API keys are not accepted. `DELETE /account/grants/{id}` */
    deleteGrant: (id: string, options?: CallOptions): Call<void> =>
      transport.json('DELETE', `/account/grants/${segment(id)}`, { options }),
    /** Register a client of its own accord (RFC 7591), if OAUTH_REGISTRATION allows it. Needs no credentials. `POST /oauth/register` */
    registerClient: (body: ClientDocument, options?: CallOptions): Call<RegisteredClient> =>
      transport.json('POST', '/oauth/register', { body, options }),
    /** Who has granted the access token, which needs the scope openid (OpenID Connect Core §5.3). Needs no credentials. `GET /oauth/userinfo` */
    getUserInfo: (options?: CallOptions): Call<UserInfo> =>
      transport.json('GET', '/oauth/userinfo', { options }),
    /** Who has granted the access token, which needs the scope openid (OpenID Connect Core §5.3). Needs no credentials. `POST /oauth/userinfo` */
    postUserInfo: (options?: CallOptions): Call<UserInfo> =>
      transport.json('POST', '/oauth/userinfo', { options }),
    /** Metadata of the authorization server, for clients and for verifiers of tokens (RFC 8414). Needs no credentials. `GET /.well-known/oauth-authorization-server` */
    getServerMetadata: (options?: CallOptions): Call<ServerMetadata> =>
      transport.json('GET', '/.well-known/oauth-authorization-server', { options }),
    /** Metadata of the authorization server, for clients and for verifiers of tokens (RFC 8414). Needs no credentials. `GET /.well-known/openid-configuration` */
    getOpenIdMetadata: (options?: CallOptions): Call<ServerMetadata> =>
      transport.json('GET', '/.well-known/openid-configuration', { options }),
    /** Metadata of the service as a resource that tokens open (RFC 9728). Needs no credentials. `GET /.well-known/oauth-protected-resource` */
    getResourceMetadata: (options?: CallOptions): Call<ResourceMetadata> =>
      transport.json('GET', '/.well-known/oauth-protected-resource', { options }),
  }
}

/** What users and everybody may do. */
export interface Client extends ReturnType<typeof createClient> {}

export const createAdminClient = (options: AdminClientOptions) => {
  const transport = adminTransport(options)
  return {
    /** List the audit log, newest first, or follow it. Needs the scope `events:read`. `GET /admin/events` */
    listEvents: (query?: ListEventsQuery, options?: CallOptions): Pages<AuditEventPage> =>
      transport.pages('/admin/events', query, options),
    /** Follow what `listEvents` lists, as it happens, until you stop reading. Needs the scope `events:read`. `GET /admin/events` */
    streamEvents: (query?: Omit<ListEventsQuery, 'limit' | 'sort'>, options?: StreamOptions): AsyncGenerator<StreamedEvent<AuditEvent>, void, undefined> =>
      transport.events('/admin/events', query, options),
    /** Ask whether access tokens or API keys are valid now (RFC 7662); as a form or as JSON. Needs the scope `tokens:introspect`. `POST /admin/introspect` */
    introspectToken: (body: IntrospectTokenRequest, options?: CallOptions): Call<Introspection | Introspections> =>
      transport.json('POST', '/admin/introspect', { body, options }),
    /** Wait up to 400 ms for users, keys and clients whose introspection must be asked again. Needs the scope `tokens:introspect`. `GET /admin/invalidations` */
    listInvalidations: (query?: ListInvalidationsQuery, options?: CallOptions): Call<Invalidations> =>
      transport.json('GET', '/admin/invalidations', { query, options }),
    /** Send a mail with examples at once, and tell why the mail server refuses it. Needs the scope `mails:test`. `POST /admin/mails/test` */
    sendTestMail: (body: SendTestMailRequest, options?: CallOptions): Call<TestMail> =>
      transport.json('POST', '/admin/mails/test', { body, options }),
    /** Metrics in the text format of Prometheus; with WORKERS, of all workers. Needs the scope `metrics:read`. `GET /admin/metrics` */
    getMetrics: (options?: CallOptions): Call<string> =>
      transport.text('GET', '/admin/metrics', { options }),
    /** List every setting of the responding process, without secrets. Needs the scope `settings:read`. `GET /admin/settings` */
    listSettings: (options?: CallOptions): Call<SettingList> =>
      transport.json('GET', '/admin/settings', { options }),
    /** The version, the settings that matter for measurements, and the number of users. Needs the scope `status:read`. `GET /admin/status` */
    getStatus: (query?: GetStatusQuery, options?: CallOptions): Call<Status> =>
      transport.json('GET', '/admin/status', { query, options }),
    /** List users, page by page. Needs the scope `users:read`. `GET /admin/users` */
    listUsers: (query?: ListUsersQuery, options?: CallOptions): Pages<AdminUserPage> =>
      transport.pages('/admin/users', query, options),
    /** Create an account; without a password the user has to reset it first. Needs the scope `users:write`. `emailVerified`, `password`, `passwordHash`, `roles` need `users:identity` instead. `POST /admin/users` */
    createUser: (body: CreateUserRequest, options?: CallOptions): Call<AdminUser> =>
      transport.json('POST', '/admin/users', { body, options }),
    /** Get a user; the ETag covers neither the last request nor identities. Needs the scope `users:read`. `GET /admin/users/{id}` */
    getUser: (id: string, options?: CallOptions): Call<AdminUser> =>
      transport.json('GET', `/admin/users/${segment(id)}`, { options }),
    /** Change a user; disabling ends all sessions; If-Match makes the change conditional. Needs the scope `users:write`. `email`, `emailVerified`, `roles` need `users:identity` instead. `PUT /admin/users/{id}` */
    updateUser: (id: string, body: UpdateUserRequest, options?: ConditionalCallOptions): Call<AdminUser> =>
      transport.json('PUT', `/admin/users/${segment(id)}`, { body, options }),
    /** Remove a user and all their data. Needs the scope `users:delete`. `DELETE /admin/users/{id}` */
    deleteUser: (id: string, options?: CallOptions): Call<void> =>
      transport.json('DELETE', `/admin/users/${segment(id)}`, { options }),
    /** Remove the authenticator app, recovery codes and passkeys of a user who has lost them. Needs the scope `users:identity`. `DELETE /admin/users/{id}/factors` */
    deleteUserFactors: (id: string, options?: CallOptions): Call<void> =>
      transport.json('DELETE', `/admin/users/${segment(id)}/factors`, { options }),
    /** Impersonate a user for an hour; logged as an event, sets no cookie. Needs the scope `users:impersonate`. `POST /admin/users/{id}/impersonate` */
    impersonateUser: (id: string, options?: CallOptions): Call<SignedIn> =>
      transport.json('POST', `/admin/users/${segment(id)}/impersonate`, { options }),
    /** Mail a user a link to choose another password, or the first one. Needs the scope `users:write`. `POST /admin/users/{id}/password-reset` */
    sendPasswordReset: (id: string, options?: CallOptions): Call<void> =>
      transport.json('POST', `/admin/users/${segment(id)}/password-reset`, { options }),
    /** Mail a user a link to confirm the e-mail, unless it is confirmed. Needs the scope `users:write`. `POST /admin/users/{id}/email-verification` */
    sendEmailVerification: (id: string, options?: CallOptions): Call<void> =>
      transport.json('POST', `/admin/users/${segment(id)}/email-verification`, { options }),
    /** List the sessions of a user, newest first, at most 1,000. Needs the scope `users:read`. `GET /admin/users/{id}/sessions` */
    listUserSessions: (id: string, options?: CallOptions): Call<SessionList> =>
      transport.json('GET', `/admin/users/${segment(id)}/sessions`, { options }),
    /** End all sessions of a user. Needs the scope `users:write`. `DELETE /admin/users/{id}/sessions` */
    deleteUserSessions: (id: string, options?: CallOptions): Call<void> =>
      transport.json('DELETE', `/admin/users/${segment(id)}/sessions`, { options }),
    /** End a session of a user. Needs the scope `users:write`. `DELETE /admin/users/{id}/sessions/{sessionId}` */
    deleteUserSession: (id: string, sessionId: string, options?: CallOptions): Call<void> =>
      transport.json('DELETE', `/admin/users/${segment(id)}/sessions/${segment(sessionId)}`, { options }),
    /** Export all users in order of creation, one per line. Needs the scope `users:export`. `GET /admin/users/export` */
    exportUsers: (query?: ExportUsersQuery, options?: CallOptions): AsyncGenerator<ExportedUser, void, undefined> =>
      transport.lines('GET', '/admin/users/export', { query, options }),
    /** Import users, one per line; the results are streamed while lines arrive. Needs the scope `users:import`. `POST /admin/users/import` */
    importUsers: (lines: Iterable<ImportedUser> | AsyncIterable<ImportedUser>, options?: CallOptions): AsyncGenerator<ImportedLine, void, undefined> =>
      transport.importLines('POST', '/admin/users/import', lines, options),
    /** List the API keys of a user, newest first. Needs the scope `users:read`. `GET /admin/users/{id}/api-keys` */
    listUserApiKeys: (id: string, options?: CallOptions): Call<ApiKeyList> =>
      transport.json('GET', `/admin/users/${segment(id)}/api-keys`, { options }),
    /** Revoke an API key of a user. Needs the scope `users:write`. `DELETE /admin/users/{id}/api-keys/{keyId}` */
    deleteUserApiKey: (id: string, keyId: string, options?: CallOptions): Call<void> =>
      transport.json('DELETE', `/admin/users/${segment(id)}/api-keys/${segment(keyId)}`, { options }),
    /** List all admin keys, newest first; without those of the configuration. Needs the scope `keys:write`. `GET /admin/keys` */
    listAdminKeys: (options?: CallOptions): Call<AdminKeyList> =>
      transport.json('GET', '/admin/keys', { options }),
    /** Create an admin key with scopes. The response shows it for the only time. Needs the scope `keys:write`. `POST /admin/keys` */
    createAdminKey: (body: CreateAdminKeyRequest, options?: CallOptions): Call<CreatedAdminKey> =>
      transport.json('POST', '/admin/keys', { body, options }),
    /** Revoke an admin key whose scopes your key has; ends the impersonated sessions that it opened. Needs the scope `keys:write`. `DELETE /admin/keys/{id}` */
    deleteAdminKey: (id: string, options?: CallOptions): Call<void> =>
      transport.json('DELETE', `/admin/keys/${segment(id)}`, { options }),
    /** List the providers of OIDC_PROVIDERS, without their secrets. Needs the scope `settings:read`. `GET /admin/providers` */
    listConfiguredProviders: (options?: CallOptions): Call<AdminProviderList> =>
      transport.json('GET', '/admin/providers', { options }),
    /** List the accounts of a user at other providers, newest first. Needs the scope `users:read`. `GET /admin/users/{id}/identities` */
    listUserIdentities: (id: string, options?: CallOptions): Call<IdentityList> =>
      transport.json('GET', `/admin/users/${segment(id)}/identities`, { options }),
    /** Unlink an account of a user at a provider. Needs the scope `users:identity`. `DELETE /admin/users/{id}/identities/{identityId}` */
    deleteUserIdentity: (id: string, identityId: string, options?: CallOptions): Call<void> =>
      transport.json('DELETE', `/admin/users/${segment(id)}/identities/${segment(identityId)}`, { options }),
    /** List all webhooks. Needs the scope `webhooks:write`. `GET /admin/webhooks` */
    listWebhooks: (options?: CallOptions): Call<WebhookList> =>
      transport.json('GET', '/admin/webhooks', { options }),
    /** Create a webhook, which gets every event from now on. The response shows its secret for the only time. Needs the scope `webhooks:write`. `POST /admin/webhooks` */
    createWebhook: (body: CreateWebhookRequest, options?: CallOptions): Call<CreatedWebhook> =>
      transport.json('POST', '/admin/webhooks', { body, options }),
    /** Get a webhook. Needs the scope `webhooks:write`. `GET /admin/webhooks/{id}` */
    getWebhook: (id: string, options?: CallOptions): Call<Webhook> =>
      transport.json('GET', `/admin/webhooks/${segment(id)}`, { options }),
    /** Change a webhook. What is not given stays; an event that fails is sent again at once. Needs the scope `webhooks:write`. `PUT /admin/webhooks/{id}` */
    updateWebhook: (id: string, body: UpdateWebhookRequest, options?: CallOptions): Call<Webhook> =>
      transport.json('PUT', `/admin/webhooks/${segment(id)}`, { body, options }),
    /** Delete a webhook. Needs the scope `webhooks:write`. `DELETE /admin/webhooks/{id}` */
    deleteWebhook: (id: string, options?: CallOptions): Call<void> =>
      transport.json('DELETE', `/admin/webhooks/${segment(id)}`, { options }),
    /** List the last 100 attempts to deliver, newest first. Needs the scope `webhooks:write`. `GET /admin/webhooks/{id}/attempts` */
    listWebhookAttempts: (id: string, options?: CallOptions): Call<WebhookAttemptList> =>
      transport.json('GET', `/admin/webhooks/${segment(id)}/attempts`, { options }),
    /** Get a new secret. The former one signs, too, for a day. Needs the scope `webhooks:write`. `POST /admin/webhooks/{id}/rotate-secret` */
    rotateWebhookSecret: (id: string, options?: CallOptions): Call<RotatedSecret> =>
      transport.json('POST', `/admin/webhooks/${segment(id)}/rotate-secret`, { options }),
    /** Send a `webhook.ping` soon, also to a webhook that is paused or disabled. See its attempts. Needs the scope `webhooks:write`. `POST /admin/webhooks/{id}/ping` */
    pingWebhook: (id: string, options?: CallOptions): Call<RequestedPing> =>
      transport.json('POST', `/admin/webhooks/${segment(id)}/ping`, { options }),
    /** Pause a webhook. Its events wait. Needs the scope `webhooks:write`. `POST /admin/webhooks/{id}/pause` */
    pauseWebhook: (id: string, options?: CallOptions): Call<Webhook> =>
      transport.json('POST', `/admin/webhooks/${segment(id)}/pause`, { options }),
    /** Deliver what waits, at once, also to a webhook that is disabled. Needs the scope `webhooks:write`. `POST /admin/webhooks/{id}/resume` */
    resumeWebhook: (id: string, body?: ResumeWebhookRequest, options?: CallOptions): Call<Webhook> =>
      transport.json('POST', `/admin/webhooks/${segment(id)}/resume`, { body, options }),
    /** Deliver again from a time or an event on. Needs the scope `webhooks:write`. `POST /admin/webhooks/{id}/replay` */
    replayWebhook: (id: string, body: ReplayWebhookRequest, options?: CallOptions): Call<ReplayedWebhook> =>
      transport.json('POST', `/admin/webhooks/${segment(id)}/replay`, { body, options }),
    /** List organizations, oldest first; with `name` or `slug` those that begin with it, sorted by it. Needs the scope `organizations:read`. `GET /admin/organizations` */
    listOrganizations: (query?: ListOrganizationsQuery, options?: CallOptions): Pages<OrganizationPage> =>
      transport.pages('/admin/organizations', query, options),
    /** Get an organization. Needs the scope `organizations:read`. `GET /admin/organizations/{organizationId}` */
    getOrganization: (organizationId: string, options?: CallOptions): Call<Organization> =>
      transport.json('GET', `/admin/organizations/${segment(organizationId)}`, { options }),
    /** Change an organization, also the number of its seats. Needs the scope `organizations:write`. `PUT /admin/organizations/{organizationId}` */
    updateOrganization: (organizationId: string, body: UpdateOrganizationRequest, options?: CallOptions): Call<Organization> =>
      transport.json('PUT', `/admin/organizations/${segment(organizationId)}`, { body, options }),
    /** Delete an organization, with its memberships and invitations. Needs the scope `organizations:write`. `DELETE /admin/organizations/{organizationId}` */
    deleteOrganization: (organizationId: string, options?: CallOptions): Call<void> =>
      transport.json('DELETE', `/admin/organizations/${segment(organizationId)}`, { options }),
    /** List the members of an organization in the order in which they joined. Needs the scope `organizations:read`. `GET /admin/organizations/{organizationId}/members` */
    listMembersOfOrganization: (organizationId: string, query?: ListMembersOfOrganizationQuery, options?: CallOptions): Pages<MemberPage> =>
      transport.pages(`/admin/organizations/${segment(organizationId)}/members`, query, options),
    /** Add a user to an organization, or change the roles of a member. Needs the scope `organizations:write`. `PUT /admin/organizations/{organizationId}/members/{userId}` */
    putMemberOfOrganization: (organizationId: string, userId: string, body: PutMemberOfOrganizationRequest, options?: CallOptions): Call<Member> =>
      transport.json('PUT', `/admin/organizations/${segment(organizationId)}/members/${segment(userId)}`, { body, options }),
    /** Remove a member from an organization. Needs the scope `organizations:write`. `DELETE /admin/organizations/{organizationId}/members/{userId}` */
    removeMemberOfOrganization: (organizationId: string, userId: string, options?: CallOptions): Call<void> =>
      transport.json('DELETE', `/admin/organizations/${segment(organizationId)}/members/${segment(userId)}`, { options }),
    /** List the organizations of a user, with the roles there, in the order in which the user joined them. Needs the scope `organizations:read`. `GET /admin/users/{id}/organizations` */
    listOrganizationsOfUser: (id: string, query?: ListOrganizationsOfUserQuery, options?: CallOptions): Pages<OwnOrganizationPage> =>
      transport.pages(`/admin/users/${segment(id)}/organizations`, query, options),
    /** List the clients of the authorization server, oldest first. Needs the scope `clients:read`. `GET /admin/clients` */
    listOAuthClients: (query?: ListOAuthClientsQuery, options?: CallOptions): Pages<OAuthClientPage> =>
      transport.pages('/admin/clients', query, options),
    /** Register a client of the authorization server. The response shows its secret for the only time. Needs the scope `clients:write`. `firstParty`, `requirePkce` need `clients:trust` instead. `POST /admin/clients` */
    createOAuthClient: (body: CreateOAuthClientRequest, options?: CallOptions): Call<CreatedOAuthClient> =>
      transport.json('POST', '/admin/clients', { body, options }),
    /** Get a client of the authorization server. Needs the scope `clients:read`. `GET /admin/clients/{id}` */
    getOAuthClient: (id: string, options?: CallOptions): Call<OAuthClient> =>
      transport.json('GET', `/admin/clients/${segment(id)}`, { options }),
    /** Change a client. What is not given stays; tokens lose at once what the client may not do any more. Needs the scope `clients:write`. `firstParty`, `requirePkce` need `clients:trust` instead. `PUT /admin/clients/{id}` */
    updateOAuthClient: (id: string, body: UpdateOAuthClientRequest, options?: CallOptions): Call<OAuthClient> =>
      transport.json('PUT', `/admin/clients/${segment(id)}`, { body, options }),
    /** Delete a client. Its tokens and grants end at once. Needs the scope `clients:write`. `DELETE /admin/clients/{id}` */
    deleteOAuthClient: (id: string, options?: CallOptions): Call<void> =>
      transport.json('DELETE', `/admin/clients/${segment(id)}`, { options }),
    /** Get a new secret. The current one is valid for another day. Needs the scope `clients:write`. `POST /admin/clients/{id}/rotate-secret` */
    rotateClientSecret: (id: string, options?: CallOptions): Call<RotatedClientSecret> =>
      transport.json('POST', `/admin/clients/${segment(id)}/rotate-secret`, { options }),
    /** List all resources, oldest first. Needs the scope `clients:read`. `GET /admin/resources` */
    listResources: (options?: CallOptions): Call<ResourceList> =>
      transport.json('GET', '/admin/resources', { options }),
    /** Add a resource: an API that accepts tokens which the authorization server issues for it. Needs the scope `clients:write`. `POST /admin/resources` */
    createResource: (body: CreateResourceRequest, options?: CallOptions): Call<Resource> =>
      transport.json('POST', '/admin/resources', { body, options }),
    /** Get a resource. Needs the scope `clients:read`. `GET /admin/resources/{id}` */
    getResource: (id: string, options?: CallOptions): Call<Resource> =>
      transport.json('GET', `/admin/resources/${segment(id)}`, { options }),
    /** Change a resource. What is not given stays. Needs the scope `clients:write`. `PUT /admin/resources/{id}` */
    updateResource: (id: string, body: UpdateResourceRequest, options?: CallOptions): Call<Resource> =>
      transport.json('PUT', `/admin/resources/${segment(id)}`, { body, options }),
    /** Delete a resource. No further tokens are issued for it. Needs the scope `clients:write`. `DELETE /admin/resources/{id}` */
    deleteResource: (id: string, options?: CallOptions): Call<void> =>
      transport.json('DELETE', `/admin/resources/${segment(id)}`, { options }),
  }
}

/** What an admin key may do, depending on its scopes. */
export interface AdminClient extends ReturnType<typeof createAdminClient> {}
