/** Links between hosted pages that keep where they lead back to. */

/** The parameter of pages. */
export const RETURN_TO = 'return_to'

/**
 * A URL of a page, with where it leads back to.
 * @param path with a query, if any. @param returnTo a URL that was checked; `null`: nowhere.
 */
export const withReturn = (path: string, { returnTo }: { readonly returnTo: string | null }): string =>
  returnTo === null
    ? path
    : `${path}${path.includes('?') ? '&' : '?'}${RETURN_TO}=${encodeURIComponent(returnTo)}`
