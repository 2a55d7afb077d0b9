/**
 * The errors of the core (docs/design.md, "Errors"): status, field and message. Features declare theirs with {@link defineErrors}.
 * `npm run documents` writes both to docs/errors.tsv.
 */

export interface ErrorDefinition {
  readonly status: number
  /** The key in the `errors` body; `global` for errors that do not concern one field (§7). */
  readonly field: string
  readonly message: string
  /** Seconds for `Retry-After`. */
  readonly retryAfter?: number
}

/** An error of a feature. */
export interface DeclaredError extends ErrorDefinition {
  /** Its name, which log lines have. */
  readonly code: string
}

/**
 * Declares the errors of a feature: `defineErrors({ noteNotFound: { status: 404, field: 'global', message: 'There is no such note' } })`.
 * @returns them by name, for `throw new ServiceError(ERRORS.noteNotFound)`.
 */
export const defineErrors = <Name extends string>(
  definitions: Readonly<Record<Name, ErrorDefinition>>,
): Readonly<Record<Name, DeclaredError>> => {
  const declared = Object.entries<ErrorDefinition>(definitions).map(([code, each]) => [
    code,
    { code, ...each },
  ])
  return Object.fromEntries(declared) as Record<Name, DeclaredError>
}

const define = (status: number, field: string, message: string, retryAfter?: number): ErrorDefinition =>
  retryAfter === undefined ? { status, field, message } : { status, field, message, retryAfter }

const PASSWORD_IS_EMAIL = 'must not be the e-mail or the part of it before the @: choose another'

const PASSWORD_BREACHED = 'is known from data breaches: choose another, which you use nowhere else'

export const ERRORS = defineErrors({
  badRequest: define(400, 'global', 'The request is not valid HTTP'),
  badHost: define(400, 'global', 'The request needs exactly one valid Host header'),
  badUrl: define(400, 'global', 'The URL is not valid'),
  duplicateCredentials: define(
    400,
    'global',
    'The request has more than one Authorization or X-Admin-Key header',
  ),
  bodyRequired: define(400, 'global', 'The body must be a JSON object'),
  malformedJson: define(400, 'global', 'The body is not valid JSON'),
  malformedForm: define(400, 'global', 'The body is not a valid form: write % as %25'),
  duplicateKey: define(400, 'global', 'The body names a property twice'),
  dangerousKey: define(400, 'global', 'The body has a property with a forbidden name'),
  notUtf8: define(400, 'global', 'The body is not valid UTF-8'),
  wrongPassword: define(400, 'password', 'is wrong'),
  wrongCode: define(400, 'code', 'is wrong'),
  passwordRequired: define(400, 'password', 'is required'),
  codeRequired: define(400, 'code', 'is required'),
  wrongCurrentPassword: define(400, 'currentPassword', 'is wrong'),
  currentPasswordRequired: define(400, 'currentPassword', 'is required'),
  passwordIsEmail: define(400, 'password', PASSWORD_IS_EMAIL),
  newPasswordIsEmail: define(400, 'newPassword', PASSWORD_IS_EMAIL),
  passwordBreached: define(400, 'password', PASSWORD_BREACHED),
  newPasswordBreached: define(400, 'newPassword', PASSWORD_BREACHED),
  newPasswordIsCurrent: define(400, 'newPassword', 'must differ from the current password: choose another'),
  passwordAndHash: define(400, 'passwordHash', 'cannot be given with a password'),
  emailIsCurrent: define(400, 'email', 'is already the e-mail of this account'),
  badEmailToken: define(400, 'token', 'is not valid or has expired'),
  expiresInPast: define(400, 'expiresAt', 'must be in the future'),
  badCursor: define(400, 'cursor', 'is not a cursor of this list'),
  signInRequired: define(401, 'global', 'Sign in to use this route'),
  severalUsers: define(
    401,
    'global',
    'The cookies name several users: sign out, which ends all of these sessions, then sign in again',
  ),
  adminKeyRequired: define(401, 'global', 'This route needs a valid admin key'),
  wrongCredentials: define(401, 'credentials', 'The e-mail or the password is wrong'),
  secondFactorRequired: define(401, 'code', 'is required'),
  wrongSecondFactor: define(401, 'code', 'is wrong'),
  impersonated: define(403, 'global', 'An impersonated session cannot do this'),
  forbidden: define(403, 'global', 'This is not allowed'),
  sessionRequired: define(403, 'global', 'This needs a session: sign in, API keys are not accepted here'),
  rootKeyRequired: define(
    403,
    'global',
    'This needs the key ADMIN_KEY: keys with scopes are not accepted here',
  ),
  scopeRequired: define(403, 'global', 'This needs a scope that the key does not have'),
  reauthenticationRequired: define(
    403,
    'global',
    'This needs a sign-in within the last ten minutes: send your password or a code too, or use POST /account/reauthenticate first',
  ),
  multiFactorRequired: define(
    403,
    'global',
    'This needs two factors: sign in with a passkey, or send a code of your authenticator app to POST /account/reauthenticate',
  ),
  accountProofRequired: define(
    403,
    'global',
    'This needs the account too: sign in to it, or send its password, and its code if it has an authenticator app',
  ),
  roleRequired: define(403, 'global', 'This needs a role that you do not have'),
  emailNotVerified: define(403, 'global', 'The e-mail is not verified: see the mail that was sent to it'),
  accountDisabled: define(403, 'global', 'This account is disabled'),
  csrf: define(403, 'global', 'A page of another site cannot send this request'),
  routeNotFound: define(404, 'global', 'There is no such route'),
  userNotFound: define(404, 'global', 'There is no such user'),
  sessionNotFound: define(404, 'global', 'There is no such session'),
  passwordNotFound: define(404, 'global', 'Your account has no password'),
  methodNotAllowed: define(405, 'global', 'This route does not support this method'),
  requestTimeout: define(408, 'global', 'The request did not arrive in time'),
  emailTaken: define(409, 'email', 'is already taken'),
  lastSignInMethod: define(
    409,
    'global',
    'This is your last way to sign in: add another one first, such as a password or a passkey',
  ),
  versionChanged: define(412, 'global', 'The user has changed since: read it again'),
  bodyTooLarge: define(413, 'global', 'The body is too large'),
  unsupportedMediaType: define(415, 'global', 'The body must be application/json'),
  formOrJsonRequired: define(
    415,
    'global',
    'The body must be application/json or application/x-www-form-urlencoded',
  ),
  ndjsonRequired: define(415, 'global', 'The body must be application/x-ndjson'),
  contentCodingNotSupported: define(415, 'global', 'The body must not have a Content-Encoding'),
  charsetNotSupported: define(415, 'global', 'The body must be UTF-8'),
  expectationFailed: define(417, 'global', 'The expectation cannot be met'),
  tooManyRequests: define(429, 'global', 'Too many requests', 1),
  tooManyEventStreams: define(
    429,
    'global',
    'Too many event streams are open with this credential: close one',
    1,
  ),
  tooManyStreamsOfNetwork: define(
    429,
    'global',
    'Too many event streams are open from your network: close one',
    1,
  ),
  headersTooLarge: define(431, 'global', 'The header fields are too large or too many'),
  clientClosedRequest: define(499, 'global', 'The client disconnected'),
  internalError: define(500, 'global', 'Something went wrong'),
  transferCodingNotSupported: define(501, 'global', 'The Transfer-Encoding must be chunked'),
  overloaded: define(503, 'global', 'The service is busy, try again', 1),
  storeUnavailable: define(503, 'global', 'The database is not available, try again', 1),
  draining: define(503, 'global', 'This instance is shutting down', 1),
  versionNotSupported: define(505, 'global', 'The version must be HTTP/1.1 or HTTP/1.0'),
})

