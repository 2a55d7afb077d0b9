/** Errors of `/oauth/…`: the members of the RFCs beside the one body of the service (RFC 6749 §5.2). */
import { type FieldErrors, ServiceError, sentence } from '#base/errors'
import type { RequestError } from './authorization-request.ts'
import { ERRORS } from './definitions.ts'

/** An authorization request that is refused before there is a browser to bring the error. */
export class RefusedRequest extends ServiceError {
  /** The value of `error`. */
  readonly error: string

  constructor({ error, description }: RequestError) {
    super({ ...ERRORS.invalidRequest, message: description })
    this.error = error
  }
}

/** The values of `error` by the codes of errors. */
const NAMES: Readonly<Record<string, string>> = {
  [ERRORS.invalidClient.code]: 'invalid_client',
  [ERRORS.invalidGrant.code]: 'invalid_grant',
  [ERRORS.invalidToken.code]: 'invalid_token',
  [ERRORS.openidRequired.code]: 'insufficient_scope',
  [ERRORS.invalidScope.code]: 'invalid_scope',
  [ERRORS.invalidTarget.code]: 'invalid_target',
  [ERRORS.severalResources.code]: 'invalid_target',
  [ERRORS.authorizationPending.code]: 'authorization_pending',
  [ERRORS.slowDown.code]: 'slow_down',
  [ERRORS.accessDenied.code]: 'access_denied',
  [ERRORS.expiredToken.code]: 'expired_token',
  [ERRORS.invalidProof.code]: 'invalid_dpop_proof',
  [ERRORS.proofNonceRequired.code]: 'use_dpop_nonce',
  [ERRORS.unauthorizedClient.code]: 'unauthorized_client',
  [ERRORS.unsupportedGrantType.code]: 'unsupported_grant_type',
  [ERRORS.registrationOff.code]: 'access_denied',
  [ERRORS.registrationKeyRequired.code]: 'invalid_token',
  [ERRORS.registrationScopeRequired.code]: 'insufficient_scope',
}

const nameOf = (raised: unknown): string | undefined => {
  if (raised instanceof RefusedRequest) return raised.error
  if (!(raised instanceof ServiceError)) return undefined
  return raised.status === 401 ? (NAMES[raised.code] ?? 'invalid_token') : NAMES[raised.code]
}

const nameOfStatus = (status: number): string => {
  if (status === 429 || status === 503) return 'temporarily_unavailable'
  return status >= 500 ? 'server_error' : 'invalid_request'
}

/** RFC 6749 §5.2: visible ASCII and spaces, without quotes and backslashes. */
const asDescription = (text: string): string => text.replaceAll(/["\\]/g, "'").replaceAll(/[^ -~]/g, '?')

/** @param error that was raised. @returns the members beside `errors`. */
export const oauthMembers = (error: unknown, status: number, errors: FieldErrors) => ({
  error: nameOf(error) ?? nameOfStatus(status),
  error_description: asDescription(
    Object.entries(errors)
      .flatMap(([field, messages]) => messages.map(message => sentence(field, message)))
      .join(', '),
  ),
})

/** The members for the registration of clients (RFC 7591 §3.2.2). */
export const registrationMembers = (error: unknown, status: number, errors: FieldErrors) => {
  const members = oauthMembers(error, status, errors)
  if (status !== 400) return members
  const isOfUri = Object.keys(errors).some(field => /^redirect_uris\b/.test(field))
  return { ...members, error: isOfUri ? 'invalid_redirect_uri' : 'invalid_client_metadata' }
}
