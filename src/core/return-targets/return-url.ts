/**
 * Which URLs the hosted pages lead back to (`return_to`, docs/pages.md). The author of a link to a page chooses the URL, so only
 * its origin decides.
 */

/** Characters. */
export const MAX_RETURN_URL = 2_048

/**
 * What browsers remove from a URL, or read as something else: white space, control characters and backslashes. So `https:\e` and a tab
 * inside of a scheme never reach the parser.
 */
const AMBIGUOUS = /[\s\p{Cc}\p{Cf}\\]/u

/** `https:e` and `https:/e` are absolute to parsers as well. */
const ABSOLUTE = /^https?:\/\/[^/]/i

/**
 * @param text from a stranger.
 * @param origins that may be returned to, as `URL.origin` writes them.
 * @returns the URL as browsers read it; `null` unless it is absolute, has one of the origins, and names no user.
 */
export const returnUrl = (text: string, origins: ReadonlySet<string>): string | null => {
  if (text.length > MAX_RETURN_URL || AMBIGUOUS.test(text) || !ABSOLUTE.test(text)) return null
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || url.username !== '' || url.password !== '' || !origins.has(url.origin)) return null
  // Serialised: what was compared is what the browser gets. Encoding makes it longer.
  return url.href.length > MAX_RETURN_URL ? null : url.href
}
