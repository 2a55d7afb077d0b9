/** The authority of a request, in `Host` or in an absolute-form target (RFC 9112 §3.2, RFC 3986 §3.2). */

import type { IncomingMessage } from 'node:http'
import { isIPv6 } from 'node:net'
import { ADMIN_KEY_HEADER } from '../auth/admin-keys.ts'
import type { ErrorName } from '../errors.ts'

/** A name or an IPv4 address, or something in brackets; and a port, which may be empty. */
const AUTHORITY = /^(?:\w[\w-]*(?:\.\w[\w-]*)*\.?|\[([\da-f:.]+)\])(?::(\d{0,5}))?$/i

const MAX_PORT = 65_535

const isAuthority = (text: string): boolean => {
  const [matched, address, port = ''] = AUTHORITY.exec(text) ?? []
  return matched !== undefined && (address === undefined || isIPv6(address)) && Number(port) <= MAX_PORT
}

/** A connection brings the same one with every request, and most have the same. */
let lastValid = ''

/** Whether a `Host` can be of a server: no user, nothing percent-encoded, none of what RFC 3986 allows and DNS does not. */
export const isHost = (text: string): boolean => {
  if (text === lastValid && text !== '') return true
  if (!isAuthority(text)) return false
  lastValid = text
  return true
}

/** Of `http://authority/path`; what is no such target is the router's to refuse. */
const ABSOLUTE = /^[a-z][a-z\d+.-]*:\/\/([^/?#]*)/i

/** Whether a target that does not begin with a slash names a server, where it names one. */
export const hasValidAuthority = (target: string): boolean => {
  const authority = ABSOLUTE.exec(target)?.[1]
  return authority === undefined || isAuthority(authority)
}

/** Rules for request lines and header fields that Node does not enforce. */

const SLASH = '/'.charCodeAt(0)

/** As nearly every client writes it, or in another letter case. */
const isNamed = (name: string, usual: string, lower: string): boolean =>
  name === usual || name.toLowerCase() === lower

/** What decides over how a request is read, as it was sent: of most fields Node keeps the first, a proxy may go by another. */
export class DecisiveFields {
  hosts = 0
  host = ''
  authorizations = 0
  adminKeys = 0
  transferCoding = false
  upgrade = false

  constructor(rawHeaders: readonly string[]) {
    for (let index = 0; index < rawHeaders.length; index += 2) {
      const name = rawHeaders[index] as string
      const value = rawHeaders[index + 1] as string
      // The lengths keep nearly all other fields from being compared.
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
}

/** What leaves it open where the request ends, or who would read on: behind it the connection ends. */
export const framingFault = (
  { httpVersion, headers }: IncomingMessage,
  { transferCoding }: DecisiveFields,
): ErrorName | null => {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return 'versionNotSupported'
  if (!transferCoding) return null
  // RFC 9112 §6.1: on HTTP/1.0 its framing is faulty.
  if (httpVersion === '1.0') return 'badRequest'
  return headers['transfer-encoding']?.toLowerCase() === 'chunked' ? null : 'transferCodingNotSupported'
}

/** What is wrong with a request whose end is known: the connection goes on. */
export const fieldFault = (
  { httpVersion, url = '/', headers }: IncomingMessage,
  { hosts, host, authorizations, adminKeys }: DecisiveFields,
): ErrorName | null => {
  // RFC 9112 §3.2; HTTP/1.0 knows requests without Host.
  if (hosts === 0 ? httpVersion !== '1.0' : hosts > 1 || !isHost(host)) return 'badHost'
  if (url.charCodeAt(0) !== SLASH && !hasValidAuthority(url)) return 'badUrl'
  if (authorizations > 1 || adminKeys > 1) return 'duplicateCredentials'
  if (headers.expect !== undefined && headers.expect.toLowerCase() !== '100-continue') {
    return 'expectationFailed'
  }
  return null
}
