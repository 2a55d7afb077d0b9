/** What a client is told of an error, whatever it is: the one place where errors become answers (§7, DESIGN §3). */
import { ERRORS, type ErrorBody, type ErrorName, errorBody, ServiceError } from '../errors.ts'
import { type FieldViolation, fieldErrors } from '../validation/validation.ts'

export interface ErrorResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: ErrorBody
  readonly redirectTo?: string | undefined
}

/** Fastify's own errors, by its codes: their messages quote what the client sent. */
const FRAMEWORK: Readonly<Record<string, ErrorName>> = {
  FST_ERR_BAD_URL: 'badUrl',
  FST_ERR_CTP_BODY_TOO_LARGE: 'bodyTooLarge',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'badRequest',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupportedMediaType',
}

/** What libraries raise when the process has no descriptor left; Node's loader says so in the message alone. */
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

/** RFC 9110 §15.5.2: a 401 carries a challenge; where the route has none of its own, how to come in is by a token. */
const challenge = (status: number): Record<string, string> =>
  status === 401 ? { 'www-authenticate': 'Bearer' } : {}

const answerService = ({ status, headers, field, message, redirectTo }: ServiceError): ErrorResponse => ({
  status,
  headers: { ...challenge(status), ...headers },
  body: errorBody(field, message),
  redirectTo,
})

const isErrorStatus = (status: unknown): status is number =>
  Number.isInteger(status) && (status as number) >= 400 && (status as number) <= 599

const UNFORESEEN: ErrorResponse = {
  status: ERRORS.unforeseen.status,
  headers: {},
  body: errorBody(ERRORS.unforeseen.field, ERRORS.unforeseen.message),
}

/**
 * @param error whatever was thrown, also what is no Error at all.
 * @param production whether the messages of unforeseen errors are hidden (§7.2).
 */
export const errorResponseFor = (error: unknown, production: boolean): ErrorResponse => {
  try {
    return describe(error, production)
  } catch {
    // An error whose own properties throw.
    return UNFORESEEN
  }
}

const describe = (error: unknown, production: boolean): ErrorResponse => {
  if (error instanceof ServiceError) return answerService(error)
  const raised = (typeof error === 'string' ? { message: error } : (error ?? {})) as Raised
  const { message, code, statusCode, validation } = raised
  const known = typeof code === 'string' ? FRAMEWORK[code] : undefined
  if (known !== undefined) return answerService(new ServiceError(known))
  if (lacksDescriptors(raised)) return answerService(new ServiceError('overloaded'))
  if (Array.isArray(validation)) {
    return { status: 400, headers: {}, body: { errors: fieldErrors(validation as FieldViolation[]) } }
  }
  const status = isErrorStatus(statusCode) ? statusCode : 500
  const hidden = status >= 500 && production
  const text = typeof message === 'string' && message !== '' && !hidden ? message : ERRORS.unforeseen.message
  return { status, headers: challenge(status), body: errorBody('global', text) }
}
