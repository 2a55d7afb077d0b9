/** Entity tags in conditional requests (RFC 9110 §8.8.3, §13.1). */

const TAG = /"([\x21\x23-\x7e\x80-\xff]*)"/g

/**
 * What proxies append to the tag of a response whose coding they change: Apache and Caddy `-gzip`, `-br` or `-zstd`, Apache also
 * `-gunzip`, Jetty `--gzip`. In a chain of proxies, or of Apache's filters, each appends its own.
 */
const CODINGS = /(?:-{1,2}(?:gzip|gunzip|br|zstd|deflate)){1,3}$/

/**
 * Parses `If-Match` or `If-None-Match`, with weak comparison: a proxy that compresses a response makes its strong tag weak (nginx
 * `W/"1"`), or appends the coding (Apache `"1-gzip"`), and clients return what they got. docs/design.md, "Contract"
 * @returns the opaque tags without codings, so tags of the service contain no `-` of their own; `null` for `*`.
 */
export const parseEntityTags = (field: string): ReadonlySet<string> | null => {
  if (field.trim() === '*') return null
  return new Set(field.matchAll(TAG).map(([, tag = '']) => tag.replace(CODINGS, '')))
}
