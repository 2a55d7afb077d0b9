/** Ids of clients that are URLs of their metadata (draft-ietf-oauth-client-id-metadata-document §3). */
import { createHash } from 'node:crypto'
import { allowedHosts, hostWithPort } from '#base/http-client/http-client'
import type { Reader } from '#base/settings/readers'

/** Characters: forms have as many for the id of a client. */
const MAX_URL = 256

/** Hosts with port; `any`: all. */
export type MetadataHosts = readonly string[] | 'any'

/** Reads `*`, or a list of hosts. */
export const metadataHosts: Reader<MetadataHosts> = value =>
  value.trim() === '*' ? 'any' : allowedHosts(value)

/** Whether a client id is a URL. Ids of the service never are. */
export const isUrl = (clientId: string): boolean => /^https?:/i.test(clientId)

/**
 * The id under which the store has the client of a URL: a UUIDv8 (RFC 9562 §5.8) that follows from it, and sorts after the ids of
 * registered clients.
 */
export const idOfUrl = (url: string): string => {
  const digest = createHash('sha256').update(url).digest('hex')
  return `ffffffff-ffff-8${digest.slice(0, 3)}-8${digest.slice(3, 6)}-${digest.slice(6, 18)}`
}

/** Whether a URL can be the id of a client: as its normal form, with a path, without a fragment and a user. */
export const isMetadataUrl = (text: string, hosts: MetadataHosts): boolean => {
  const url = text.length <= MAX_URL && isUrl(text) && URL.canParse(text) ? new URL(text) : null
  if (url === null || url.href !== text || url.pathname === '/') return false
  if (text.includes('#') || url.username !== '' || url.password !== '') return false
  return hosts === 'any' || hosts.includes(hostWithPort(url))
}
