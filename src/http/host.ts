/** The authority of a request, in `Host` or in an absolute-form target (RFC 9112 §3.2, RFC 3986 §3.2). */
import { isIPv6 } from 'node:net'

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
