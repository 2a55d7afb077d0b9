/** Maps every error of a request to its response (§7; docs/design.md, "Errors"). */
import { ERRORS, type ErrorBody, type ErrorName, errorBody, ServiceError, sentence } from '#base/errors'
import { insufficientScopes } from './admin-key-header.ts'
import { type FieldViolation, fieldErrors } from './validation/field-errors.ts'

export interface ErrorResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: ErrorBody
  readonly redirectTo?: string | undefined
}

/** Fastify's own errors by code. Their messages are replaced because they quote what the client sent. */
const FRAMEWORK: Readonly<Record<string, ErrorName>> = {
  FST_ERR_BAD_URL: 'badUrl',
  FST_ERR_CTP_BODY_TOO_LARGE: 'bodyTooLarge',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'badRequest',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupportedMediaType',
}

/** Whether the process ran out of file descriptors. Node's module loader reports it only in the message. */
const lacksDescriptors = ({ code, message }: Raised): boolean =>
  code === 'EMFILE' ||
  code === 'ENFILE' ||
  (typeof message === 'string' && /too many open files/i.test(message))

interface Raised {
  readonly message?: unknown
  readonly code?: unknown
  readonly statusCode?: unknown
  readonly validation?: unknown
}

/** RFC 9110 §15.5.2: a 401 has a challenge; the default is a bearer token. */
const challenge = (status: number): Record<string, string> =>
  status === 401 ? { 'www-authenticate': 'Bearer' } : {}

const serviceErrorResponse = ({
  status,
  headers,
  field,
  message,
  missingAdminScopes,
  redirectTo,
}: ServiceError): ErrorResponse => ({
  status,
  headers: {
    ...challenge(status),
    ...(missingAdminScopes && insufficientScopes(missingAdminScopes)),
    ...headers,
  },
  body: errorBody(field, message),
  redirectTo,
})

const isErrorStatus = (status: unknown): status is number =>
  Number.isInteger(status) && (status as number) >= 400 && (status as number) <= 599

const UNFORESEEN: ErrorResponse = {
  status: ERRORS.internalError.status,
  headers: {},
  body: errorBody(ERRORS.internalError.field, ERRORS.internalError.message),
}

interface ErrorResponseOptions {
  /** Hides the messages of unforeseen errors (§7.2). */
  readonly isProduction: boolean
}

/** @param error any thrown value, also one that is not an `Error`. */
export const errorResponseFor = (error: unknown, options: ErrorResponseOptions): ErrorResponse => {
  try {
    return describe(error, options)
  } catch {
    // Reading the error's own properties threw.
    return UNFORESEEN
  }
}

const describe = (error: unknown, { isProduction }: ErrorResponseOptions): ErrorResponse => {
  if (error instanceof ServiceError) return serviceErrorResponse(error)
  const raised = (typeof error === 'string' ? { message: error } : (error ?? {})) as Raised
  const { message, code, statusCode, validation } = raised
  const known = typeof code === 'string' ? FRAMEWORK[code] : undefined
  if (known !== undefined) return serviceErrorResponse(new ServiceError(known))
  if (lacksDescriptors(raised)) return serviceErrorResponse(new ServiceError('overloaded'))
  if (Array.isArray(validation)) {
    return { status: 400, headers: {}, body: { errors: fieldErrors(validation as FieldViolation[]) } }
  }
  const status = isErrorStatus(statusCode) ? statusCode : 500
  // The message of a failed operation of the store quotes the database.
  const hidden = status >= 500 && (isProduction || code === 'OPERATION')
  const text =
    typeof message === 'string' && message !== '' && !hidden ? message : ERRORS.internalError.message
  return { status, headers: challenge(status), body: errorBody('global', text) }
}

const PLACEHOLDER = 'http://placeholder.invalid'

/** @returns the target of a redirect with the messages as `error` in its query. */
export const withErrors = (target: string, errors: ErrorBody['errors']): string => {
  // The target may be a path of this service: the parser needs an origin, which is removed again.
  const location = new URL(target, PLACEHOLDER)
  const sentences = Object.entries(errors).flatMap(([field, messages]) =>
    messages.map(message => sentence(field, message)),
  )
  location.searchParams.set('error', sentences.join(', '))
  return location.href.replace(PLACEHOLDER, '')
}
