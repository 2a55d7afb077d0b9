/** Entity tags in conditional requests (RFC 9110 §8.8.3, §13.1). */

const TAG = /"([\x21\x23-\x7e\x80-\xff]*)"/g

/** What proxies append to the tag of a response that they compress: Apache and Caddy `-gzip`, Jetty `--gzip`. */
const CODING = /-{1,2}(?:gzip|br|zstd|deflate)$/

/** Opaque tags of this service, given to a proxy that may have marked them. */
export interface EntityTags {
  /** Whether a tag is among them. */
  has(tag: string): boolean
  /** As the client sent them, and without what a proxy appended. */
  readonly values: readonly string[]
}

/**
 * Parses `If-Match` or `If-None-Match`, with weak comparison: a proxy that compresses a response makes its strong tag weak (nginx
 * `W/"1"`), or appends the coding (Apache `"1-gzip"`), and clients return what they got. docs/design.md, "Contract"
 * @returns `null` for `*`.
 */
export const parseEntityTags = (field: string): EntityTags | null => {
  if (field.trim() === '*') return null
  const values = new Set<string>()
  for (const [, tag = ''] of field.matchAll(TAG)) values.add(tag).add(tag.replace(CODING, ''))
  return { has: tag => values.has(tag), values: [...values] }
}
