/** Rules for request lines and header fields that Node does not enforce: `Host`, framing, duplicate credentials, `Expect`. */
import type { IncomingMessage } from 'node:http'
import { isIPv6 } from 'node:net'
import type { ErrorName } from '#base/errors'
import { ADMIN_KEY_HEADER } from './admin-key-header.ts'

/** The authority of a URL (RFC 3986 §3.2) without user: a DNS name, an IPv4 address or brackets, and a port that may be empty. */
const AUTHORITY = /^(?:\w[\w-]*(?:\.\w[\w-]*)*\.?|\[([\da-f:.]+)\])(?::(\d{0,5}))?$/i

const MAX_PORT = 65_535

const isAuthority = (text: string): boolean => {
  const [matched, address, port = ''] = AUTHORITY.exec(text) ?? []
  return matched !== undefined && (address === undefined || isIPv6(address)) && Number(port) <= MAX_PORT
}

/** The last valid `Host`: most requests have the same one, and comparing is cheaper than matching. */
let lastValid = ''

/** Whether `Host` (RFC 9112 §3.2) is a name that DNS allows, or an IP address: no user, nothing percent-encoded. */
export const isHost = (text: string): boolean => {
  if (text === lastValid && text !== '') return true
  if (!isAuthority(text)) return false
  lastValid = text
  return true
}

/** The authority of `http://authority/path`. The router rejects other targets. */
const ABSOLUTE = /^[a-z][a-z\d+.-]*:\/\/([^/?#]*)/i

/** Whether a target in absolute form has a valid authority; true for other targets. */
export const hasValidAuthority = (target: string): boolean => {
  const authority = ABSOLUTE.exec(target)?.[1]
  return authority === undefined || isAuthority(authority)
}

const SLASH = '/'.charCodeAt(0)

/** Compares with the usual spelling first, then in lower case. */
const isNamed = (name: string, usual: string, lower: string): boolean =>
  name === usual || name.toLowerCase() === lower

/**
 * The header fields that framing, routing and authentication depend on, counted as they were sent. Of duplicates Node keeps the
 * first, but a proxy in front may use another.
 */
export class CheckedFields {
  hosts = 0
  host = ''
  authorizations = 0
  adminKeys = 0
  transferCoding = false
  upgrade = false

  constructor(rawHeaders: readonly string[]) {
    for (let index = 0; index < rawHeaders.length; index += 2) {
      this.#count(rawHeaders[index] as string, rawHeaders[index + 1] as string)
    }
  }

  #count(name: string, value: string): void {
    // Comparing lengths first skips nearly all other fields.
    switch (name.length) {
      case 4:
        if (!isNamed(name, 'Host', 'host')) break
        this.hosts += 1
        this.host = value
        break
      case 7:
        if (name.toLowerCase() === 'upgrade') this.upgrade = true
        break
      case 11:
        if (name.toLowerCase() === ADMIN_KEY_HEADER) this.adminKeys += 1
        break
      case 13:
        if (isNamed(name, 'Authorization', 'authorization')) this.authorizations += 1
        break
      case 17:
        if (name.toLowerCase() === 'transfer-encoding') this.transferCoding = true
        break
    }
  }
}

/** @returns the error of a request whose end is ambiguous, so that the connection has to close after the response. */
export const framingError = (
  { httpVersion, headers }: IncomingMessage,
  { transferCoding }: CheckedFields,
): ErrorName | null => {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return 'versionNotSupported'
  if (!transferCoding) return null
  // RFC 9112 §6.1: HTTP/1.0 has no Transfer-Encoding.
  if (httpVersion === '1.0') return 'badRequest'
  return headers['transfer-encoding']?.toLowerCase() === 'chunked' ? null : 'transferCodingNotSupported'
}

/** @returns the error of a request whose end is known, so that the connection can stay open. */
export const fieldError = (
  { httpVersion, url = '/', headers }: IncomingMessage,
  { hosts, host, authorizations, adminKeys }: CheckedFields,
): ErrorName | null => {
  // RFC 9112 §3.2; HTTP/1.0 allows requests without Host.
  if (hosts === 0 ? httpVersion !== '1.0' : hosts > 1 || !isHost(host)) return 'badHost'
  if (url.charCodeAt(0) !== SLASH && !hasValidAuthority(url)) return 'badUrl'
  if (authorizations > 1 || adminKeys > 1) return 'duplicateCredentials'
  if (headers.expect !== undefined && headers.expect.toLowerCase() !== '100-continue') {
    return 'expectationFailed'
  }
  return null
}