export type ErrorName = keyof typeof ERRORS

export interface ErrorDetails {
  readonly headers?: Readonly<Record<string, string>>
  /** The scopes that the admin key does not have, for the challenge of the response. */
  readonly missingAdminScopes?: readonly string[]
  /** Where browsers are redirected with the message (§7.2). From the configuration, never from the request. */
  readonly redirectTo?: string
  /** For errors that anonymous clients can cause without limit: logged at `debug`, so that they cannot fill a disk. */
  readonly quiet?: boolean
  /** For signs of an attack that anonymous clients can cause: logged once a minute for each address and this name. */
  readonly sampledAs?: string
  /** For failures of another server, or of its settings: logged at `warn`, once a second for each kind, as every 503 is. */
  readonly isOutage?: boolean
  /** Further properties of the log line, such as the reason. Never sent; no secret and no personal data. */
  readonly logged?: Readonly<Record<string, string>>
  /** The underlying error; logged, never sent. */
  readonly cause?: unknown
}

/** Messages by field, as in the body of every error (§7.1). */
export type FieldErrors = Readonly<Record<string, readonly string[]>>

/** The body of every error. */
export interface ErrorBody {
  errors: Record<string, string[]>
}

export const errorBody = (field: string, message: string): ErrorBody => ({ errors: { [field]: [message] } })

/** An error of the core, `throw new ServiceError('userNotFound')`, or of a feature, see {@link defineErrors}. It has no stack. */
export class ServiceError extends Error {
  readonly code: string
  readonly status: number
  readonly field: string
  readonly headers: Readonly<Record<string, string>>
  readonly missingAdminScopes: readonly string[] | undefined
  readonly redirectTo: string | undefined
  readonly quiet: boolean
  readonly sampledAs: string | undefined
  readonly isOutage: boolean
  readonly logged: Readonly<Record<string, string>> | undefined

  constructor(error: ErrorName | DeclaredError, details: ErrorDetails = {}) {
    const { code, status, field, message, retryAfter } = typeof error === 'string' ? ERRORS[error] : error
    const { stackTraceLimit } = Error
    // Clients cause these errors, and nothing shows the stack: capturing it takes nine tenths of their time.
    Error.stackTraceLimit = 0
    super(message, { cause: details.cause })
    Error.stackTraceLimit = stackTraceLimit
    this.name = 'ServiceError'
    this.code = code
    this.status = status
    this.field = field
    this.headers = retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }
    if (details.headers !== undefined) this.headers = { ...this.headers, ...details.headers }
    this.missingAdminScopes = details.missingAdminScopes
    this.redirectTo = details.redirectTo
    this.quiet = details.quiet ?? false
    this.sampledAs = details.sampledAs
    this.isOutage = details.isOutage ?? status === 503
    this.logged = details.logged
  }

  /** The status, under Fastify's name, for error handlers of a host application. */
  get statusCode(): number {
    return this.status
  }

  /** The messages by field, for error handlers of a host application. */
  get errors(): ErrorBody['errors'] {
    return errorBody(this.field, this.message).errors
  }
}

/** A message for a context that does not show its field. */
export const sentence = (field: string, message: string): string =>
  field === 'global' ? message : `The ${field} ${message}`
