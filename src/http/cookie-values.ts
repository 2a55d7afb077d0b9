/**
 * All values of a cookie. A name does not identify a cookie: one that another host of the domain has set, or that has another path, comes
 * with ours, before or behind it (RFC 6265 §5.4). A parser keeps one of them.
 */

export type ParsedCookies = Readonly<Record<string, string | undefined>>

/** Parses a `Cookie` header. */
export type CookieParser = (header: string) => ParsedCookies

/**
 * Values that are looked at: each may cost the verification of a signature. A stranger can set one for each parent domain of the service and
 * each prefix of a path, and browsers send those with longer paths first: eight would hide ours.
 */
const MAX_VALUES = 32

const SPACE = 0x20
const TAB = 0x09

/** @returns each different value once, in the order of the header, without empty ones; the first 32 at most. */
export const cookieValues = (header: string, name: string, parse: CookieParser): string[] => {
  const values = new Set<string>()
  for (let start = 0, end = 0; end !== -1 && values.size < MAX_VALUES; start = end + 1) {
    while (header.charCodeAt(start) === SPACE || header.charCodeAt(start) === TAB) start += 1
    end = header.indexOf(';', start)
    // Most pairs have another name, and need no parser.
    if (!header.startsWith(name, start)) continue
    const value = parse(end === -1 ? header.slice(start) : header.slice(start, end))[name]
    if (value) values.add(value)
  }
  return [...values]
}
