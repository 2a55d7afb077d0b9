/**
 * Redirect URIs (RFC 6749 §3.1.2, RFC 8252 §7, RFC 9700 §4.1): HTTPS, HTTP to this machine, or a scheme of an app. They are compared as
 * text, except for the port of a loopback address.
 */

/** Characters. */
export const MAX_URI = 2_048

const LOOPBACK = new Set(['127.0.0.1', '[::1]', 'localhost'])

/** Reversed domain names (RFC 8252 §7.1): `com.example.app`. A scheme without a dot may be one that browsers run, such as `javascript`. */
const APP_SCHEME = /^[a-z][a-z0-9-]*(?:\.[a-z0-9-]+)+:$/

/** What a browser would drop, rewrite or read as another delimiter. */
const AMBIGUOUS = /[\s\p{Cc}\\#]|\P{ASCII}/u

const parsed = (uri: string): URL | null => (URL.canParse(uri) ? new URL(uri) : null)

const isLoopback = ({ protocol, hostname }: URL): boolean => protocol === 'http:' && LOOPBACK.has(hostname)

const SHAPE = 'must be a URI such as https://app.example.com/callback, without a fragment and a user'

/** @returns what is wrong with a redirect URI; `null` if it can be registered. */
export const redirectUriProblem = (uri: string): string | null => {
  const url = parsed(uri)
  if (url === null || AMBIGUOUS.test(uri) || url.username !== '' || url.password !== '') return SHAPE
  if (url.protocol === 'https:' || isLoopback(url) || APP_SCHEME.test(url.protocol)) return null
  return 'must begin with https://, lead to this machine as http://127.0.0.1, or have the scheme of an app such as com.example.app:'
}

/** Whether only a program on the user's own machine receives it: anybody can write one that pretends to be the client. */
export const isOfDevice = (uri: string): boolean => parsed(uri)?.protocol !== 'https:'

/** Whether it leads to a program that listens on the user's own machine. */
export const isLoopbackUri = (uri: string): boolean => {
  const url = parsed(uri)
  return url !== null && isLoopback(url)
}

/** With `:0` instead of the port of a loopback address, which the operating system chooses (RFC 8252 §7.3). */
const withoutPort = (uri: string): string => {
  return isLoopbackUri(uri) ? uri.replace(/^(http:\/\/(?:\[::1\]|[^/:?]+))(?::\d{1,5})?/i, '$1:0') : uri
}

/** Whether a redirect URI of a request is one of those that the client has registered. */
export const isRegistered = (uri: string, registered: readonly string[]): boolean =>
  registered.includes(uri) ||
  (redirectUriProblem(uri) === null && registered.some(each => withoutPort(each) === withoutPort(uri)))
