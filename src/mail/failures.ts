/** What can be said of a mail that could not be sent: servers repeat addresses in their answers, so those are not. */

interface TransportError extends Error {
  readonly code?: string
  readonly responseCode?: number
  readonly response?: string
  readonly command?: string
  /** nodemailer's reading of `responseCode`. */
  readonly permanent?: boolean
  readonly syscall?: string
}

/** Codes of nodemailer: the address or the message was refused, by the server or before it was asked. */
const REFUSALS: ReadonlySet<unknown> = new Set(['EENVELOPE', 'EMESSAGE'])

/** Codes of nodemailer whose messages are about the connection. */
const CONNECTION: ReadonlySet<unknown> = new Set(['ECONNECTION', 'ESOCKET', 'ETIMEDOUT', 'EDNS', 'ETLS'])

/**
 * Whether another attempt would end alike: the server refuses this mail for good (5xx, RFC 5321 §4.2.1). Refused
 * credentials or a server that serves nobody are none of the mail's fault, and may be mended meanwhile.
 */
export const isPermanent = (error: unknown): boolean => {
  const { code, permanent, responseCode } = error as TransportError
  return REFUSALS.has(code) && (permanent === true || responseCode === undefined)
}

/** Why, without the server's own words. */
export const describe = (error: unknown): string => {
  const { name, message, code, responseCode, response, command, syscall } = error as TransportError
  if (responseCode !== undefined) {
    const enhanced = /^\d{3}[ -](\d\.\d{1,3}\.\d{1,3})\b/.exec(response ?? '')?.[1]
    return [responseCode, enhanced, 'to', command].filter(part => part !== undefined).join(' ')
  }
  return syscall !== undefined || CONNECTION.has(code) ? message : (code ?? name)
}

/** What is logged in place of the transport's error. */
export class MailFailure extends Error {
  constructor(reason: string) {
    super(reason)
    this.name = 'MailFailure'
  }
}
