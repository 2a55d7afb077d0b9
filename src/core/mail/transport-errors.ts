/** Errors of transports: whether to retry, and what to log. Servers repeat addresses in their responses, so those are not logged. */

interface TransportError extends Error {
  readonly code?: string
  readonly responseCode?: number
  readonly response?: string
  readonly command?: string
  /** nodemailer's reading of `responseCode`. */
  readonly permanent?: boolean
  readonly syscall?: string
}

/** Codes of nodemailer for an address or message that was refused, by the server or before it was contacted. */
const REFUSALS: ReadonlySet<unknown> = new Set(['EENVELOPE', 'EMESSAGE'])

/** Codes of nodemailer whose messages describe the connection, and contain no address. */
const CONNECTION_ERRORS: ReadonlySet<unknown> = new Set([
  'ECONNECTION',
  'ESOCKET',
  'ETIMEDOUT',
  'EDNS',
  'ETLS',
])

/**
 * Whether further attempts are pointless: the server refuses this mail permanently (5xx, RFC 5321 §4.2.1). Refused
 * credentials, or a server that refuses all clients, do not concern the mail and can be fixed meanwhile.
 */
export const isPermanent = (error: unknown): boolean => {
  const { code, permanent, responseCode } = error as TransportError
  return REFUSALS.has(code) && (permanent === true || responseCode === undefined)
}

/** The reason without the server's text, which can repeat addresses. */
export const describeError = (error: unknown): string => {
  const { name, message, code, responseCode, response, command, syscall } = error as TransportError
  if (responseCode !== undefined) {
    const enhanced = /^\d{3}[ -](\d\.\d{1,3}\.\d{1,3})\b/.exec(response ?? '')?.[1]
    return [responseCode, enhanced, 'to', command].filter(part => part !== undefined).join(' ')
  }
  return syscall !== undefined || CONNECTION_ERRORS.has(code) ? message : (code ?? name)
}

/** What is logged instead of the transport's error. */
export class MailFailure extends Error {
  constructor(reason: string) {
    super(reason)
    this.name = 'MailFailure'
  }
}
