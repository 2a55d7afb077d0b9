/** The relying party of passkeys, from the configuration (WebAuthn §5.4.2). */
import { isIP } from 'node:net'

export interface RelyingParty {
  /** A host name. Passkeys work on its pages and on those below it, and nowhere else. */
  readonly id: string
  /** Shown by browsers. */
  readonly name: string
  /** The origins whose pages and apps may use passkeys. */
  readonly origins: readonly string[]
}

interface RelyingPartyConfig {
  readonly publicUrl: string
  readonly webUrl: string
  readonly allowedOrigins: readonly string[]
  readonly nativeOrigins?: readonly string[]
  readonly productName: string
}

/** `127.0.0.1` and `[::1]` are no host names. Pages of this machine have the name `localhost`. */
const LOOPBACK = /^(127\.\d+\.\d+\.\d+|\[::1\])$/

/** @returns the URL with a host name for this machine. */
const named = (text: string): URL => {
  const url = new URL(text)
  if (LOOPBACK.test(url.hostname)) url.hostname = 'localhost'
  return url
}

/** @returns `null` if the service has an IP address instead of a host name, for which browsers make no passkeys. */
export const relyingPartyOf = ({
  publicUrl,
  webUrl,
  allowedOrigins,
  nativeOrigins = [],
  productName,
}: RelyingPartyConfig): RelyingParty | null => {
  // Without WEB_URL it has the host of PUBLIC_URL.
  const { hostname: id } = named(webUrl)
  if (id.startsWith('[') || isIP(id) !== 0) return null
  const isBelow = ({ hostname }: URL): boolean => hostname === id || hostname.endsWith(`.${id}`)
  const origins = [publicUrl, webUrl, ...allowedOrigins]
    .map(named)
    .filter(isBelow)
    .map(({ origin }) => origin)
  return { id, name: productName, origins: [...new Set([...origins, ...nativeOrigins])] }
}
