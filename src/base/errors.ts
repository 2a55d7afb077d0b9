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

type WithDefaults = Omit<ErrorDefinition, 'field'> & Partial<Pick<ErrorDefinition, 'field'>>

/**
 * Declares the errors of a feature: `defineErrors({ noteNotFound: { status: 404, message: 'There is no such note' } })`. Their field is
 * `global` unless they name one.
 * @returns them by name, for `throw new ServiceError(ERRORS.noteNotFound)`.
 */
export const defineErrors = <Name extends string>(
  definitions: Readonly<Record<Name, WithDefaults>>,
): Readonly<Record<Name, DeclaredError>> => {
  const declared = Object.entries<WithDefaults>(definitions).map(([code, each]) => [
    code,
    { code, field: 'global', ...each },
  ])
  return Object.fromEntries(declared) as Record<Name, DeclaredError>
}

/** Clients may repeat what these statuses refuse, after a second. */
const PASSING = [429, 503]

const define = (status: number, message: string, field = 'global'): ErrorDefinition =>
  PASSING.includes(status) ? { status, field, message, retryAfter: 1 } : { status, field, message }

const PASSWORD_IS_EMAIL = 'must not be the e-mail or the part of it before the @: choose another'

const PASSWORD_BREACHED = 'is known from data breaches: choose another, which you use nowhere else'

export const ERRORS = defineErrors({
  badRequest: define(400, 'The request is not valid HTTP'),
  badHost: define(400, 'The request needs exactly one valid Host header'),
  badUrl: define(400, 'The URL is not valid'),
  duplicateCredentials: define(400, 'The request has more than one Authorization or X-Admin-Key header'),
  bodyRequired: define(400, 'The body must be a JSON object'),
  malformedJson: define(400, 'The body is not valid JSON'),
  malformedForm: define(400, 'The body is not a valid form: write % as %25'),
  duplicateKey: define(400, 'The body names a property twice'),
  dangerousKey: define(400, 'The body has a property with a forbidden name'),
  notUtf8: define(400, 'The body is not valid UTF-8'),
  wrongPassword: define(400, 'is wrong', 'password'),
  wrongCode: define(400, 'is wrong', 'code'),
  passwordRequired: define(400, 'is required', 'password'),
  codeRequired: define(400, 'is required', 'code'),
  wrongCurrentPassword: define(400, 'is wrong', 'currentPassword'),
  currentPasswordRequired: define(400, 'is required', 'currentPassword'),
  passwordIsEmail: define(400, PASSWORD_IS_EMAIL, 'password'),
  newPasswordIsEmail: define(400, PASSWORD_IS_EMAIL, 'newPassword'),
  passwordBreached: define(400, PASSWORD_BREACHED, 'password'),
  newPasswordBreached: define(400, PASSWORD_BREACHED, 'newPassword'),
  newPasswordIsCurrent: define(400, 'must differ from the current password: choose another', 'newPassword'),
  passwordAndHash: define(400, 'cannot be given with a password', 'passwordHash'),
  emailIsCurrent: define(400, 'is already the e-mail of this account', 'email'),
  badEmailToken: define(400, 'is not valid or has expired', 'token'),
  tokenRequired: define(400, 'is required', 'token'),
  tokenAndTokens: define(400, 'cannot be given with a token', 'tokens'),
  expiresInPast: define(400, 'must be in the future', 'expiresAt'),
  addressInvalid: define(400, 'must be an IP address', 'ip'),
  badCursor: define(400, 'is not a cursor of this list', 'cursor'),
  signInRequired: define(401, 'Sign in to use this route'),
  severalUsers: define(
    401,
    'The cookies name several users: sign out, which ends all of these sessions, then sign in again',
  ),
  adminKeyRequired: define(401, 'This route needs a valid admin key'),
  wrongCredentials: define(401, 'The e-mail or the password is wrong', 'credentials'),
  secondFactorRequired: define(401, 'is required', 'code'),
  wrongSecondFactor: define(401, 'is wrong', 'code'),
  signInStepEnded: define(401, 'has ended: sign in with your password again', 'step'),
  impersonated: define(403, 'An impersonated session cannot do this'),
  forbidden: define(403, 'This is not allowed'),
  sessionRequired: define(403, 'This needs a session: sign in, API keys are not accepted here'),
  rootKeyRequired: define(403, 'This needs the key ADMIN_KEY: keys with scopes are not accepted here'),
  scopeRequired: define(403, 'This needs a scope that the key does not have'),
  reauthenticationRequired: define(
    403,
    'This needs a sign-in within the last ten minutes: send your password or a code too, or use POST /account/reauthenticate first',
  ),
  multiFactorRequired: define(
    403,
    'This needs two factors: sign in with a passkey, or send a code of your authenticator app to POST /account/reauthenticate',
  ),
  accountProofRequired: define(
    403,
    'This needs the account too: sign in to it, or send its password, and its code if it has an authenticator app',
  ),
  roleRequired: define(403, 'This needs a role that you do not have'),
  emailNotVerified: define(403, 'The e-mail is not verified: see the mail that was sent to it'),
  accountDisabled: define(403, 'This account is disabled'),
  csrf: define(403, 'A page of another site cannot send this request'),
  routeNotFound: define(404, 'There is no such route'),
  userNotFound: define(404, 'There is no such user'),
  sessionNotFound: define(404, 'There is no such session'),
  passwordNotFound: define(404, 'Your account has no password'),
  methodNotAllowed: define(405, 'This route does not support this method'),
  requestTimeout: define(408, 'The request did not arrive in time'),
  emailTaken: define(409, 'is already taken', 'email'),
  lastSignInMethod: define(
    409,
    'This is your last way to sign in: add another one first, such as a password or a passkey',
  ),
  mailsOff: define(409, 'MAIL_URL is off: no mails are sent'),
  mailNotSent: define(409, 'The mail was not sent'),
  versionChanged: define(412, 'The user has changed since: read it again'),
  bodyTooLarge: define(413, 'The body is too large'),
  unsupportedMediaType: define(415, 'The body must be application/json'),
  formOrJsonRequired: define(415, 'The body must be application/json or application/x-www-form-urlencoded'),
  formRequired: define(415, 'The body must be application/x-www-form-urlencoded'),
  ndjsonRequired: define(415, 'The body must be application/x-ndjson'),
  contentCodingNotSupported: define(415, 'The body must not have a Content-Encoding'),
  charsetNotSupported: define(415, 'The body must be UTF-8'),
  expectationFailed: define(417, 'The expectation cannot be met'),
  tooManyRequests: define(429, 'Too many requests'),
  tooManyEventStreams: define(429, 'Too many event streams are open with this credential: close one'),
  tooManyStreamsOfNetwork: define(429, 'Too many event streams are open from your network: close one'),
  headersTooLarge: define(431, 'The header fields are too large or too many'),
  clientClosedRequest: define(499, 'The client disconnected'),
  internalError: define(500, 'Something went wrong'),
  transferCodingNotSupported: define(501, 'The Transfer-Encoding must be chunked'),
  overloaded: define(503, 'The service is busy, try again'),
  storeUnavailable: define(503, 'The database is not available, try again'),
  draining: define(503, 'This instance is shutting down'),
  versionNotSupported: define(505, 'The version must be HTTP/1.1 or HTTP/1.0'),
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
